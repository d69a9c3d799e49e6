"""Rounds in which nothing fails: before a story begins, and at its end, when the cluster must converge within a bounded
time (`convergence`)."""

from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.group_membership import MemberState
from odradek.sim.clients.transactional_producer import Phase
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.convergence import check_end, difference
from odradek.sim.invariants import Invariants

HEALING_ROUNDS = 400
ROUND_MS = 100
WARM_UP_ROUNDS = 100
_LATE_ROUNDS = 50
"""Rounds after which a broker that waits for the deletion of topics is back in any case."""
_BYTES = 100_000


class Healing:
    """Rounds of a cluster in which every message arrives and every client acts."""

    def __init__(self, cluster: SimulatedCluster, invariants: Invariants) -> None:
        self._cluster = cluster
        self._invariants = invariants

    def heal(self) -> None:
        cluster = self._cluster
        cluster.trace.append("all is well from now on")
        cluster.network.heal()
        cluster.world.session.catch_up()
        for broker in cluster.brokers.values():
            broker.mend_writes()
        cluster.copying.begin_to_heal()
        cluster.bank.begin_to_heal()
        for member in cluster.members:
            member.stalled_acts = 0
        for broker_id in sorted(cluster.world.znodes.registered.keys() - cluster.brokers.keys()):
            cluster.lose(broker_id)
        if cluster.world.context is None and cluster.world.znodes.registered:
            cluster.world.elect_controller(min(cluster.world.znodes.registered))
        cluster.world.run()
        late = self._return_all()
        for number in range(HEALING_ROUNDS):
            for broker_id, topics in list(late.items()):
                if number == _LATE_ROUNDS or not topics & cluster.world.znodes.to_delete:
                    cluster.bring_back(broker_id)
                    del late[broker_id]
            if not late and difference(cluster) is None:
                check_end(cluster)
                return
            self.round()
        raise Violation(f"no convergence: {difference(cluster)}")

    def _return_all(self) -> dict[int, set[str]]:
        """Bring brokers back. Return those that live without a session, with the topics that are being deleted and have
        no replica there: the brokers come back when that is done, and have to learn of it then."""
        cluster = self._cluster
        late: dict[int, set[str]] = {}
        for broker_id in cluster.broker_ids:
            broker = cluster.brokers.get(broker_id)
            if broker is not None and not broker.logs.table.all_online:
                cluster.end_process(broker, broker.crash)  # somebody has replaced the disk, or its cable
                if broker_id in cluster.world.znodes.registered:
                    cluster.lose(broker_id)
            if broker_id in cluster.brokers and broker_id in cluster.world.znodes.registered:
                continue
            others = {name for name in cluster.world.znodes.to_delete if not self._has_replica(broker_id, name)}
            if broker_id in cluster.brokers and others:
                late[broker_id] = others
            else:
                cluster.bring_back(broker_id)
        return late

    def _has_replica(self, broker_id: int, topic: str) -> bool:
        partitions = self._cluster.partitions_of(topic)
        return any(broker_id in self._cluster.replicas_of(tp).replicas for tp in partitions)

    def warm_up(self) -> None:
        """Let groups form and transactions begin before the first fault, so that there is something to disturb."""
        for _ in range(WARM_UP_ROUNDS):
            has_begun = all(producer.phase is not Phase.NEW for producer in self._cluster.transactional)
            has_begun = has_begun and self._cluster.bank.has_begun and self._cluster.copying.has_begun
            if has_begun and all(member.state is MemberState.READING for member in self._cluster.members):
                return
            self.round(begins=True)

    def round(self, *, begins: bool = False) -> None:
        """Let every client act and every message arrive. `begins`: producers begin transactions too."""
        cluster = self._cluster
        if cluster.world.context is None:
            cluster.world.elect_controller(min(cluster.world.znodes.registered, default=0))
        cluster.world.run()
        for broker in cluster.brokers.values():
            broker.load_coordinators()
            for leader_id in broker.fetchers.leaders():
                cluster.fetch(broker, leader_id, _BYTES)
            for change in list(broker.wanted_isr.values()):
                cluster.ask_for_isr(broker, change)
        for producer in cluster.producers.values():
            leader = cluster.elected_leader(producer.partition)
            if producer.batch is not None and not producer.is_waiting and leader is not None:
                cluster.produce(producer, leader)
        for librdkafka in cluster.librdkafka:
            for tp in librdkafka.queues:
                librdkafka.send(tp, cluster.chance, only_retries=True)
        cluster.java.send(cluster.chance, only_retries=True)
        for member in cluster.members:
            member.act(cluster.chance)
        for transactional in cluster.transactional:
            transactional.act(cluster.chance, begins=begins)
        cluster.copying.transformer_acts()
        cluster.bank.go_on()
        for tp in cluster.committed_reader.positions:
            if (leader := cluster.elected_leader(tp)) is not None and leader.leads(tp):
                cluster.read_committed(tp, leader)
        for message in list(cluster.network.messages):
            cluster.network.arrive(message)
            self._invariants.check_receiver(message.to)
        cluster.wait(ROUND_MS)
        self._invariants.check()
