"""ZooKeeper and the controller of a simulated cluster: decisions of the broker's own code, their effects on values.

Effects happen as on ZooKeeper and the controller's channels: watches fire once, conditional writes lose races, requests
go to the channels that were given. The world refuses what may never happen: a leader epoch that goes back, a write
without a controller.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID

from odradek.broker.controller.core import effects
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.decisions import decide
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import ControllerElected, Event
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
from odradek.sim.zookeeper import READS, ControllerSession, Znodes

SOON_MS = 1000


@dataclass(frozen=True, slots=True)
class FormerController:
    """A controller whose session has ended, or that was replaced, and that doesn't know it: it decides about its events
    by its old state until it writes. The write is fenced, and it resigns."""

    context: ControllerContext
    znodes: Znodes
    """As a server of ZooKeeper that is behind has them."""
    events: deque[Event]


class ControllerDied(Exception):
    """The controller dies in the middle of a decision, as the story wants it."""


class Channels(Protocol):
    """Connections of the controller to the brokers."""

    def send(self, context: ControllerContext, effect: effects.Send, answered: Callable[[Event], None], /) -> None:
        """Send a request. An answer is an event; one to a controller that is gone by then is ignored."""

    def close(self, context: ControllerContext, broker_id: int, /) -> None: ...


def _ignore(*_: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks of a world."""

    on_event: Callable[[Event], None] = _ignore
    on_effect: Callable[[Effect, Any], None] = _ignore
    """An effect was performed, with this result."""
    on_decided: Callable[[Event], None] = _ignore
    on_end: Callable[[Event, Sequence[Effect]], None] = _ignore
    """An event was decided, or its controller died; these effects were begun."""
    on_unclean_election: Callable[[TopicPartition, int], None] = _ignore
    """A leader was elected that was not in the ISR, in this leader epoch."""


