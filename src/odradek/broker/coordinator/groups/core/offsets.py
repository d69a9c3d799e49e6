"""Expiration of a group's committed offsets. Pure: time is passed in."""

from collections.abc import Mapping

from odradek.broker.coordinator.groups.core.group import CONSUMER_PROTOCOL, Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_TIMESTAMP

Offsets = dict[TopicPartition, CommittedOffset]


def expired_offsets(
    group: Group, offsets: Mapping[TopicPartition, CommittedOffset], now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """Return the expired offsets. Retention begins when the group lost its last member. It begins with the commit for
    clients without a group, and for records without that time (Kafka before 2.1).

    While a group has members, offsets of the topics that they read don't expire; if these are unknown, none do.
    """
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        emptied_ms = NO_TIMESTAMP if group.protocol_type is None else group.state_since_ms
        return [
            tp
            for tp, each in offsets.items()
            if _is_over(
                each, each.commit_timestamp_ms if emptied_ms == NO_TIMESTAMP else emptied_ms, now_ms, retention_ms
            )
        ]
    read = group.subscribed_topics
    if group.state is not GroupState.STABLE or group.protocol_type != CONSUMER_PROTOCOL or read is None:
        return []
    return [
        tp
        for tp, each in offsets.items()
        if tp.topic not in read and _is_over(each, each.commit_timestamp_ms, now_ms, retention_ms)
    ]


def _is_over(committed: CommittedOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms
