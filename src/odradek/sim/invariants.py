"""Invariants of a simulated cluster, to be checked after each step."""

from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.partition_history import PartitionHistory
from odradek.sim.checkers.violation import Violation
from odradek.sim.cluster import SimulatedCluster


class Invariants:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._logs_of: dict[int, set[TopicPartition]] = {}  # as last checked, by broker

    def check(self) -> None:
        self._notice_return()
        for broker in self._cluster.brokers.values():
            self._check_broker(broker)
        to_delete, states = self._cluster.world.znodes.to_delete, self._cluster.world.znodes.states
        for tp, history in self._cluster.histories.items():
            history.check()
            if tp.topic not in to_delete and (state := states.get(tp)) is not None:
                history.check_isr(state, self._cluster.lost_tail)
                if tp in self._cluster.consumed:
                    self._check_end(tp, history, state)
        self._check_clients()
        if (
            self._cluster.weak is not None
            and self._cluster.weak not in self._cluster.lost_tail
            and self._cluster.is_well(self._cluster.weak)
        ):
            self._cluster.weak = None

    def _check_end(self, tp: TopicPartition, history: PartitionHistory, state: LeaderAndIsr) -> None:
        """Check the end that the present leader would tell a consumer, once it knows it."""
        leader = self._cluster.brokers.get(state.leader)
        replica = None if leader is None else leader.replicas.partitions.get(tp)
        if replica is None or replica.leader_epoch != state.leader_epoch or not replica.is_leader:
            return
        if replica.committed.end_is_known:
            history.end_told(state.leader, replica.high_watermark)

    def check_receiver(self, broker_id: int | None) -> None:
        """Check the logs of a broker that has received a message: nothing else of brokers has changed."""
        broker = self._cluster.brokers.get(broker_id) if broker_id is not None else None
        if broker is not None:
            self._check_broker(broker)
        self._check_clients()

    def _notice_return(self) -> None:
        """A broker that lost its tail is excused until the controller has noticed that it was away."""
        context = self._cluster.world.context
        if self._cluster.weak is not None and context is not None and context.brokers:
            known = context.brokers.get(self._cluster.weak)
            if known is None or known.epoch > self._cluster.epoch_before:
                self._cluster.lost_tail.discard(self._cluster.weak)

    def _check_clients(self) -> None:
        self._cluster.group.check()
        self._cluster.copying.offsets.check()
        self._cluster.transactions.check()
        cluster = self._cluster
        for client in (*cluster.pipelined, *cluster.transactional, cluster.copying, cluster.bank):
            if client.fault:
                raise Violation(client.fault)

    def _check_broker(self, broker: SimulatedBroker) -> None:
        logs, partitions, histories = broker.logs.table.logs, broker.replicas.partitions, self._cluster.histories
        for tp, log in logs.items():
            history = histories.get(tp)
            if history is not None:
                history.check_log(broker.id, broker, log, partitions.get(tp))
        known = self._logs_of.get(broker.id, set())
        if logs.keys() != known:
            if broker.logs.table.all_online:
                for tp in known - logs.keys():
                    histories[tp].forget(broker.id)
            self._logs_of[broker.id] = known | logs.keys() if not broker.logs.table.all_online else set(logs)
        for tp in self._cluster.committed_reader.positions:
            self._check_stable(tp, broker)

    def _check_stable(self, tp: TopicPartition, broker: SimulatedBroker) -> None:
        replica = broker.replicas.partitions.get(tp)
        if replica is not None and replica.is_leader:
            stable = replica.committed.last_stable_offset(replica.high_watermark)
            self._cluster.transactions.stable(tp, broker, replica.leader_epoch, stable)
