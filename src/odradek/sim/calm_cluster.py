"""A healed cluster without faults, in which an incident happens while clients continue."""

from collections.abc import Callable
from random import Random

from odradek.broker.controller.core.events import ElectionAsked, ReassignmentsAsked
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.elect_leaders import ElectionType
from odradek.sim.actions import Actions
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.healing import Healing

_ROUNDS_MAX = 60


class CalmCluster:
    def __init__(self, cluster: SimulatedCluster, healing: Healing, actions: Actions) -> None:
        self.cluster = cluster
        self.healing = healing
        self._actions = actions

    @property
    def chance(self) -> Random:
        return self.cluster.chance

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.healing.round(begins=True)

    def until(self, is_so: Callable[[], bool], rounds_max: int = _ROUNDS_MAX) -> bool:
        """Let rounds pass until it is so; return whether it is."""
        for _ in range(rounds_max):
            if is_so():
                return True
            self.healing.round(begins=True)
        return is_so()

    def write(self) -> None:
        """Let every simple producer send a batch, so that consumers have something to do."""
        for producer in self.cluster.producers.values():
            leader = self.cluster.elected_leader(producer.partition)
            if leader is not None and leader.leads(producer.partition) and not producer.is_waiting:
                self.cluster.produce(producer, leader)

    def scratch_topic(self) -> str | None:
        """Return a topic that may be deleted, and is led; a new one if there is none."""
        if not self._actions.scratch_topics():
            self._actions.topic_is_created()
        names = self._actions.scratch_topics()
        self.until(lambda: all(self._is_led(TopicPartition(name, 0)) for name in names))
        led = [name for name in names if self._is_led(TopicPartition(name, 0))]
        return self.chance.choice(led) if led else None

    def _is_led(self, tp: TopicPartition) -> bool:
        leader = self.cluster.elected_leader(tp)
        return leader is not None and leader.leads(tp)

    def delete(self, topic: str) -> None:
        """Mark a topic for deletion, and let the controller begin with it."""
        self._actions.delete(topic)
        self.cluster.world.run()

    def move(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Move a partition, and let the first of the replicas lead it."""
        self.cluster.trace.append(f"{tp} is to move to {replicas}")
        self.cluster.world.enqueue(ReassignmentsAsked({tp: replicas}, lambda value: None))
        self.until(lambda: self._is_on(tp, replicas))
        self.cluster.world.enqueue(ElectionAsked(frozenset((tp,)), ElectionType.PREFERRED, lambda value: None))
        self.until(lambda: self._is_led(tp))

    def _is_on(self, tp: TopicPartition, replicas: tuple[int, ...]) -> bool:
        state, assignment = self.cluster.state(tp), self.cluster.replicas_of(tp)
        return not assignment.is_reassigning and state is not None and set(state.isr) == set(replicas)
