"""The end of a story: nothing fails any more, and within a bounded time everything must come together again.

Every replica is in sync and equal, every metadata cache right, every reassignment and deletion done, all that clients
had to send acknowledged, and the group has read and committed everything.
"""

from pathlib import Path

from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.record_checks import LogKind, check_producer, read_values
from odradek.sim.checkers.transaction_history import check_copies, committed_values
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.group_member import GROUP, OFFSETS, MemberState
from odradek.sim.clients.transactional_producer import Phase
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.invariants import Invariants
from odradek.sim.options import COPIES, Options

HEALING_ROUNDS = 400
ROUND_MS = 100
WARM_UP_ROUNDS = 100
_BYTES = 100_000


class HealingCluster(SimulatedCluster):
    def __init__(self, directory: Path, options: Options | None = None) -> None:
        super().__init__(directory, options)
        self._invariants = Invariants(self)

    def check(self) -> None:
        self._invariants.check()

    def heal(self) -> None:
        self.trace.append("all is well from now on")
        self.network.heal()
        self.world.catch_up()
        for transformer in self.transformers:
            transformer.hurries = True
        for broker_id in sorted(self.world.registered.keys() - self.brokers.keys()):
            self.lose(broker_id)
        if self.world.context is None and self.world.registered:
            self.world.elect_controller(min(self.world.registered))
        self.world.run()
        for broker_id in self.broker_ids:
            broker = self.brokers.get(broker_id)
            if broker is not None and not broker.logs.table.all_online:
                self.end_process(broker, broker.crash)  # somebody has replaced the disk, or its cable
                if broker_id in self.world.registered:
                    self.lose(broker_id)
            if broker_id not in self.brokers or broker_id not in self.world.registered:
                self.bring_back(broker_id)
        for _ in range(HEALING_ROUNDS):
            if self.missing() is None:
                self.check_end()
                return
            self._healing_round()
        raise Violation(f"no convergence: {self.missing()}")

    def warm_up(self) -> None:
        """Let groups form and transactions begin before the first fault, so that there is something to disturb."""
        for _ in range(WARM_UP_ROUNDS):
            has_begun = all(producer.phase is not Phase.NEW for producer in self.transactional)
            if has_begun and all(member.state is MemberState.READING for member in self.members):
                return
            self._healing_round(begins=True)

    def check_end(self) -> None:
        if self.members:
            self._check_committed()
        self._check_transactions_end()
        for tp in self.all_partitions():
            replicas = self.replicas_of(tp).replicas
            logs = {broker_id: self.brokers[broker_id].replicas.partitions[tp].log for broker_id in replicas}
            self.histories[tp].check_end(logs)
            if tp not in self.consumed:
                continue
            for broker_id, log in logs.items():
                values = read_values(log)
                kind = LogKind(is_whole=log.log_start_offset == 0, is_compacted=self.histories[tp].is_compacted)
                for producer in self.pipelined:
                    check_producer(producer, tp, values, kind, where=f"broker {broker_id}")

    def _check_committed(self) -> None:
        """Ask the coordinator for the group's offsets."""
        coordinator = self.elected_leader(OFFSETS)
        assert coordinator is not None
        for tp, found in coordinator.groups.offsets.committed(GROUP, list(self.consumed)).items():
            self.group.answered(tp, 0 if found is None else found.offset)
        self.group.check()

    def _healing_round(self, *, begins: bool = False) -> None:
        if self.world.context is None:
            self.world.elect_controller(0)
        self.world.run()
        for broker in self.brokers.values():
            broker.load_coordinators()
            for leader_id in broker.leaders_followed():
                self.fetch(broker, leader_id, _BYTES)
            for change in list(broker.wanted_isr.values()):
                self.ask_for_isr(broker, change)
        for producer in self.producers.values():
            leader = self.elected_leader(producer.partition)
            if producer.batch is not None and not producer.is_waiting and leader is not None:
                self.produce(producer, leader)
        for librdkafka in self.librdkafka:
            for tp in librdkafka.queues:
                librdkafka.send(tp, self.chance, only_retries=True)
        self.java.send(self.chance, only_retries=True)
        for member in self.members:
            member.act(self.chance)
        for transactional in self.transactional:
            transactional.act(self.chance, begins=begins)
        for transformer in self.transformers:
            transformer.act(self.chance)
        self.drop_fenced()
        for tp in self.committed_reader.positions:
            if (leader := self.elected_leader(tp)) is not None and leader.leads(tp):
                self.read_committed(tp, leader)
        for message in list(self.network.messages):
            self.network.arrive(message)
            self._invariants.check_receiver(message.to)
        self.wait(ROUND_MS)
        self.check()

    def missing(self) -> str | None:
        """Return the first difference from a healthy cluster; None if there is none."""
        for tp in self.all_partitions():
            if (missing := self._missing_in(tp)) is not None:
                return f"{tp}: {missing}, {self.state(tp)}"
        if self.world.to_delete:
            return f"topics to delete: {sorted(self.world.to_delete)}"
        if waiting := [p.number for p in self.producers.values() if p.batch is not None]:
            return f"producers {waiting} have something to send"
        if waiting := [p.number for p in self.pipelined if not p.is_done]:
            return f"producers {waiting} have something to send"
        for broker in self.brokers.values():
            if (missing := self._missing_in_metadata(broker)) is not None:
                return missing
        return self._missing_in_group() or self._missing_in_transactions()

    def _missing_in(self, tp: TopicPartition) -> str | None:
        state, assignment = self.state(tp), self.replicas_of(tp)
        if assignment.is_reassigning:
            return f"reassignment under way, {assignment}"
        if state is None or set(state.isr) != set(assignment.replicas):
            return "replicas out of sync"
        ends = set()
        for broker_id in assignment.replicas:
            replica = self.brokers[broker_id].replicas.partitions.get(tp)
            if replica is None:
                return f"broker {broker_id} has no replica"
            ends |= {replica.log.log_end_offset, replica.high_watermark}
        return None if len(ends) == 1 else f"replicas end at {sorted(ends)}"

    def _missing_in_metadata(self, broker: SimulatedBroker) -> str | None:
        """Return the first difference of the broker's metadata from ZooKeeper."""
        image = broker.metadata.image
        if image.brokers.keys() != set(self.broker_ids):
            return f"broker {broker.id} knows brokers {sorted(image.brokers)}"
        if image.topics.keys() != self.world.topics.keys():
            return f"broker {broker.id} knows topics {sorted(image.topics)}"
        for tp in self.all_partitions():
            known, state = image.partition(tp), self.state(tp)
            told = (known.leader, known.leader_epoch, known.isr) if known is not None else None
            if state is not None and told != (state.leader, state.leader_epoch, state.isr):
                return f"broker {broker.id} knows {told} of {tp}, which is {state}"
        return None

    def read_committed(self, tp: TopicPartition, leader: SimulatedBroker) -> None:
        """Read from a broker that believes it leads: committed offsets are in range of every such broker, for ever."""
        offset = self.committed_reader.positions[tp]
        if error := self.committed_reader.read(tp, leader):
            raise Violation(f"{tp}: leader {leader.id} tells a reader of committed records at {offset}: {error.name}")

    def _missing_in_transactions(self) -> str | None:
        """Every transaction is over, if need be by its timeout; nothing holds a reader of committed records back."""
        if waiting := [p.number for p in self.transactional if not p.is_done]:
            return f"transactional producers {waiting} have something to end"
        for tp, position in self.committed_reader.positions.items():
            leader = self.elected_leader(tp)
            end = leader.replicas.partitions[tp].high_watermark if leader is not None else -1
            if position != end:
                return f"a reader of committed records is at {position} of {tp}, which ends at {end}"
        return self._missing_in_copies()

    def drop_fenced(self) -> None:
        """A transformer that was replaced ends when it is fenced."""
        if self.transformers:
            *replaced, last = self.transformers
            self.transformers = [each for each in replaced if each.phase is not Phase.NEW] + [last]

    def _missing_in_copies(self) -> str | None:
        """The transformer has copied everything, and those that it replaced are gone."""
        if not self.transformers:
            return None
        *replaced, last = self.transformers
        if waiting := [each.number for each in replaced if not each.is_done]:
            return f"transformers {waiting} are not fenced"
        leader = self.elected_leader(last.source)
        end = leader.replicas.partitions[last.source].high_watermark if leader is not None else -1
        if not last.is_done or last.position != end:
            return f"the transformer is {last.phase.name} at {last.position} of {last.source}, which ends at {end}"
        return None

    def _check_transactions_end(self) -> None:
        ledger = list(self.committed_reader.positions)
        for broker_id in self.broker_ids:
            logs = {tp: self.brokers[broker_id].logs.table.get(tp) for tp in ledger}
            held = {tp: committed_values(log) for tp, log in logs.items() if log is not None}
            if held.keys() == set(ledger):
                self.transactions.check_end(held, f"broker {broker_id}")
        leaders = {tp: self.elected_leader(tp) for tp in ledger}
        read = {tp: committed_values(b.replicas.partitions[tp].log) for tp, b in leaders.items() if b is not None}
        self.transactions.check_end(read, "the leaders")
        self.transactions.check_read(read)
        self._check_copies()

    def _check_copies(self) -> None:
        """Each record has exactly one copy in a committed transaction."""
        if not self.transformers:
            return
        parts = self.partitions_of(COPIES)
        leaders = {tp: self.elected_leader(tp) for tp in parts}
        held = {tp: committed_values(b.replicas.partitions[tp].log) for tp, b in leaders.items() if b is not None}
        self.copied.check_end(held, "the leaders")
        position = self.transformers[-1].position or 0
        check_copies([value for values in held.values() for value in values], position)

    def _missing_in_group(self) -> str | None:
        if not self.members:
            return None
        owned: dict[TopicPartition, int] = {}
        for member in self.members:
            if not member.is_done:
                return f"member {member.number} is {member.state.name}, at {member.positions}"
            owned |= member.committed
        for tp in self.consumed:
            leader = self.elected_leader(tp)
            end = leader.replicas.partitions[tp].high_watermark if leader is not None else -1
            if owned.get(tp) != end:
                return f"the group is at {owned.get(tp)} of {tp}, which ends at {end}"
        return None