class World:
    def __init__(self, channels: Channels, listeners: Listeners | None = None) -> None:
        self.znodes = Znodes()
        self.session = ControllerSession(self.znodes, self._watch_fired)
        self.context: ControllerContext | None = None
        self.former: FormerController | None = None
        self.controller_epoch = 0
        self.interference: dict[TopicPartition, tuple[int, ...]] = {}  # ISRs that leaders write before the controller
        self.writes_left: int | None = None  # until the controller dies
        self._channels = channels
        self._listeners = listeners or Listeners()
        self._events: deque[Event] = deque()
        self._scheduled: list[tuple[int, Event]] = []
        self._zxid = 100

    # --- time ----------------------------------------------------------------------------------------------------

    @property
    def has_events(self) -> bool:
        return bool(self._events)

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
        """Run until no event is left; events that are due soon happen when no other is left."""
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
        self._listeners.on_event(event)
        begun: list[Effect] = []
        result: Any = None
        try:
            while True:
                effect = decision.send(result)
                begun.append(effect)
                result = self.perform(effect)
                self._listeners.on_effect(effect, result)
        except StopIteration:
            self._listeners.on_decided(event)
        except ControllerDied:
            self.controller_gone()
        self._listeners.on_end(event, begun)

    # --- brokers and controllers ---------------------------------------------------------------------------------

    def register(self, broker_id: int, rack: str | None = None) -> None:
        self._zxid += 1
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092 + broker_id)
        self.znodes.registered[broker_id] = Broker(broker_id, (endpoint,), rack, self._zxid)
        self._changed(BrokerRegistration.path(broker_id))
        self._changed(BrokerIds.path, children=True)

    def move(self, broker_id: int, port: int) -> None:
        """Write the registration anew, in the same session."""
        held = self.znodes.registered[broker_id]
        self.znodes.registered[broker_id] = replace(held, endpoints=(replace(held.endpoints[0], port=port),))
        self._changed(BrokerRegistration.path(broker_id))

    def lose(self, broker_id: int) -> None:
        """End the session, with all ephemeral nodes of it."""
        del self.znodes.registered[broker_id]
        if self.context is not None and self.context.broker_id == broker_id:
            self.controller_gone()
        self._changed(BrokerRegistration.path(broker_id))
        self._changed(BrokerIds.path, children=True)

    def controller_gone(self) -> None:
        if self.context is not None:
            self.former = FormerController(self.context, self.session.znodes.copy(), self._events.copy())
        self.context = None
        self.writes_left = None
        self._events.clear()
        self._scheduled.clear()
        self.session.end()

    def elect_controller(self, broker_id: int, **settings: Any) -> None:
        self.controller_gone()
        self.controller_epoch += 1
        term = ControllerTerm(self.controller_epoch, self.controller_epoch)
        self.context = ControllerContext(broker_id, "PLAINTEXT", term=term, **settings)
        self._events.append(ControllerElected())

    def former_controller_decides(self) -> None:
        """Let the controller before decide about its events; its requests go out, its first write ends it."""
        former = self.former
        while former is not None and former.events:
            decision, result = decide(former.events.popleft(), former.context), None
            try:
                while True:
                    result = self._perform_for(former, decision.send(result))
            except StopIteration:
                pass
            except ControllerDied:
                self.former = former = None

    def _perform_for(self, former: FormerController, effect: Effect) -> Any:
        kind = type(effect)
        if (read := READS.get(kind)) is not None:
            return read(former.znodes, effect)
        if isinstance(effect, effects.Send):
            self._channels.send(former.context, effect, self._answers_to(former.context))
        elif isinstance(effect, effects.CloseChannel):
            self._channels.close(former.context, effect.broker_id)
        elif kind in _WRITES:
            raise ControllerDied
        elif isinstance(effect, effects.Answer | effects.DrawTopicId):
            return _ACTIONS[kind](self, effect)
        return None

    # --- znodes that others write --------------------------------------------------------------------------------

    def write_topic(self, assignment: TopicAssignment) -> None:
        is_new = assignment.topic not in self.znodes.topics
        self.znodes.topics[assignment.topic] = assignment
        self._changed(Topic.path(assignment.topic))
        if is_new:
            self._changed(Topics.path, children=True)

    def write_isr_as_leader(self, tp: TopicPartition, isr: tuple[int, ...]) -> None:
        state = self.znodes.states[tp]
        self._write_state(tp, replace(state, isr=isr, zk_version=state.zk_version + 1))

    def _write_state(self, tp: TopicPartition, state: LeaderAndIsr) -> LeaderAndIsr:
        self._zxid += 1
        written = self.znodes.states[tp] = replace(state, written_zxid=self._zxid)
        return written

    def notify_isr_change(self, tp: TopicPartition) -> None:
        self._zxid += 1
        self.znodes.isr_notices[f"isr_change_{self._zxid:010}"] = frozenset((tp,))
        self._changed(IsrChanges.path, children=True)

    def notify_failed_directory(self, broker_id: int) -> None:
        self._zxid += 1
        self.znodes.log_dir_notices[f"log_dir_event_{self._zxid:010}"] = broker_id
        self._changed(LogDirFailures.path, children=True)

    def mark_for_deletion(self, topic: str) -> None:
        self.znodes.to_delete.add(topic)
        self._changed(DeletedTopic.parent, children=True)

    def write_reassignments(self, wanted: dict[TopicPartition, tuple[int, ...]]) -> None:
        self.znodes.reassignments = wanted
        self._changed(Reassignments.path)

    def write_preferred_elections(self, tps: Iterable[TopicPartition]) -> None:
        self.znodes.preferred_elections = set(tps)
        self._changed(PreferredElection.path)

    def draw_topic_id(self) -> UUID:
        self._zxid += 1
        return UUID(int=self._zxid)

    def _changed(self, path: str, *, children: bool = False) -> None:
        self.session.changed(path, children=children)

    def _watch_fired(self, path: str) -> None:
        event = event_of_znode(path)
        assert event is not None, f"no event for a change of {path}, which is watched"
        self.enqueue(event)

    # --- effects -------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Any:
        """Carry out an effect of the controller, and return its result."""
        kind = type(effect)
        if (read := READS.get(kind)) is not None:
            return read(self.session.znodes, effect)
        if (write := _WRITES.get(kind)) is not None:
            return self._write(write, effect)
        action = _ACTIONS.get(kind)
        return None if action is None else action(self, effect)

    def _write(self, write: "Callable[[World, Any], Any]", effect: Effect) -> Any:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise ControllerDied
            self.writes_left -= 1
        result = write(self, effect)
        if self.session.is_behind and not isinstance(effect, effects.Send):
            self.session.catch_up()
        return result

    def _create_states(self, effect: effects.CreatePartitionStates) -> dict[TopicPartition, LeaderAndIsr]:
        held = self.znodes.states
        return {tp: held.get(tp) or self._write_state(tp, state) for tp, state in effect.states.items()}

    def _update_states(self, effect: effects.UpdatePartitionStates) -> dict[TopicPartition, LeaderAndIsr]:
        for tp in effect.states.keys() & self.interference.keys():
            self.write_isr_as_leader(tp, self.interference.pop(tp))
        written = {}
        for tp, state in effect.states.items():
            held = self.znodes.states.get(tp)
            if held is not None and held.zk_version == state.zk_version:
                assert state.leader_epoch >= held.leader_epoch, f"{tp}: the leader epoch goes back"
                written[tp] = self._write_state(tp, replace(state, zk_version=state.zk_version + 1))
                if state.leader >= 0 and state.leader not in held.isr:
                    self._listeners.on_unclean_election(tp, state.leader_epoch)
        return written

    def _write_assignment(self, effect: effects.WriteAssignment) -> bool:
        held = self.znodes.topics.get(effect.assignment.topic)
        if held is None:
            return False
        partitions = dict(sorted({**held.partitions, **effect.assignment.partitions}.items()))
        self.write_topic(replace(effect.assignment, partitions=partitions))
        return True

    def _delete_topic(self, effect: effects.DeleteTopicNodes) -> None:
        self.znodes.topics.pop(effect.topic, None)
        self.znodes.configs.pop(effect.topic, None)
        self.znodes.states = {tp: state for tp, state in self.znodes.states.items() if tp.topic != effect.topic}
        self._changed(Topic.path(effect.topic))
        self._changed(Topics.path, children=True)
        self._drop_marks(effects.DropDeletionMarks((effect.topic,)))

    def _drop_marks(self, effect: effects.DropDeletionMarks) -> None:
        self.znodes.to_delete -= set(effect.topics)
        self._changed(DeletedTopic.parent, children=True)

    def _drop_isr_notices(self, effect: effects.DropIsrNotifications) -> None:
        for name in effect.names:
            del self.znodes.isr_notices[name]
        self._changed(IsrChanges.path, children=True)

    def _drop_log_dir_notices(self, effect: effects.DropLogDirNotifications) -> None:
        for name in effect.names:
            del self.znodes.log_dir_notices[name]
        self._changed(LogDirFailures.path, children=True)

    def _send(self, effect: effects.Send) -> None:
        assert self.context is not None
        self._channels.send(self.context, effect, self._answers_to(self.context))

    def _answers_to(self, context: ControllerContext) -> Callable[[Event], None]:
        def answered(event: Event) -> None:
            if self.context is context:
                self.enqueue(event)
            elif self.former is not None and self.former.context is context:
                self.former.events.append(event)

        return answered

    def _close_channel(self, effect: effects.CloseChannel) -> None:
        assert self.context is not None
        self._channels.close(self.context, effect.broker_id)


_WRITES: dict[type, Callable[[World, Any], Any]] = {
    effects.CreatePartitionStates: World._create_states,
    effects.UpdatePartitionStates: World._update_states,
    effects.WriteAssignment: World._write_assignment,
    effects.DeleteTopicNodes: World._delete_topic,
    effects.DropDeletionMarks: World._drop_marks,
    effects.DropIsrNotifications: World._drop_isr_notices,
    effects.DropLogDirNotifications: World._drop_log_dir_notices,
    effects.WriteReassignmentNode: lambda world, e: world.write_reassignments(dict(e.remaining)),
    effects.DropPreferredElectionNode: lambda world, e: world.write_preferred_elections(()),
    effects.Send: World._send,
}

_ACTIONS: dict[type, Callable[[World, Any], Any]] = {
    effects.Watch: lambda world, e: world.session.watch(e),
    effects.DrawTopicId: lambda world, e: world.draw_topic_id(),
    effects.Answer: lambda world, e: e.to(e.value),
    effects.Schedule: lambda world, e: world._scheduled.append((e.delay_ms, e.event)),
    effects.CloseChannel: World._close_channel,
}
