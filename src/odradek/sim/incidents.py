"""Incidents: a few events in the order that a known bug needs, in a cluster that is healthy otherwise.

Faults that are drawn meet some schedules once in a thousand stories, and what a bug leaves behind is often repaired by
the next fault. So an incident comes after the cluster has healed, and has to be survived: it heals again.
"""

from odradek.model.topology import TopicPartition
from odradek.sim.calm_cluster import CalmCluster
from odradek.sim.clients.group_membership import OFFSETS
from odradek.sim.clients.transactional_producer import STATE
from odradek.sim.network import Message

_HOPS = 6
"""Number of messages one after the other from which the controller learns that the other brokers have deleted."""
_CLEANINGS = 2
"""Number of cleanings of each log: a marker may go with the second one."""
_CLEANED_LOGS_MAX = 10
_COMMITS = 20
"""Rounds in which another broker coordinates."""


class Incidents:
    """Each public method is a step of a story."""

    def __init__(self, calm: CalmCluster) -> None:
        self._calm = calm
        self._cluster = calm.cluster

    def cluster_heals(self) -> None:
        """Let the faults end; the cluster must converge."""
        self._calm.healing.heal()
        self._cluster.copying.go_on_after_healing()

    def deleting_broker_returns(self) -> None:
        """The session of a broker that is to delete a replica ends, and a new one begins before the controller acts.
        The request reaches it late, and its answer comes when the deletion has begun anew."""
        topic, context = self._calm.scratch_topic(), self._cluster.world.context
        if topic is None or context is None:
            return
        self._calm.delete(topic)
        replicas = self._cluster.replicas_of(TopicPartition(topic, 0)).replicas
        asked = [each for each in replicas if each != context.broker_id and self._stops(each)]
        if asked:
            broker_id = self._calm.chance.choice(asked)
            self._let_others_answer(broker_id)
            self._cluster.trace.append(f"the session of broker {broker_id} expires")
            self._cluster.lose(broker_id)
            self._cluster.bring_back(broker_id)
            for message in self._stops(broker_id):
                self._cluster.network.arrive(message)
        self._calm.rounds(1)

    def logs_are_cleaned(self) -> None:
        """Clean all compacted logs until nothing is left to clean, and let others coordinate (KAFKA-14055)."""
        self._calm.write()
        self._calm.rounds(_COMMITS)
        for _ in range(_CLEANINGS):
            for broker in self._cluster.brokers.values():
                for partition in broker.replicas.partitions.values():
                    partition.log.roll()
                for _ in range(_CLEANED_LOGS_MAX):
                    if not broker.clean_logs():
                        break
        for tp in self._coordinated():
            first, *others = self._cluster.replicas_of(tp).replicas
            self._calm.move(tp, (*others, first))

    def _coordinated(self) -> list[TopicPartition]:
        """Return the partitions of coordinators that are led."""
        led = {tp: self._cluster.elected_leader(tp) for tp in (OFFSETS, STATE)}
        return [tp for tp, leader in led.items() if leader is not None and leader.leads(tp)]

    def _let_others_answer(self, broker_id: int) -> None:
        network = self._cluster.network
        for _ in range(_HOPS):
            stops = self._stops(broker_id)
            for message in [each for each in network.first_ones() if each not in stops]:
                network.arrive(message)
            self._cluster.world.run()

    def _stops(self, broker_id: int) -> list[Message]:
        sent = self._cluster.network.messages
        return [each for each in sent if each.to == broker_id and each.text.startswith("StopReplicaRequest ")]

    def coordinator_moves_away_and_back(self) -> None:
        """Move the log of a coordinator to other brokers, let them coordinate, and move it back (KAFKA-9235)."""
        if not (coordinated := self._coordinated()):
            return
        tp = self._calm.chance.choice(coordinated)
        coordinator, before = self._cluster.world.znodes.states[tp].leader, self._cluster.replicas_of(tp).replicas
        stay = tuple(each for each in before if each != coordinator)
        others = [each for each in self._cluster.broker_ids if each not in before]
        self._calm.move(tp, (*stay, *others[:1]))
        self._calm.write()
        self._calm.rounds(_COMMITS)
        if self._calm.chance.random() < 0.5:
            self._calm.move(tp, (coordinator, *stay))
