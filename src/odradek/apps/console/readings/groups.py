"""Consumer groups: a line for each, and details of one."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.console.readings.group_changes import Seen, changed
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import Group, GroupListing, committed_offsets, existing_group, list_groups
from odradek.client.group_lag import Lag, group_lags, known_ends
from odradek.client.record_reader import FetchOptions, RecordReader, records_in
from odradek.model.topology import TopicPartition

_LAGS_MAX = 100
_AGES_MAX = 32
_SEEN_MAX = 50
_AGE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class GroupsState:
    groups: tuple[GroupListing, ...]
    lags: Mapping[str, int | None]
    """Lag in records of the first hundred groups; None: not known."""
    topic_lags: Mapping[str, Mapping[str, int]]
    """Lags of each topic's groups."""


@dataclass(frozen=True, slots=True)
class GroupDetail:
    group: Group
    lags: tuple[Lag, ...]
    ages_ms: Mapping[TopicPartition, int]
    """Age of the next record that the group will read."""
    seen: tuple[Seen, ...] = ()
    """Events since the page was opened, oldest first."""


def read_groups(client: ClusterClient, before: GroupsState | None) -> GroupsState:
    groups = tuple(list_groups(client))
    lags: dict[str, int | None] = {}
    by_topic: dict[str, dict[str, int]] = {}
    committed: dict[str, dict[TopicPartition, int]] = {}
    for group in groups[:_LAGS_MAX]:
        try:
            committed[group.group] = committed_offsets(client, group.group)
        except (KafkaError, ConnectionFailed, UnsupportedByBroker):
            lags[group.group] = None
    ends = known_ends(client, {tp for offsets in committed.values() for tp in offsets})
    for name, offsets in committed.items():
        for tp, offset in offsets.items():
            topic_lags = by_topic.setdefault(tp.topic, {})
            topic_lags[name] = topic_lags.get(name, 0) + max(0, ends.get(tp, offset) - offset)
        lags[name] = sum(max(0, ends.get(tp, offset) - offset) for tp, offset in offsets.items())
    return GroupsState(groups, lags, by_topic)


def known_lags(state: GroupsState) -> dict[str, float]:
    return {group: float(lag) for group, lag in state.lags.items() if lag is not None}


def read_group(client: ClusterClient, before: GroupDetail | None, name: str) -> GroupDetail:
    group = existing_group(client, name)
    lags = tuple(group_lags(client, group))
    waiting = [lag for lag in lags if lag.tp is not None and lag.lag]
    waiting.sort(key=lambda lag: -(lag.lag or 0))
    ages: dict[TopicPartition, int] = {}
    now = SYSTEM_CLOCK.now_ms()
    for lag in waiting[:_AGES_MAX]:
        assert lag.tp is not None
        written = _written_ms(client, lag.tp, lag.committed or 0)
        if written is not None:
            ages[lag.tp] = max(0, now - written)
    story = changed(before.group if before else None, group, now)
    seen = (*(before.seen if before else ()), *story)[-_SEEN_MAX:]
    return GroupDetail(group, lags, ages, seen)


def _written_ms(client: ClusterClient, tp: TopicPartition, offset: int) -> int | None:
    """Return the time at which the record at this offset was written."""
    options = FetchOptions(max_wait_ms=0, max_bytes=_AGE_BYTES, partition_max_bytes=_AGE_BYTES)
    reader = RecordReader(client, {tp: offset}, options)
    try:
        for fetched in reader.poll():
            for record in records_in(fetched):
                return record.timestamp
    except (KafkaError, ConnectionFailed):
        return None
    return None
