"""Requests of transactional producers, and about tokens, loggers and the newer groups: as `authorization_requests`.

Allowed ones fail for another reason, a producer that nobody knows: of the answers only the denials are compared.
"""

from typing import Any

from odradek.protocol.messages import add_partitions_to_txn as add
from odradek.protocol.messages import describe_configs as configs
from odradek.protocol.messages import incremental_alter_configs as change_configs
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from odradek.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .authorization_requests import GHOST, GROUP, SEEN, TXN
from .own_broker import batch_of, produce_request

STRANGER: dict[str, Any] = {"producer_id": 4_000, "producer_epoch": 0}
NAMES = (SEEN, GHOST)
Requests = list[tuple[str, Any, int | None]]


def requests_of_transactions() -> Requests:
    """Label, request and version (None: the newest)."""
    partitions = [add.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in NAMES]
    of_broker = add.AddPartitionsToTxnTransaction(transactional_id=TXN, verify_only=True, topics=partitions, **STRANGER)
    commits = [
        TxnOffsetCommitRequestTopic(
            name=name, partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
        )
        for name in NAMES
    ]
    return [
        ("coordinators", FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN, "other"]), None),
        ("init", InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=1000), None),
        *((f"produce {name}", _produce(name), None) for name in NAMES),
        (
            "add partitions",
            add.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TXN,
                v3_and_below_producer_id=STRANGER["producer_id"],
                v3_and_below_topics=partitions,
            ),
            3,
        ),
        ("verify partitions", add.AddPartitionsToTxnRequest(transactions=[of_broker]), None),
        ("add offsets", AddOffsetsToTxnRequest(transactional_id=TXN, group_id=GROUP, **STRANGER), None),
        (
            "commit offsets",
            TxnOffsetCommitRequest(transactional_id=TXN, group_id=GROUP, topics=commits, **STRANGER),
            None,
        ),
        ("end", EndTxnRequest(transactional_id=TXN, committed=False, **STRANGER), None),
        ("transactions", DescribeTransactionsRequest(transactional_ids=[TXN, "other"]), None),
        ("list transactions", ListTransactionsRequest(), None),
    ]


def _produce(name: str) -> Any:
    request = produce_request(
        name, batch_of(b"v", producer_id=4_000, producer_epoch=0, base_sequence=0, transactional=True)
    )
    request.transactional_id, request.timeout_ms = TXN, 1000
    return request


def other_requests() -> Requests:
    """Requests whose answers are the same to the letter."""
    levels = change_configs.AlterConfigsResource(
        resource_type=8,
        resource_name="0",
        configs=[change_configs.AlterableConfig(name="root", config_operation=0, value="INFO")],
    )
    return [
        (
            "logger levels",
            configs.DescribeConfigsRequest(
                resources=[
                    configs.DescribeConfigsResource(resource_type=8, resource_name="0", configuration_keys=["root"])
                ]
            ),
            None,
        ),
        (
            "change levels",
            change_configs.IncrementalAlterConfigsRequest(resources=[levels], validate_only=True),
            None,
        ),
        ("create a token", CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), None),
        ("renew a token", RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1), None),
        ("expire a token", ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1), None),
        ("tokens", DescribeDelegationTokenRequest(owners=None), None),
        ("newer groups", ConsumerGroupDescribeRequest(group_ids=[GROUP, "other"]), None),
        ("heartbeat of a newer group", ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m"), None),
    ]
