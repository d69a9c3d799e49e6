"""Znodes of Kafka 1.1's consumer under /consumers, and those that we refuse."""

import pytest

from odradek.apps.legacy.consumer import ZooKeeperConsumer
from odradek.apps.legacy.core.znodes import (
    AssignedPartitions,
    ConsumerId,
    MemberAssignment,
    Owner,
    Registration,
)
from odradek.base.errors import ConfigError, KafkaError
from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes import ConsumerOffset, CorruptZnode
from odradek.model.topology import TopicPartition

TP = TopicPartition("orders", 3)


def test_paths() -> None:
    assert ConsumerId.path("g", "g_host-1") == "/consumers/g/ids/g_host-1"
    assert Owner.path("g", TP) == "/consumers/g/owners/orders/3"
    assert ConsumerOffset.path("g", TP) == "/consumers/g/offsets/orders/3"


def test_a_registration_is_written_as_kafka_writes_it() -> None:
    content = ConsumerId.encode(Registration({"orders": 2}), 1530000000000)
    assert content == b'{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1530000000000"}'
    assert ConsumerId.decode("g", "c", content) == Registration({"orders": 2})


@pytest.mark.parametrize(
    ("pattern", "expression", "topics"),
    [
        ("white_list", "or.*", ["orders"]),
        ("white_list", "'orders , bills'", ["bills", "orders"]),
        ("black_list", "or.*", ["bills", "tailor"]),
    ],
)
def test_a_subscription_by_pattern_is_resolved_as_kafka_does(pattern: str, expression: str, topics: list[str]) -> None:
    content = to_json({"version": 1, "subscription": {expression: 2}, "pattern": pattern, "timestamp": "1"})
    found = ConsumerId.decode("g", "c", content).resolved(["bills", "orders", "tailor", "__consumer_offsets"])
    assert found == Registration(dict.fromkeys(topics, 2))


@pytest.mark.parametrize(("pattern", "expression"), [("grey_list", ".*"), ("white_list", "(")])
def test_a_pattern_that_is_none_is_refused(pattern: str, expression: str) -> None:
    content = to_json({"version": 1, "subscription": {expression: 2}, "pattern": pattern, "timestamp": "1"})
    with pytest.raises(CorruptZnode, match="/consumers/g/ids/c"):
        ConsumerId.decode("g", "c", content)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"pattern":"static","subscription":[1]}',
        b'{"pattern":"static","subscription":{"t":0}}',
        b'{"pattern":"static","subscription":{"t":1000000000}}',
        b'{"pattern":"white_list","subscription":{"t":1,"u":1}}',
    ],
)
def test_nonsense_is_told_from_registrations(content: bytes | None) -> None:
    with pytest.raises(CorruptZnode, match="/consumers/g/ids/c"):
        ConsumerId.decode("g", "c", content)


def test_offsets_are_decimal_text() -> None:
    assert ConsumerOffset.encode(1234) == b"1234"
    assert ConsumerOffset.decode("g", TP, b"1234") == 1234
    with pytest.raises(CorruptZnode, match="/consumers/g/offsets/orders/3"):
        ConsumerOffset.decode("g", TP, b"twelve")


def test_what_a_member_is_told_survives_the_way() -> None:
    assigned = AssignedPartitions(
        77, frozenset({TP, TopicPartition("orders", 1)}), frozenset({TopicPartition("bills", 0)})
    )
    assert MemberAssignment.decode("g", "c", MemberAssignment.encode(assigned)) == assigned
    with pytest.raises(CorruptZnode):
        MemberAssignment.decode("g", "c", b'{"version":1,"partitions":{}}')


@pytest.mark.parametrize(
    ("group", "topics", "member", "complaint"),
    [
        ("", {"t": 1}, "m", "group '' is illegal"),
        ("a/b", {"t": 1}, "m", "group 'a/b' is illegal"),
        ("g", {"t": 1}, "..", "member id '..' is illegal"),
        ("g", {"t": 0}, "m", "0 is not a number of streams of t"),
        ("g", {"t/u": 1}, "m", "Topic name is invalid"),
    ],
)
def test_names_that_would_leave_the_group_s_place_are_refused(
    group: str, topics: dict[str, int], member: str, complaint: str
) -> None:
    with pytest.raises((ConfigError, KafkaError), match=complaint):
        ZooKeeperConsumer("127.0.0.1:1", group, topics, member_id=member)
