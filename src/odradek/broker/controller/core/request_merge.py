"""Merge of two requests to the same broker: if both contain a partition, the newer one is used. Pure.

The requests are not changed, since several brokers' queues may share their parts.
"""

from collections.abc import Iterable
from typing import Any

from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataTopicState
from odradek.protocol.schema import Request


def merged(older: Request, newer: Request) -> Request | None:
    """Merge two requests; None if they are of different kinds, controllers or broker epochs."""
    match older, newer:
        case (LeaderAndIsrRequest(), LeaderAndIsrRequest()) if _same_parties(older, newer):
            leaders = {leader.broker_id: leader for leader in [*older.live_leaders, *newer.live_leaders]}
            return LeaderAndIsrRequest(
                controller_id=newer.controller_id,
                controller_epoch=newer.controller_epoch,
                broker_epoch=newer.broker_epoch,
                type=max(older.type, newer.type),
                topic_states=_newest_states(older.topic_states, newer.topic_states),
                live_leaders=list(leaders.values()),
            )
        case (UpdateMetadataRequest(), UpdateMetadataRequest()) if _same_parties(older, newer):
            return UpdateMetadataRequest(
                controller_id=newer.controller_id,
                type=max(older.type, newer.type),
                controller_epoch=newer.controller_epoch,
                broker_epoch=newer.broker_epoch,
                topic_states=_states_to_know(older.topic_states, newer.topic_states),
                live_brokers=newer.live_brokers,
            )
    return None


def _same_parties(older: Any, newer: Any) -> bool:
    return (older.controller_epoch, older.broker_epoch) == (newer.controller_epoch, newer.broker_epoch)


def _newest_states(*requests: Iterable[LeaderAndIsrTopicState]) -> list[LeaderAndIsrTopicState]:
    found: dict[tuple[str, Any], dict[int, LeaderAndIsrPartitionState]] = {}
    for topics in requests:
        for topic in topics:
            states = found.setdefault((topic.topic_name, topic.topic_id), {})
            for state in topic.partition_states:
                before = states.get(state.partition_index)
                # a replica whose request was never sent is still new to the broker
                states[state.partition_index] = _as_new(state) if before is not None and before.is_new else state
    return [
        LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=list(states.values()))
        for (name, topic_id), states in found.items()
    ]


def _as_new(state: LeaderAndIsrPartitionState) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(**{name: getattr(state, name) for name in state.FIELDS} | {"is_new": True})


def _states_to_know(*requests: Iterable[UpdateMetadataTopicState]) -> list[UpdateMetadataTopicState]:
    found: dict[tuple[str, Any], dict[int, Any]] = {}
    for topics in requests:
        for topic in topics:
            states = found.setdefault((topic.topic_name, topic.topic_id), {})
            states |= {state.partition_index: state for state in topic.partition_states}
    return [
        UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=list(states.values()))
        for (name, topic_id), states in found.items()
    ]
