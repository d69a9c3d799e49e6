"""Execution of effects: on ZooKeeper, on the channels to the brokers, for clients that wait for an answer.

One per term, used by the event thread alone. While ZooKeeper is unavailable, an effect waits and is repeated, as long
as the term lasts: a decision is completed, or abandoned together with the whole term.
"""

import time
from collections.abc import Callable
from typing import Any

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.controller.broker_channels import BrokerChannels
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event
from odradek.broker.controller.topic_ids import draw_topic_id
from odradek.broker.controller.trace import Trace
from odradek.broker.zk.session import ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.model.topology import ControllerTerm

log = get_logger(__name__)

_PAUSE_SECONDS = 0.1


class ControllerTermOver(Exception):
    """The session has expired or the broker stops: the term performs no more effects."""


class EffectRunner:
    def __init__(
        self,
        store: ZkStore,
        session: ZkSession,
        channels: BrokerChannels,
        term: ControllerTerm,
        *,
        schedule: Callable[[Event, int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._session = session
        self._schedule = schedule
        self._is_over = is_over
        self._trace = Trace()
        self._actions: dict[type, Callable[[Any], Any]] = {
            **_reading(store),
            **_writing(store, term),
            effects.Watch: self._watch,
            effects.OpenChannel: lambda e: channels.open(e.broker),
            effects.CloseChannel: lambda e: channels.close(e.broker_id),
            effects.Send: lambda e: channels.send(e.broker_id, e.request),
            effects.Answer: lambda e: e.to(e.value),
            effects.Schedule: lambda e: self._schedule(e.event, e.delay_ms),
            effects.DrawTopicId: lambda e: draw_topic_id(),
            effects.Moved: lambda e: None,
            effects.Report: lambda e: None,
        }

    def perform(self, effect: Effect) -> Any:
        """Carry the effect out and return its result. Raises ControllerMoved or ControllerTermOver when this broker
        may not act any more."""
        self._trace.effect(effect)
        action = self._actions[type(effect)]
        while not self._is_over():
            try:
                return action(effect)
            except ZkUnavailable as error:
                log.warning("controller is waiting for ZooKeeper", effect=type(effect).__name__, error=str(error))
                time.sleep(_PAUSE_SECONDS)
        raise ControllerTermOver

    def _watch(self, effect: effects.Watch) -> None:
        if effect.children:
            self._session.watch_children(effect.children)
        if effect.nodes:
            self._session.watch_nodes(effect.nodes)


def _reading(store: ZkStore) -> dict[type, Callable[[Any], Any]]:
    return {
        effects.ReadBrokers: lambda e: store.brokers.load_brokers(),
        effects.ReadTopicNames: lambda e: set(store.topics.load_topic_names()),
        effects.ReadTopics: lambda e: store.topics.load_topics(e.topics),
        effects.ReadPartitionStates: lambda e: store.partition_states.load_partition_states(e.partitions),
        effects.ReadTopicConfigs: lambda e: store.configs.load_configs("topics", e.topics),
        effects.ReadTopicsToDelete: lambda e: set(store.topics.load_topics_to_delete()),
        effects.ReadIsrNotifications: lambda e: store.requests.read_isr_notifications(),
        effects.ReadLogDirNotifications: lambda e: store.requests.read_log_dir_notifications(),
        effects.ReadReassignmentNode: lambda e: store.requests.read_reassignments(),
        effects.ReadPreferredElectionNode: lambda e: store.requests.read_preferred_elections(),
    }


def _writing(store: ZkStore, term: ControllerTerm) -> dict[type, Callable[[Any], Any]]:
    """Write nodes, each fenced by the controller epoch."""
    return {
        effects.CreatePartitionStates: lambda e: store.partition_states.create_partition_states(e.states, term),
        effects.UpdatePartitionStates: lambda e: store.partition_states.update_partition_states(e.states, term),
        effects.WriteAssignment: lambda e: _write_assignment(store, e, term),
        effects.DeleteTopicNodes: lambda e: store.topics.delete_topic(e.topic, term),
        effects.DropDeletionMarks: lambda e: store.topics.drop_deletion_marks(e.topics, term),
        effects.DropIsrNotifications: lambda e: store.requests.drop_isr_notifications(e.names, term),
        effects.DropLogDirNotifications: lambda e: store.requests.drop_log_dir_notifications(e.names, term),
        effects.WriteReassignmentNode: lambda e: store.requests.write_reassignments(e.remaining, term),
        effects.DropPreferredElectionNode: lambda e: store.requests.drop_preferred_elections(term),
    }


def _write_assignment(store: ZkStore, effect: effects.WriteAssignment, term: ControllerTerm) -> bool:
    try:
        store.topics.set_assignment(effect.assignment, term)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return False
    return True
