from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.replication.core.outcomes import FetchedPartition
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.broker.replication.leader.fetch_sessions import FetchSessions
from odradek.model.topology import ZERO_UUID, TopicPartition


def named(*partitions: int) -> list[tuple[Any, FetchTarget]]:
    return [(("t", p), FetchTarget(TopicPartition("t", p), ZERO_UUID, 0, 1000)) for p in partitions]


def outcome(partition: int, *, size: int = 0, high_watermark: int = 5, error: ErrorCode = ErrorCode.NONE) -> Any:
    target = FetchTarget(TopicPartition("t", partition), ZERO_UUID, 0, 1000)
    records: Any = SimpleNamespace(size=size)
    found = FetchedPartition(records, high_watermark, high_watermark, 0)
    return ("t", partition), FetchOutcome(target, error, None if error else found)


def told(outcomes: list[FetchOutcome]) -> list[int]:
    return [o.target.partition.partition for o in outcomes]


def test_an_incremental_answer_tells_only_news() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=1000, clock=ManualClock())
    session = sessions.open(named(0, 1, 2), by_topic_id=False)
    assert session is not None
    assert told(session.news([outcome(p) for p in (0, 1, 2)], full=True)) == [0, 1, 2]
    assert told(session.news([outcome(p) for p in (0, 1, 2)], full=False)) == []
    assert told(session.news([outcome(0), outcome(1, size=10), outcome(2, high_watermark=6)], full=False)) == [1, 2]
    assert told(session.news([outcome(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)], full=False)) == [0]
    assert told(session.news([outcome(0)], full=False)) == [0], "after an error the partition is news again"


def test_a_partition_that_sent_records_goes_to_the_end() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=1000, clock=ManualClock())
    session = sessions.open(named(0, 1, 2), by_topic_id=False)
    assert session is not None
    session.news([outcome(0, size=10), outcome(1), outcome(2)], full=True)
    assert [target.partition.partition for target in session.targets()] == [1, 2, 0]


def test_partitions_come_and_go() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=1000, clock=ManualClock())
    session = sessions.open(named(0, 1), by_topic_id=False)
    assert session is not None
    session.update(named(2), [("t", 0)])
    assert [target.partition.partition for target in session.targets()] == [1, 2]


def test_epochs_must_follow_each_other() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=1000, clock=ManualClock())
    session = sessions.open(named(0), by_topic_id=False)
    assert session is not None
    assert sessions.resume(session.id, 1, by_topic_id=False) is session
    with pytest.raises(KafkaError) as refused:
        sessions.resume(session.id, 1, by_topic_id=False)
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    with pytest.raises(KafkaError) as refused:
        sessions.resume(session.id, 2, by_topic_id=True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    sessions.close(session.id)
    with pytest.raises(KafkaError) as refused:
        sessions.resume(session.id, 2, by_topic_id=False)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_cache_keeps_the_busy_and_gives_up_the_idle() -> None:
    clock = ManualClock()
    sessions = FetchSessions(slots=1, eviction_ms=1000, clock=clock)
    first = sessions.open(named(0), by_topic_id=False)
    assert first is not None
    assert sessions.open(named(1), by_topic_id=False) is None
    clock.advance(1000)
    assert sessions.open(named(1), by_topic_id=False) is not None
    assert len(sessions) == 1
