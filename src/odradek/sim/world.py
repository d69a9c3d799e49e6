"""A cluster in memory: znodes as values, brokers that answer, and between them the controller's decisions.

The world performs effects as ZooKeeper and the channels would: watches fire once, conditional writes lose races,
requests to dead brokers and of old broker epochs come to nothing. It refuses what may never happen: a leader epoch that
goes back, a write without a controller.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.decisions import decide
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import ControllerElected, Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.broker.controller.core.znode_events import event_of_znode
from odradek.broker.zk.znodes import (
    BrokerIds,
    BrokerRegistration,
    DeletedTopic,
    IsrChanges,
    LogDirFailures,
    PreferredElection,
    Reassignments,
    Topic,
    Topics,
)
from odradek.model.topology import Broker, ControllerTerm, Endpoint, LeaderAndIsr, TopicAssignment, TopicPartition
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest
from odradek.protocol.schema import Request

SOON_MS = 1000


class ControllerDied(Exception):
    """The controller dies in the middle of a decision, as the story wants it."""


@dataclass
class BrokerInMemory:
    """State of one incarnation of a broker."""

    roles: dict[TopicPartition, LeaderAndIsrPartitionState] = field(default_factory=dict)
    metadata: dict[TopicPartition, UpdateMetadataPartitionState] = field(default_factory=dict)
    failed: set[TopicPartition] = field(default_factory=set)
    silent: bool = False

    def lead_and_follow(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        errors = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                known = self.roles.get(tp)
                assert known is None or known.leader_epoch <= state.leader_epoch, f"{tp}: the leader epoch goes back"
                self.roles[tp] = state
                errors[tp] = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.failed else ErrorCode.NONE
        return errors

    def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """Stop the replicas, and answer for the ones to be deleted."""
        errors = {}
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                self.roles.pop(tp, None)
                if state.delete_partition:
                    errors[tp] = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.failed else ErrorCode.NONE
        return errors

    def learn(self, request: UpdateMetadataRequest) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                self.metadata[TopicPartition(topic.topic_name, state.partition_index)] = state


class World:
    def __init__(self) -> None:
        self.registered: dict[int, Broker] = {}
        self.topics: dict[str, TopicAssignment] = {}
        self.broken: set[str] = set()
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.to_delete: set[str] = set()
        self.isr_notices: dict[str, frozenset[TopicPartition]] = {}
        self.log_dir_notices: dict[str, int] = {}
        self.reassignments: dict[TopicPartition, tuple[int, ...]] = {}
        self.preferred_elections: set[TopicPartition] = set()

        self.brokers: dict[int, BrokerInMemory] = {}
        self.context: ControllerContext | None = None
        self.controller_epoch = 0
        self.interference: dict[TopicPartition, tuple[int, ...]] = {}  # ISRs that leaders write before the controller
        self.writes_left: int | None = None  # until the controller dies
        self.on_event: Callable[[Event], None] = lambda event: None
        self.on_effect: Callable[[Effect, Any], None] = lambda effect, brought: None
        self.on_decided: Callable[[Event], None] = lambda event: None
        self._events: deque[Event] = deque()
        self._scheduled: list[tuple[int, Event]] = []
        self._held: dict[int, list[Event]] = {}  # what silent brokers don't answer
        self._watched: set[tuple[str, bool]] = set()  # path, and whether its children are meant
        self._zxid = 100

    # --- time ----------------------------------------------------------------------------------------------------

    def enqueue(self, event: Event) -> None:
        if self.context is not None:
            self._events.append(event)

    def take_scheduled(self, kind: type) -> None:
        """Run the scheduled events of that kind now."""
        due = [event for _, event in self._scheduled if isinstance(event, kind)]
        self._scheduled = [(delay, event) for delay, event in self._scheduled if not isinstance(event, kind)]
        for event in due:
            self.enqueue(event)

    def run(self) -> None:
        """Run until nothing is left to be done; who wants to look again soon does so when it is quiet."""
        while True:
            while self._events and self.context is not None:
                self._process(self._events.popleft(), self.context)
            soon = [(delay, event) for delay, event in self._scheduled if delay <= SOON_MS]
            if not soon:
                return
            self._scheduled = [(delay, event) for delay, event in self._scheduled if delay > SOON_MS]
            for _, event in soon:
                self.enqueue(event)

    def _process(self, event: Event, context: ControllerContext) -> None:
        decision = decide(event, context)
        self.on_event(event)
        begun: list[Effect] = []
        brought: Any = None
        try:
            while True:
                effect = decision.send(brought)
                begun.append(effect)
                brought = self._perform(effect)
                self.on_effect(effect, brought)
        except StopIteration:
            self.on_decided(event)
        except ControllerDied:
            self.controller_gone()
        self.tell(event, begun)

    def tell(self, event: Event, begun: list[Effect]) -> None:
        """An event was decided, and these effects were begun: for a subclass that tells of it."""

    # --- brokers and controllers ---------------------------------------------------------------------------------

    def register(self, broker_id: int, rack: str | None = None) -> None:
        self._zxid += 1
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092 + broker_id)
        self.registered[broker_id] = Broker(broker_id, (endpoint,), rack, self._zxid)
        self.brokers[broker_id] = BrokerInMemory()
        self._changed(BrokerRegistration.path(broker_id))
        self._changed(BrokerIds.path, children=True)

    def move(self, broker_id: int, port: int) -> None:
        """Write the registration anew, in the same session."""
        held = self.registered[broker_id]
        self.registered[broker_id] = replace(held, endpoints=(replace(held.endpoints[0], port=port),))
        self._changed(BrokerRegistration.path(broker_id))

    def lose(self, broker_id: int) -> None:
        """End the session, with all ephemeral nodes of it."""
        del self.registered[broker_id]
        del self.brokers[broker_id]
        self._held.pop(broker_id, None)
        if self.context is not None and self.context.broker_id == broker_id:
            self.controller_gone()
        self._changed(BrokerRegistration.path(broker_id))
        self._changed(BrokerIds.path, children=True)

    def controller_gone(self) -> None:
        self.context = None
        self.writes_left = None
        self._events.clear()
        self._scheduled.clear()
        self._held.clear()
        self._watched.clear()

    def elect_controller(self, broker_id: int, **settings: Any) -> None:
        self.controller_gone()
        self.controller_epoch += 1
        term = ControllerTerm(self.controller_epoch, self.controller_epoch)
        self.context = ControllerContext(broker_id, "PLAINTEXT", term=term, **settings)
        self._events.append(ControllerElected())

    def let_speak(self, broker_id: int) -> None:
        self.brokers[broker_id].silent = False
        for event in self._held.pop(broker_id, []):
            self.enqueue(event)

    # --- znodes that others write --------------------------------------------------------------------------------

    def write_topic(self, assignment: TopicAssignment) -> None:
        is_new = assignment.topic not in self.topics
        self.topics[assignment.topic] = assignment
        self._changed(Topic.path(assignment.topic))
        if is_new:
            self._changed(Topics.path, children=True)

    def write_isr_as_leader(self, tp: TopicPartition, isr: tuple[int, ...]) -> None:
        state = self.states[tp]
        self._write_state(tp, replace(state, isr=isr, zk_version=state.zk_version + 1))

    def _write_state(self, tp: TopicPartition, state: LeaderAndIsr) -> LeaderAndIsr:
        self._zxid += 1
        self.states[tp] = replace(state, written_zxid=self._zxid)
        return self.states[tp]

    def notify_isr_change(self, tp: TopicPartition) -> None:
        self._zxid += 1
        self.isr_notices[f"isr_change_{self._zxid:010}"] = frozenset((tp,))
        self._changed(IsrChanges.path, children=True)

    def fail_directory(self, broker_id: int, tps: Iterable[TopicPartition]) -> None:
        self._zxid += 1
        self.brokers[broker_id].failed.update(tps)
        self.log_dir_notices[f"log_dir_event_{self._zxid:010}"] = broker_id
        self._changed(LogDirFailures.path, children=True)

    def mark_for_deletion(self, topic: str) -> None:
        self.to_delete.add(topic)
        self._changed(DeletedTopic.parent, children=True)

    def write_reassignments(self, wanted: dict[TopicPartition, tuple[int, ...]]) -> None:
        self.reassignments = wanted
        self._changed(Reassignments.path)

    def write_preferred_elections(self, tps: Iterable[TopicPartition]) -> None:
        self.preferred_elections = set(tps)
        self._changed(PreferredElection.path)

    def _changed(self, path: str, *, children: bool = False) -> None:
        if (path, children) in self._watched:
            self._watched.remove((path, children))
            event = event_of_znode(path)
            assert event is not None, f"{path} is watched in vain"
            self.enqueue(event)

    # --- effects -------------------------------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> Any:
        action = READS.get(type(effect))
        if action is not None:
            return action(self, effect)
        action = WRITES.get(type(effect))
        if action is not None:
            if self.writes_left is not None:
                if self.writes_left == 0:
                    raise ControllerDied
                self.writes_left -= 1
            return action(self, effect)
        return None

    def _watch(self, effect: effects.Watch) -> None:
        self._watched |= {(path, True) for path in effect.children} | {(path, False) for path in effect.nodes}

    def _draw_topic_id(self, effect: effects.DrawTopicId) -> UUID:
        self._zxid += 1
        return UUID(int=self._zxid)

    def _read_topics(self, effect: effects.ReadTopics) -> dict[str, TopicAssignment]:
        names = self.topics if effect.topics is None else effect.topics
        return {name: self.topics[name] for name in names if name in self.topics and name not in self.broken}

    def _create_states(self, effect: effects.CreatePartitionStates) -> dict[TopicPartition, LeaderAndIsr]:
        return {tp: self.states.get(tp) or self._write_state(tp, state) for tp, state in effect.states.items()}

    def _update_states(self, effect: effects.UpdatePartitionStates) -> dict[TopicPartition, LeaderAndIsr]:
        for tp in effect.states.keys() & self.interference.keys():
            self.write_isr_as_leader(tp, self.interference.pop(tp))
        written = {}
        for tp, state in effect.states.items():
            held = self.states.get(tp)
            if held is not None and held.zk_version == state.zk_version:
                assert state.leader_epoch >= held.leader_epoch, f"{tp}: the leader epoch goes back"
                written[tp] = self._write_state(tp, replace(state, zk_version=state.zk_version + 1))
        return written

    def _write_assignment(self, effect: effects.WriteAssignment) -> bool:
        held = self.topics.get(effect.assignment.topic)
        if held is None:
            return False
        partitions = dict(sorted({**held.partitions, **effect.assignment.partitions}.items()))
        self.write_topic(replace(effect.assignment, partitions=partitions))
        return True

    def _delete_topic(self, effect: effects.DeleteTopicNodes) -> None:
        self.topics.pop(effect.topic, None)
        self.configs.pop(effect.topic, None)
        self.states = {tp: state for tp, state in self.states.items() if tp.topic != effect.topic}
        self._changed(Topic.path(effect.topic))
        self._changed(Topics.path, children=True)
        self._drop_marks(effects.DropDeletionMarks((effect.topic,)))

    def _drop_marks(self, effect: effects.DropDeletionMarks) -> None:
        self.to_delete -= set(effect.topics)
        self._changed(DeletedTopic.parent, children=True)

    def _drop_isr_notices(self, effect: effects.DropIsrNotifications) -> None:
        for name in effect.names:
            del self.isr_notices[name]
        self._changed(IsrChanges.path, children=True)

    def _drop_log_dir_notices(self, effect: effects.DropLogDirNotifications) -> None:
        for name in effect.names:
            del self.log_dir_notices[name]
        self._changed(LogDirFailures.path, children=True)

    def _send(self, effect: effects.Send) -> None:
        registered = self.registered.get(effect.broker_id)
        request: Request = effect.request
        if registered is None or request.broker_epoch != registered.epoch:  # type: ignore[attr-defined]
            return
        broker = self.brokers[effect.broker_id]
        answer: Event | None = None
        if isinstance(request, LeaderAndIsrRequest):
            answer = LeaderAndIsrAnswered(effect.broker_id, broker.lead_and_follow(request))
        elif isinstance(request, StopReplicaRequest):
            errors = broker.stop(request)
            answer = StopReplicaAnswered(effect.broker_id, errors) if errors else None
        elif isinstance(request, UpdateMetadataRequest):
            broker.learn(request)
        if answer is not None and broker.silent:
            self._held.setdefault(effect.broker_id, []).append(answer)
        elif answer is not None:
            self.enqueue(answer)


READS: dict[type, Callable[[World, Any], Any]] = {
    effects.Watch: World._watch,
    effects.ReadBrokers: lambda world, e: dict(world.registered),
    effects.ReadTopicNames: lambda world, e: set(world.topics),
    effects.DrawTopicId: World._draw_topic_id,
    effects.ReadTopics: World._read_topics,
    effects.ReadPartitionStates: lambda world, e: {tp: world.states[tp] for tp in e.partitions if tp in world.states},
    effects.ReadTopicConfigs: lambda world, e: {
        name: world.configs[name] for name in (world.configs if e.topics is None else e.topics) if name in world.configs
    },
    effects.ReadTopicsToDelete: lambda world, e: set(world.to_delete),
    effects.ReadIsrNotifications: lambda world, e: (
        list(world.isr_notices),
        {tp for tps in world.isr_notices.values() for tp in tps},
    ),
    effects.ReadLogDirNotifications: lambda world, e: (
        list(world.log_dir_notices),
        set(world.log_dir_notices.values()),
    ),
    effects.ReadReassignmentNode: lambda world, e: dict(world.reassignments),
    effects.ReadPreferredElectionNode: lambda world, e: set(world.preferred_elections),
    effects.Answer: lambda world, e: e.to(e.value),
    effects.Schedule: lambda world, e: world._scheduled.append((e.delay_ms, e.event)),
}

WRITES: dict[type, Callable[[World, Any], Any]] = {
    effects.CreatePartitionStates: World._create_states,
    effects.UpdatePartitionStates: lambda world, e: world._update_states(e),
    effects.WriteAssignment: World._write_assignment,
    effects.DeleteTopicNodes: World._delete_topic,
    effects.DropDeletionMarks: World._drop_marks,
    effects.DropIsrNotifications: World._drop_isr_notices,
    effects.DropLogDirNotifications: World._drop_log_dir_notices,
    effects.WriteReassignmentNode: lambda world, e: world.write_reassignments(dict(e.remaining)),
    effects.DropPreferredElectionNode: lambda world, e: world.write_preferred_elections(()),
    effects.Send: lambda world, e: world._send(e),
}
