from random import Random

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.new_topics import NewTopic, added_partitions, assignment_of, check_name, overrides_of
from odradek.model.topology import ZERO_UUID, Broker, ReplicaAssignment, TopicAssignment

BROKERS = {n: Broker(n, ()) for n in (1, 2, 3)}
ORDERS = TopicAssignment("or.ders", ZERO_UUID, {p: ReplicaAssignment((1, 2)) for p in range(2)})
NAMES = {"or.ders"}


def refusal(code: ErrorCode) -> object:
    return pytest.raises(KafkaError, check=lambda error: error.code == code)


def test_a_name_must_be_free_in_files_and_in_metrics() -> None:
    check_name("new", NAMES)
    with refusal(ErrorCode.TOPIC_ALREADY_EXISTS):
        check_name("or.ders", NAMES)
    with refusal(ErrorCode.INVALID_TOPIC_EXCEPTION):
        check_name("or_ders", NAMES)


def test_an_own_assignment_is_taken_as_it_is() -> None:
    topic = NewTopic("t", 1, 1, assignments={1: (3, 1), 0: (2, 3), 2: (9, 1)})
    assert assignment_of(topic, BROKERS, Random(0)) == {0: (2, 3), 1: (3, 1), 2: (9, 1)}  # 9 may be on its way


@pytest.mark.parametrize(
    "assignments",
    [{0: (1, 1)}, {0: ()}, {0: (1,), 1: (1, 2)}, {1: (1,)}, {0: (1,), 2: (1,)}],
    ids=["twice", "empty", "uneven", "not from 0", "hole"],
)
def test_an_assignment_that_cannot_be(assignments: dict[int, tuple[int, ...]]) -> None:
    with refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT):
        assignment_of(NewTopic("t", 1, 1, assignments=assignments), BROKERS, Random(0))


def test_counts_and_assignment_exclude_each_other() -> None:
    with refusal(ErrorCode.INVALID_REQUEST):
        assignment_of(NewTopic("t", 3, 1, counts_given=True, assignments={0: (1,)}), BROKERS, Random(0))


def test_partitions_are_only_added() -> None:
    added = added_partitions(ORDERS, 4, None, BROKERS)
    assert sorted(added) == [2, 3]
    assert all(len(set(replicas)) == 2 for replicas in added.values())
    for count in (1, 2):
        with refusal(ErrorCode.INVALID_PARTITIONS):
            added_partitions(ORDERS, count, None, BROKERS)
    with refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT):
        added_partitions(ORDERS, 4, [(1, 2)], BROKERS)
    with refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT):
        added_partitions(ORDERS, 3, [(1, 9)], BROKERS)
    assert added_partitions(ORDERS, 3, [(3, 1)], BROKERS) == {2: (3, 1)}


def test_a_null_or_repeated_setting_is_refused() -> None:
    assert overrides_of(NewTopic("t", 1, 1, configs=[("a", "1")])) == {"a": "1"}
    with refusal(ErrorCode.INVALID_CONFIG):
        overrides_of(NewTopic("t", 1, 1, configs=[("a", None)]))
    with refusal(ErrorCode.INVALID_REQUEST):
        overrides_of(NewTopic("t", 1, 1, configs=[("a", "1"), ("a", "2")]))
