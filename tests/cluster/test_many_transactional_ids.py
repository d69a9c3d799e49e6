"""Transactional ids that nobody uses any more expire, however many they are; those in use stay."""

from pathlib import Path

import pytest

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from waiting import eventually

from .conftest import unused_name
from .own_broker import STEADY, OwnBroker, running
from .transactional_client import TransactionalClient

IN_FLIGHT = 200
EXPIRY_S = 120
SETTINGS = {
    **STEADY,
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
    "message_max_bytes": "10000",  # less than a thousand removals need: they are written in several batches
}
EXPIRING = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}


def give_ids(client: BrokerClient, count: int) -> None:
    """Have the coordinator keep this number of ids, each of which was used once."""
    answers = 0
    for number in range(count + IN_FLIGHT):
        if number < count:
            client.submit(InitProducerIdRequest(transactional_id=f"id-{number}", transaction_timeout_ms=60_000))
        if number >= IN_FLIGHT:
            assert client.receive().error_code == ErrorCode.NONE
            answers += 1
    assert answers == count


def kept_ids(client: BrokerClient) -> set[str]:
    answer = client.send(ListTransactionsRequest())
    if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return set()
    assert answer.error_code == ErrorCode.NONE
    return {each.transactional_id for each in answer.transaction_states}


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(600)
def test_unused_ids_expire_13099(tmp_path: Path, zookeeper: str, count: int) -> None:
    topic, name = unused_name(), unused_name()
    broker = OwnBroker(tmp_path, zookeeper, **SETTINGS)
    with running(broker), broker.client() as client:
        created = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        client.send(CreateTopicsRequest(topics=[created], timeout_ms=30_000))
        me = TransactionalClient(client, topic, name)
        assert me.find(1, name) is ErrorCode.NONE
        give_ids(client, count)
        assert [me.init(), *me.add(0), me.write("1", 0)] == [ErrorCode.NONE] * 3
        assert len(kept_ids(client)) == count + 1
    broker.set(EXPIRING)
    with running(broker), broker.client() as client:
        eventually(lambda: kept_ids(client) == {name}, EXPIRY_S)
        me.client = client
        assert [*me.add(0), me.write("2", 1), me.end(commit=True)] == [ErrorCode.NONE] * 3
        assert "can't be aborted or expired" not in broker.log
    broker.set({"transactional.id.expiration.ms": "604800000"})
    with running(broker), broker.client() as client:
        eventually(lambda: len(kept_ids(client)) <= 1 and "transactional ids loaded" in broker.log)
        assert kept_ids(client) <= {name}
