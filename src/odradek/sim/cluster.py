"""Brokers, a controller and a network in one thread.

Real: logs on disk, partitions, acknowledgement, truncation, ISR arithmetic, the group coordinator, the handlers of the
controller's requests and every decision of the controller. In memory: ZooKeeper, the network, time, clients.
Nothing happens by itself: `story` says what does.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topic_names import is_internal
from odradek.model.topology import LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition
from odradek.sim.bank import Bank
from odradek.sim.broker import SimulatedBroker
from odradek.sim.broker_clock import BrokerClock
from odradek.sim.broker_requests import Peers
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.partition_history import PartitionHistory
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.checkers.unclean_history import UncleanPartitionHistory
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.committed_reader import CommittedReader
from odradek.sim.clients.group_member import GROUP, GroupMember
from odradek.sim.clients.java_producer import JavaProducer
from odradek.sim.clients.librdkafka_producer import LibrdkafkaProducer
from odradek.sim.clients.simple_producer import Producer
from odradek.sim.clients.transactional_producer import TransactionalProducer
from odradek.sim.controller_channels import ControllerChannels
from odradek.sim.copying import Copying
from odradek.sim.network import Network
from odradek.sim.options import ACCOUNTS, COPIES, LEDGER, LOOSE, UNCLEAN, Options
from odradek.sim.replica_fetchers import wire_data
from odradek.sim.slow_disks import SlowDisks
from odradek.sim.world import Listeners, World

START_MS = 1_700_000_000_000


class SimulatedCluster:
    def __init__(self, directory: Path, options: Options | None = None) -> None:
        self.options = options or Options()
        self.chance = Random(0)
        self.trace: list[str] = []
        self.clock = ManualClock(START_MS)
        self.brokers: dict[int, SimulatedBroker] = {}
        self.network = Network(self.trace.append, SlowDisks(self.clock))
        channels = ControllerChannels(self.network, self.brokers, self.chance)
        self.world = World(channels, Listeners(on_unclean_election=self._unclean_election))
        self.histories: dict[TopicPartition, PartitionHistory] = {}
        self.group = GroupHistory(GROUP)
        self.lost_tail: set[int] = set()  # brokers whose loss the controller doesn't know of yet
        self.weak: int | None = None  # the broker that lost its tail and is not back in the ISR
        self.epoch_before = -1  # under which that one was registered when it lost it
        self.dead_controller: int | None = None  # the controller that died, until its session ends
        self._isr_asked: dict[tuple[int, TopicPartition], IsrChange] = {}
        self._directory = directory
        self._producer_ids = count(1)
        coordinators_producer_ids = count(10_000)
        self._peers = Peers(self.network, self.brokers.get, lambda: next(coordinators_producer_ids))
        self.broker_ids = self.options.broker_ids
        self.clocks = {broker_id: BrokerClock(self.clock) for broker_id in self.broker_ids}
        for broker_id in self.broker_ids:
            self.start(broker_id)
            self.register(broker_id)
        self.world.elect_controller(0)
        for plan in self.options.topics:
            replicas = {n: self._placed(n, plan.replication) for n in range(plan.partitions)}
            self.create_topic(plan.name, replicas)
        self.world.run()
        self._start_clients()

    def _start_clients(self) -> None:
        others = (LEDGER, COPIES, LOOSE, ACCOUNTS)
        names = [plan.name for plan in self.options.topics if plan.name not in others and not is_internal(plan.name)]
        own = [tp for name in names for tp in self.partitions_of(name)]
        loose = self.partitions_of(LOOSE)
        self.producers = {tp: self.new_producer(tp) for tp in (*own, *loose)}
        race, records_max = self.options.race, self.options.records_max
        self.librdkafka = [
            LibrdkafkaProducer(number, own, self, race=race, records_max=records_max) for number in (101, 102)
        ]
        self.java = JavaProducer(201, own, self, records_max=records_max)
        members = (1, 2, 3) if self.options.groups else ()
        self.members = [GroupMember(number, own, self, self.group) for number in members]
        self.consumed = dict.fromkeys(own, 0)
        ledger = self.partitions_of(LEDGER)
        self.transactions = TransactionHistory()
        numbers = (301, 302) if ledger else ()
        version = self.options.transaction_version
        has_keys = self.options.plan(LEDGER).is_compacted
        self.transactional = [
            TransactionalProducer(number, ledger, self, self.transactions, version=version, has_keys=has_keys)
            for number in numbers
        ]
        for producer in self.transactional:
            producer.keeps_id = True
        self.committed_reader = CommittedReader(ledger, self.transactions)
        source, in_group = TopicPartition(self.options.topics[0].name, 0), self.options.copies_in_group
        self.copying = Copying(self, source, self.partitions_of(COPIES), version=version, in_group=in_group)
        self.bank = Bank(self, self.partitions_of(ACCOUNTS), version)

    def new_producer(self, tp: TopicPartition) -> Producer:
        begins_anew = (lambda: next(self._producer_ids)) if tp.topic == LOOSE else None
        return Producer(next(self._producer_ids), tp, records_max=self.options.records_max, begins_anew=begins_anew)

    # ---- topics

    def _placed(self, first: int, replication: int) -> ReplicaAssignment:
        brokers = self.broker_ids
        return ReplicaAssignment(tuple(brokers[(first + n) % len(brokers)] for n in range(replication)))

    def create_topic(self, name: str, replicas: dict[int, ReplicaAssignment]) -> None:
        topic_id = self.world.draw_topic_id()
        self.world.write_topic(TopicAssignment(name, topic_id, replicas))
        plan = self.options.plan(name)
        if plan.is_unclean:
            self.world.znodes.configs[name] = {UNCLEAN: "true"}
        for number in replicas:
            tp = TopicPartition(name, number)
            self.histories[tp] = (
                UncleanPartitionHistory(str(tp))
                if plan.is_unclean
                else PartitionHistory(str(tp), is_compacted=plan.is_compacted)
            )

    def _unclean_election(self, tp: TopicPartition, leader_epoch: int) -> None:
        history = self.histories.get(tp)
        if isinstance(history, UncleanPartitionHistory):
            self.trace.append(f"{tp}: unclean election in epoch {leader_epoch}")
            history.elected_uncleanly(leader_epoch)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        assignment = self.world.znodes.topics.get(topic)
        return [TopicPartition(topic, number) for number in assignment.partitions] if assignment is not None else []

    def all_partitions(self) -> list[TopicPartition]:
        return [tp for topic in self.world.znodes.topics for tp in self.partitions_of(topic)]

    def state(self, tp: TopicPartition) -> LeaderAndIsr | None:
        return self.world.znodes.states.get(tp)

    def replicas_of(self, tp: TopicPartition) -> ReplicaAssignment:
        return self.world.znodes.topics[tp.topic].partitions[tp.partition]

    # ---- what clients know

    def elected_leader(self, tp: TopicPartition) -> SimulatedBroker | None:
        state = self.state(tp)
        return self.brokers.get(state.leader) if state is not None else None

    def lives(self, broker: SimulatedBroker) -> bool:
        return self.brokers.get(broker.id) is broker

    def coordinates(self, broker: SimulatedBroker, tp: TopicPartition) -> bool:
        state, partition = self.state(tp), broker.replicas.partitions.get(tp)
        if state is None or partition is None or state.leader != broker.id:
            return False
        return partition.is_leader and partition.leader_epoch == state.leader_epoch

    # ---- the controller

    def was_asked(self, broker: SimulatedBroker, change: IsrChange) -> bool:
        """Return whether the leader has asked for this change of the ISR, and may be waiting for the answer."""
        return self._isr_asked.get((broker.id, change.partition)) is change

    def ask_for_isr(self, broker: SimulatedBroker, change: IsrChange) -> None:
        tp, epoch = change.partition, broker.gate.broker_epoch
        self._isr_asked[broker.id, tp] = change
        wanted = LeaderAndIsr(broker.id, change.leader_epoch, change.isr, -1, change.partition_epoch)
        seen = {tp: dict(zip(change.isr, change.broker_epochs, strict=True))}

        def answered(results: Any) -> None:
            if isinstance(results, dict):
                answering = self.world.context.broker_id if self.world.context is not None else None
                found = results[tp]
                answer = found.code if isinstance(found, KafkaError) else found
                text, take = f"{tp}: ISR answer to {broker.id}", partial(self._answer_isr, broker, change, answer)
                self.network.post(text, take, to=broker.id, sender=answering)

        def deliver() -> None:
            self.world.enqueue(IsrChangeAsked(broker.id, epoch, {tp: wanted}, answered, seen))

        self.network.post(f"{tp}: broker {broker.id} asks for the ISR {change.isr}", deliver, sender=broker.id)

    def _answer_isr(self, broker: SimulatedBroker, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> None:
        if self.lives(broker) and broker.wanted_isr.get(change.partition) is change:
            del broker.wanted_isr[change.partition]
            broker.replicas.isr_answered(change, answer)

    # ---- replication and time

    def fetch(self, broker: SimulatedBroker, leader_id: int, max_bytes: int) -> None:
        targets = broker.fetchers.next_fetch(leader_id, max_bytes)
        if not targets:
            return
        epoch = broker.gate.broker_epoch
        terms = FetchTerms(0, 1, max_bytes, 0, replica_id=broker.id, replica_epoch=epoch, listener="PLAINTEXT")

        def give_up() -> None:
            broker.fetchers.give_up(targets)

        def deliver() -> None:
            leader = self.brokers.get(leader_id)
            if leader is None:
                give_up()
                return
            outcomes: list[FetchOutcome] = []
            leader.replicas.fetch(targets, terms, outcomes.extend)
            self._answer_fetch(broker, targets, outcomes, leader_id, give_up)

        where = ", ".join(f"{t.partition} from {t.fetch_offset} in epoch {t.current_leader_epoch}" for t in targets)
        text = f"fetch of {broker.id} at {leader_id}: {where}"
        self.network.post(text, deliver, give_up, to=leader_id, sender=broker.id)

    def _answer_fetch(
        self,
        broker: SimulatedBroker,
        targets: list[FetchTarget],
        outcomes: list[FetchOutcome],
        leader_id: int,
        give_up: Callable[[], None],
    ) -> None:
        answers = [wire_data(outcome) for outcome in outcomes]

        def deliver() -> None:
            if self.lives(broker):
                leader = self.brokers.get(leader_id)
                for target, data in zip(targets, answers, strict=True):
                    broker.fetchers.take(target, data, None if leader is None else leader.replicas)

        outcomes_text = ", ".join(_outcome_text(outcome) for outcome in outcomes)
        text = f"answer to the fetch of {broker.id}: {outcomes_text}"
        self.network.post(text, deliver, give_up, to=broker.id, sender=leader_id, writes=True)

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        for broker in list(self.brokers.values()):
            if broker.id not in self.network.frozen:
                broker.reaper.expire_due()
                broker.roles.check_replicas()
                if self.options.transactions:
                    broker.transactions.abort_timed_out()

    # ---- clients

    def produce(self, producer: Producer, broker: SimulatedBroker) -> None:
        producer.send(self.chance, broker, self, self.histories[producer.partition])

    def read_committed(self, tp: TopicPartition, leader: SimulatedBroker) -> None:
        """Read from a broker that believes it leads: committed offsets are in range of it, for ever."""
        offset = self.committed_reader.positions[tp]
        if error := self.committed_reader.read(tp, leader):
            raise Violation(f"{tp}: leader {leader.id} tells a reader of committed records at {offset}: {error.name}")

    @property
    def pipelined(self) -> list[LibrdkafkaProducer | JavaProducer]:
        return [*self.librdkafka, self.java]

    @property
    def acknowledged_records(self) -> int:
        pipelined = sum(producer.acknowledged for producer in self.pipelined)
        simple = sum(producer.sequence for producer in self.producers.values())
        committed = self.transactions.committed + self.copying.history.committed + self.bank.history.committed
        return pipelined + simple + committed

    # ---- the lives of brokers

    def start(self, broker_id: int) -> None:
        directories = [self._directory / f"{broker_id}-{number}" for number in range(self.options.directories)]
        self.brokers[broker_id] = SimulatedBroker(
            broker_id,
            directories,
            self.clocks[broker_id],
            self.options,
            self._peers,
            partial(self.world.notify_failed_directory, broker_id),
        )

    def register(self, broker_id: int) -> None:
        self.world.register(broker_id, f"rack-{broker_id % self.options.racks}")
        self.brokers[broker_id].gate.broker_epoch = self.world.znodes.registered[broker_id].epoch

    def lose(self, broker_id: int) -> None:
        self.world.lose(broker_id)
        if broker_id not in self.brokers:
            self._forget_former_controller(broker_id)
        if self.dead_controller == broker_id:
            self.dead_controller = None

    def end_process(self, broker: SimulatedBroker, end: Callable[[], None]) -> None:
        del self.brokers[broker.id]
        self.network.frozen.discard(broker.id)
        self.network.disks.forget(broker.id)
        end()
        self._peers.disconnect(broker)
        if self.world.context is not None and self.world.context.broker_id == broker.id:
            self.world.controller_gone()
            self.dead_controller = broker.id
        self._forget_former_controller(broker.id)
        for producer in self.producers.values():
            if producer.waits_for is broker:
                producer.waits_for = None
        for pipelined in self.pipelined:
            for connection in list(pipelined.connections.values()):
                if connection.broker is broker:
                    pipelined.disconnect(connection)

    def _forget_former_controller(self, broker_id: int) -> None:
        """Its process is dead."""
        if self.world.former is not None and self.world.former.context.broker_id == broker_id:
            self.world.former = None

    def bring_back(self, broker_id: int) -> None:
        self.trace.append(f"broker {broker_id} returns")
        if broker_id not in self.brokers:
            self.start(broker_id)
            if broker_id in self.world.znodes.registered:
                self.lose(broker_id)
        self.register(broker_id)

    def awake(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if broker.id not in self.network.frozen]

    def some_broker(self) -> SimulatedBroker | None:
        awake = self.awake()
        return self.chance.choice(awake) if awake else None

    def is_well(self, broker_id: int) -> bool:
        """Return whether the broker lives, and is in sync in all its partitions."""
        if broker_id not in self.brokers or broker_id not in self.world.znodes.registered:
            return False
        if broker_id in self.network.frozen or not self.brokers[broker_id].logs.table.all_online:
            return False
        for tp in self.all_partitions():
            state = self.state(tp)
            if broker_id in self.replicas_of(tp).replicas and (state is None or broker_id not in state.isr):
                return False
        return True

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.stop()

    def crash(self) -> None:
        """The end of a story that failed: files are closed, nothing else."""
        for broker in self.brokers.values():
            broker.crash()


def _outcome_text(outcome: FetchOutcome) -> str:
    watermark = outcome.found.high_watermark if outcome.found is not None else -1
    diverging = f", diverging {outcome.diverging}" if outcome.diverging is not None else ""
    return f"{outcome.size} bytes, {outcome.error.name}{diverging}, {watermark}"
