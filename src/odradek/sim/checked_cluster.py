"""A simulated cluster whose invariants are checked after each step."""

from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.violation import Violation
from odradek.sim.cluster import SimulatedCluster


class CheckedCluster(SimulatedCluster):
    def check(self) -> None:
        self._notice_return()
        for broker in self.brokers.values():
            self._check_broker(broker)
        to_delete, states = self.world.to_delete, self.world.states
        for tp, history in self.histories.items():
            history.check()
            if tp.topic not in to_delete and (state := states.get(tp)) is not None:
                history.check_isr(state, self.lost_tail)
        self._check_clients()
        if self.weak is not None and self.weak not in self.lost_tail and self.is_well(self.weak):
            self.weak = None

    def check_receiver(self, broker_id: int | None) -> None:
        """Check the logs of a broker that has received a message: nothing else of brokers has changed."""
        broker = self.brokers.get(broker_id) if broker_id is not None else None
        if broker is not None:
            self._check_broker(broker)
        self._check_clients()

    def _notice_return(self) -> None:
        """A broker that lost its tail is excused until the controller has noticed that it was away."""
        context = self.world.context
        if self.weak is not None and context is not None and context.brokers:
            known = context.brokers.get(self.weak)
            if known is None or known.epoch > self.epoch_before:
                self.lost_tail.discard(self.weak)

    def _check_clients(self) -> None:
        self.group.check()
        self.copied_offsets.check()
        self.transactions.check()
        for client in (*self.pipelined, *self.transactional, *self.transformers):
            if client.fault:
                raise Violation(client.fault)

    def _check_broker(self, broker: SimulatedBroker) -> None:
        logs, partitions, histories = broker.logs.table.logs, broker.replicas.partitions, self.histories
        for tp, log in logs.items():
            history = histories.get(tp)
            if history is not None:
                history.check_log(broker.id, broker, log, partitions.get(tp))
        known = self._logs_of.get(broker.id, frozenset())
        if logs.keys() != known:
            if broker.logs.table.all_online:
                for tp in known - logs.keys():
                    histories[tp].forget(broker.id)
            self._logs_of[broker.id] = known | logs.keys() if not broker.logs.table.all_online else set(logs)
        for tp in self.committed_reader.positions:
            self._check_stable(tp, broker)

    def _check_stable(self, tp: TopicPartition, broker: SimulatedBroker) -> None:
        replica = broker.replicas.partitions.get(tp)
        if replica is not None and replica.is_leader:
            stable = replica.committed.last_stable_offset(replica.high_watermark)
            self.transactions.stable(tp, broker, replica.leader_epoch, stable)

    def is_well(self, broker_id: int) -> bool:
        """Return whether the broker lives, and is in sync in all its partitions."""
        if broker_id not in self.brokers or broker_id not in self.world.registered:
            return False
        if broker_id in self.network.frozen or not self.brokers[broker_id].logs.table.all_online:
            return False
        for tp in self.all_partitions():
            state = self.state(tp)
            if broker_id in self.replicas_of(tp).replicas and (state is None or broker_id not in state.isr):
                return False
        return True
