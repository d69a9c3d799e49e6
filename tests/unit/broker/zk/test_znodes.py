"""The contents below were written by Apache Kafka 3.9.2; `tests/cluster/test_zookeeper.py` asks a live one."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.zk.znodes import (
    PERSISTENT_ROOTS,
    BrokerRegistration,
    ClusterId,
    ConfigChanges,
    Controller,
    ControllerEpoch,
    CorruptZnode,
    EntityConfig,
    IsrChanges,
    LogDirFailures,
    PartitionState,
    PreferredElection,
    ProducerIdBlock,
    ProducerIds,
    Reassignments,
    Topic,
)
from odradek.model.topology import (
    ZERO_UUID,
    Broker,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicAssignment,
    TopicPartition,
)
from odradek.model.uuid_text import uuid_from_text, uuid_to_text

PLAINTEXT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 23812)
ORDERS_0 = TopicPartition("orders", 0)


def test_a_broker_registers_with_version_5() -> None:
    content = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:23812"],"rack":"r1","jmx_port":-1,"port":23812,"host":"127.0.0.1",'
        b'"version":5,"timestamp":"1794790070782"}'
    )
    broker = Broker(0, (PLAINTEXT,), "r1", 29)
    assert BrokerRegistration.encode(broker, 1794790070782) == content
    assert BrokerRegistration.decode(0, content, 29) == broker


def test_a_broker_without_rack_and_without_plaintext() -> None:
    broker = Broker(1, (Endpoint("OUTSIDE", "SSL", "::1", 9093),))
    content = BrokerRegistration.encode(broker, 1)
    assert b'"endpoints":["OUTSIDE://[::1]:9093"],"jmx_port":-1,"port":-1,"host":null' in content
    assert BrokerRegistration.decode(1, content, -1) == broker


@pytest.mark.parametrize(
    "content",
    [
        b'{"version":1,"host":"127.0.0.1","port":23812,"jmx_port":-1,"timestamp":"1"}',
        b'{"version":3,"host":"h","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://127.0.0.1:23812"]}',
    ],
)
def test_registrations_of_old_brokers_are_read(content: bytes) -> None:
    assert BrokerRegistration.decode(0, content, 5) == Broker(0, (PLAINTEXT,), None, 5)


def test_a_topic_in_the_middle_of_a_reassignment() -> None:
    content = (
        b'{"partitions":{"0":[1,2,0],"1":[2,1,0]},"topic_id":"FwTOqYluQQySrfP2_NDrvg",'
        b'"adding_replicas":{"0":[2],"1":[2]},"removing_replicas":{"0":[0],"1":[0]},"version":3}'
    )
    assignment = Topic.decode("moved", content)
    assert assignment.partitions == {
        0: ReplicaAssignment((1, 2, 0), (2,), (0,)),
        1: ReplicaAssignment((2, 1, 0), (2,), (0,)),
    }
    assert Topic.encode(assignment) == content


def test_many_partitions_come_in_the_order_of_the_jvms_hash_table() -> None:
    assignment = TopicAssignment("many", ZERO_UUID, {n: ReplicaAssignment((0,)) for n in range(130)})
    text = Topic.encode(assignment).decode()
    assert text.startswith('{"partitions":{"88":[0],"89":[0],"110":[0],"111":[0],"112":[0]')
    assert '"116":[0],"90":[0],"117":[0],"91":[0]' in text
    assert '"87":[0]},"topic_id"' in text


def test_a_topic_older_than_topic_ids_has_the_zero_id() -> None:
    assert Topic.decode("old", b'{"version":1,"partitions":{"0":[1]}}').topic_id == ZERO_UUID


def test_the_state_of_a_partition() -> None:
    content = b'{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":1,"isr":[2,1,0]}'
    state = LeaderAndIsr(leader=2, leader_epoch=1, isr=(2, 1, 0), controller_epoch=2, zk_version=7)
    assert PartitionState.path(ORDERS_0) == "/brokers/topics/orders/partitions/0/state"
    assert PartitionState.encode(state) == content
    assert PartitionState.decode(ORDERS_0, content, 7) == state


def test_a_partition_that_recovers_from_an_unclean_election() -> None:
    content = b'{"controller_epoch":2,"leader":2,"version":1,"leader_recovery_state":1,"leader_epoch":1,"isr":[2]}'
    state = LeaderAndIsr(leader=2, leader_epoch=1, isr=(2,), controller_epoch=2, recovering=True)
    assert PartitionState.encode(state) == content
    assert PartitionState.decode(ORDERS_0, content, 0) == state


def test_configurations_keep_the_order_of_java_properties() -> None:
    content = (
        b'{"version":1,"config":{"cleanup.policy":"compact","flush.ms":"10","min.insync.replicas":"1",'
        b'"retention.ms":"1000","segment.bytes":"1048576"}}'
    )
    config = {
        "retention.ms": "1000",
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "segment.bytes": "1048576",
        "flush.ms": "10",
    }
    assert EntityConfig.encode(config) == content
    assert EntityConfig.decode("topics", "orders", content) == config
    assert EntityConfig.decode("topics", "orders", None) == {}


def test_the_small_ones() -> None:
    assert ConfigChanges.encode("brokers", "<default>") == b'{"version":2,"entity_path":"brokers/<default>"}'
    assert ClusterId.encode("L43I47BRRJ6SNQeg1oreaQ") == b'{"version":"1","id":"L43I47BRRJ6SNQeg1oreaQ"}'
    assert ClusterId.decode(b'{"version":"1","id":"L43I47BRRJ6SNQeg1oreaQ"}') == "L43I47BRRJ6SNQeg1oreaQ"
    controller = b'{"version":2,"brokerid":0,"timestamp":"1794790071040","kraftControllerEpoch":-1}'
    assert Controller.encode(0, 1794790071040) == controller
    assert Controller.decode(controller) == 0
    assert ControllerEpoch.decode(ControllerEpoch.encode(12)) == 12
    block = b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}'
    assert ProducerIdBlock.encode(ProducerIds(0, 0, 999)) == block
    assert ProducerIdBlock.decode(block) == ProducerIds(0, 0, 999)
    assert "/config/ips" in PERSISTENT_ROOTS


def test_topic_ids_are_22_characters_of_base64() -> None:
    topic_id = uuid_from_text("FwTOqYluQQySrfP2_NDrvg")
    assert topic_id == UUID("1704cea9-896e-410c-92ad-f3f6fcd0ebbe")
    assert uuid_to_text(topic_id) == "FwTOqYluQQySrfP2_NDrvg"


@pytest.mark.parametrize(
    ("content", "entity"),
    [
        (b'{"version":2,"entity_path":"topics/orders"}', ("topics", "orders")),
        (b'{"version":2,"entity_path":"users/ann/clients/app"}', ("users", "ann/clients/app")),
        (b'{"version":1,"entity_type":"topics","entity_name":"orders"}', ("topics", "orders")),
    ],
)
def test_notices_of_old_and_new_tools_are_read(content: bytes, entity: tuple[str, str]) -> None:
    assert ConfigChanges.decode("config_change_0000000001", content) == entity


DECODERS: list[Callable[[bytes], object]] = [
    lambda content: BrokerRegistration.decode(0, content, 1),
    lambda content: Topic.decode("orders", content),
    lambda content: PartitionState.decode(ORDERS_0, content, 1),
    lambda content: EntityConfig.decode("topics", "orders", content or b"{"),
    ClusterId.decode,
    Controller.decode,
    ControllerEpoch.decode,
    ProducerIdBlock.decode,
    Reassignments.decode,
    PreferredElection.decode,
    lambda content: ConfigChanges.decode("config_change_0", content),
    lambda content: IsrChanges.decode("isr_change_0", content),
    lambda content: LogDirFailures.decode("log_dir_event_0", content),
]


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version":"x"}',
        b'{"version":5,"endpoints":["nonsense"]}',
        b'{"partitions":{"a":[1]}}',
        b'{"partitions":{"0":["1"]}}',
        b'{"partitions":[1]}',
    ],
)
def test_a_corrupt_node_is_one_clear_error(decode: Callable[[bytes], object], content: bytes) -> None:
    with pytest.raises(CorruptZnode, match="znode /"):
        decode(content)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    for decode in DECODERS:
        with suppress(CorruptZnode):
            decode(content)
