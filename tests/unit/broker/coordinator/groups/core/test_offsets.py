"""Expiry of offsets."""

from group_play import Play

from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset, GroupMetadataValue
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.core.offsets import expired_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP

READ, UNREAD = TopicPartition("read", 0), TopicPartition("unread", 0)
SUBSCRIPTION = b"\0\0" + b"\0\0\0\x01" + b"\0\x04read" + b"\xff\xff\xff\xff"
RETENTION_MS = 1_000
COMMITTED_MS = 500
OFFSETS = {tp: CommittedOffset(1, -1, "", COMMITTED_MS) for tp in (READ, UNREAD)}


def expired(play: Play, now_ms: int) -> list[TopicPartition]:
    return expired_offsets(play.group, OFFSETS, now_ms, RETENTION_MS)


def test_without_a_group_retention_counts_from_the_commit() -> None:
    play = Play()
    assert expired(play, COMMITTED_MS + RETENTION_MS - 1) == []
    assert expired(play, COMMITTED_MS + RETENTION_MS) == [READ, UNREAD]


def test_what_members_read_does_not_expire() -> None:
    play = Play()
    play.join("a", "", protocols=(("range", SUBSCRIPTION),))
    assert expired(play, 10**9) == [], "a rebalance is not the time to forget"
    play.passes(3_000)
    play.sync("a", {"a": b""})
    assert play.group.state is GroupState.STABLE
    assert expired(play, 10**9) == [UNREAD]
    play.group.subscribed_topics = None
    assert expired(play, 10**9) == []


def test_an_empty_group_keeps_its_offsets_from_when_it_became_empty() -> None:
    play = Play()
    play.becomes_stable("a")
    play.leave("a")
    empty_since_ms = play.now_ms
    assert expired(play, empty_since_ms + RETENTION_MS - 1) == []
    assert expired(play, empty_since_ms + RETENTION_MS) == [READ, UNREAD]


def test_a_commit_may_bring_its_own_expiry() -> None:
    offsets = {READ: CommittedOffset(1, -1, "", COMMITTED_MS, expire_timestamp_ms=600)}
    assert expired_offsets(Play().group, offsets, 599, RETENTION_MS) == []
    assert expired_offsets(Play().group, offsets, 600, RETENTION_MS) == [READ]


def test_a_group_that_was_written_without_a_time_keeps_its_offsets_from_the_commit() -> None:
    """As Kafka before 2.1 wrote it. It is not new each time that a coordinator loads it."""
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol=None, leader=None, members=[])
    assert value.current_state_timestamp == NO_TIMESTAMP
    group = Group.from_record("g", value, Moment(10**6, 0))
    assert expired_offsets(group, OFFSETS, COMMITTED_MS + RETENTION_MS - 1, RETENTION_MS) == []
    assert expired_offsets(group, OFFSETS, COMMITTED_MS + RETENTION_MS, RETENTION_MS) == [READ, UNREAD]
