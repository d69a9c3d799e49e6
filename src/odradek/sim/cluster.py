"""Three brokers, a controller and a network in one thread.

Real: logs on disk, partitions, acknowledgement, truncation, ISR arithmetic, the handlers of the controller's requests
and every decision of the controller. In memory: ZooKeeper (the world of the scenarios), the network, time, clients.
Nothing happens by itself: `story` says what does.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core import effects
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.broker.controller.request_answers import event_of
from odradek.broker.log.files.partition_log import AppendResult
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topology import LeaderAndIsr, ReplicaAssignment, TopicAssignment
from odradek.protocol.record_batch import batches, read_header
from odradek.protocol.records import read_records
from odradek.protocol.schema import Request, Response
from odradek.sim.broker import ORDERS, ORDERS_ID, SimulatedBroker, wire_data
from odradek.sim.invariants import Invariants, Violation
from odradek.sim.network import Network
from odradek.sim.pipelined_producer import PipelinedProducer
from odradek.sim.producer import Producer
from odradek.sim.world import World

BROKERS = (0, 1, 2)
START_MS = 1_700_000_000_000
HEALING_ROUNDS = 400
PRODUCE_TIMEOUT_MS = 2_000
SENT_TWICE = 0.1
"""Of the controller's requests, because the first copy was held back: that one comes later, at any time."""


class SimulatedWorld(World):
    """ZooKeeper and the controller's decisions; what it sends goes out on the simulated network."""

    def __init__(self, send: Callable[[effects.Send], None]) -> None:
        super().__init__()
        self._transmit = send

    def _send(self, effect: effects.Send) -> None:
        self._transmit(effect)


class SimulatedCluster:
    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = Random(seed)
        self.trace: list[str] = []
        self.clock = ManualClock(START_MS)
        self.world = SimulatedWorld(self._transmit)
        self.brokers: dict[int, SimulatedBroker] = {}
        self.invariants = Invariants()
        self.producers = [Producer(number) for number in (1, 2)]
        self._directory = directory
        self.network = Network(self.trace.append)
        self.pipelined = [PipelinedProducer(number, self.network, self._lives) for number in (11, 12)]
        self._correlation_ids = count()
        self.consumed = 0
        self.weak: int | None = None  # who lost its tail and is not back in the ISR
        self.epoch_before = -1  # under which that one was registered when it lost it
        self.seat_of_dead: int | None = None  # the controller that died, until its session ends
        for broker_id in BROKERS:
            self.start(broker_id)
            self.register(broker_id)
        self.world.elect_controller(0)
        self.world.write_topic(TopicAssignment(ORDERS.topic, ORDERS_ID, {0: ReplicaAssignment(BROKERS)}))
        self.world.run()
        self.world.write_topic(self.world.topics[ORDERS.topic])

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return BROKERS

    @property
    def state(self) -> LeaderAndIsr | None:
        return self.world.states.get(ORDERS)

    # ---- the controller

    def _transmit(self, effect: effects.Send) -> None:
        context = self.world.context
        assert context is not None
        tenure, broker_id, request = context.term.epoch, effect.broker_id, effect.request
        registered = context.brokers.get(broker_id)
        channel = tenure, broker_id, registered.epoch if registered else -1
        text = f"{type(request).__name__} of controller epoch {tenure} at {broker_id}"
        first, second = next(self._correlation_ids), next(self._correlation_ids)

        def deliver() -> None:
            if self.chance.random() < SENT_TWICE:
                self.network.post(f"held back: {text}", lambda: self._tell(broker_id, request, first))
            answer = self._tell(broker_id, request, second)
            event = event_of(broker_id, request, answer) if answer is not None else None
            if event is not None and self.world.context is context:
                self.world.enqueue(event)

        self.network.post(text, deliver, channel=channel)

    def _tell(self, broker_id: int, request: Request, correlation_id: int) -> Response | None:
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.obey(request, correlation_id)

    def ask_for_isr(self, broker: SimulatedBroker) -> None:
        change = broker.wanted_isr
        assert change is not None
        epoch = broker.gate.broker_epoch
        wanted = LeaderAndIsr(broker.id, change.leader_epoch, change.isr, -1, change.partition_epoch)
        seen = {ORDERS: dict(zip(change.isr, change.broker_epochs, strict=True))}

        def answered(results: Any) -> None:
            if isinstance(results, dict):
                found = results[ORDERS]
                answer = found.code if isinstance(found, KafkaError) else found
                self.network.post(f"ISR answer to {broker.id}", lambda: self._answer_isr(broker, change, answer))

        def deliver() -> None:
            self.world.enqueue(IsrChangeAsked(broker.id, epoch, {ORDERS: wanted}, answered, seen))

        self.network.post(f"broker {broker.id} asks for the ISR {change.isr}", deliver)

    def _answer_isr(self, broker: SimulatedBroker, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> None:
        if self.brokers.get(broker.id) is broker and broker.wanted_isr is change:
            broker.wanted_isr = None
            broker.replicas.isr_answered(change, answer)

    # ---- replication and time

    def fetch(self, broker_id: int) -> None:
        broker = self.brokers.get(broker_id)
        target = broker.next_fetch(self.chance.choice((1, 300, 100_000))) if broker else None
        if broker is None or target is None or broker.progress is None:
            return
        leader_id = broker.progress.following.leader_id
        epoch = broker.gate.broker_epoch
        terms = FetchTerms(0, 1, target.max_bytes, 0, replica_id=broker_id, replica_epoch=epoch, listener="PLAINTEXT")

        def give_up() -> None:
            if broker.asked is target:
                broker.asked = None

        def deliver() -> None:
            leader = self.brokers.get(leader_id)
            if leader is None:
                give_up()
                return
            outcomes: list[FetchOutcome] = []
            leader.replicas.fetch([target], terms, outcomes.extend)
            self._answer_fetch(broker, target, outcomes[0], leader_id, give_up)

        where = f"offset {target.fetch_offset} in epoch {target.current_leader_epoch}"
        self.network.post(f"fetch of {broker_id} at {leader_id}, {where}", deliver, give_up)

    def _answer_fetch(
        self,
        broker: SimulatedBroker,
        target: FetchTarget,
        outcome: FetchOutcome,
        leader_id: int,
        give_up: Callable[[], None],
    ) -> None:
        data = wire_data(outcome)

        def deliver() -> None:
            if self.brokers.get(broker.id) is broker:
                broker.take(target, data, self.brokers.get(leader_id))

        told = f"{outcome.size} bytes, {outcome.error.name}, diverging {outcome.diverging}, {data.high_watermark}"
        self.network.post(f"answer to the fetch of {broker.id}: {told}", deliver, give_up)

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        for broker in list(self.brokers.values()):
            broker.reaper.expire_due()
            broker.replicas.check_replicas()

    # ---- clients

    def produce(self, producer: Producer, broker: SimulatedBroker) -> None:
        batch = producer.next_batch(self.chance, broker)
        attempt = producer.attempt

        def give_up() -> None:
            if producer.attempt == attempt:
                producer.waits_for = None

        def answer(outcomes: list[AppendOutcome]) -> None:
            (outcome,) = outcomes
            if isinstance(outcome, AppendResult):
                self.invariants.acknowledge(broker, outcome.first_offset, read_header(batch).crc)
                told = f"at {outcome.first_offset}"
            else:
                told = outcome.code.name

            def deliver() -> None:
                if producer.attempt != attempt or not producer.is_waiting:
                    return
                producer.waits_for = None
                if isinstance(outcome, AppendResult):
                    producer.done()

            self.network.post(f"answer to producer {producer.number}: {told}", deliver, give_up)

        def deliver() -> None:
            if self.brokers.get(broker.id) is not broker:
                give_up()
                return
            done = broker.replicas.append(
                [(ORDERS, memoryview(bytearray(batch)))],
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                api_version=9,
                refused=RefusedBatches(),
                done=answer,
            )
            if done is not None:
                answer(done)

        self.network.post(f"batch {producer.sequence} of producer {producer.number} at {broker.id}", deliver, give_up)

    def produce_pipelined(self, producer: PipelinedProducer, *, only_retries: bool = False) -> None:
        """To the broker that it is connected to, or to the elected leader, which need not have heard of that yet."""
        leader = self.brokers.get(self.state.leader) if self.state is not None else None
        connection = producer.connection
        if connection is not None and connection.broker is not leader and self.chance.random() < 0.5:
            producer.disconnect(connection)  # it has learnt that another one leads
        target = producer.connection.broker if producer.connection is not None else leader
        if target is not None:
            producer.send(target, self.chance, only_retries=only_retries)

    def _lives(self, broker: SimulatedBroker) -> bool:
        return self.brokers.get(broker.id) is broker

    # ---- the lives of brokers

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id] = SimulatedBroker(broker_id, self._directory / str(broker_id), self.clock)

    def register(self, broker_id: int) -> None:
        self.world.register(broker_id)
        self.brokers[broker_id].gate.broker_epoch = self.world.registered[broker_id].epoch

    def lose(self, broker_id: int) -> None:
        self.world.lose(broker_id)
        if self.seat_of_dead == broker_id:
            self.seat_of_dead = None

    def bury(self, broker: SimulatedBroker, end: Callable[[], None]) -> None:
        del self.brokers[broker.id]
        end()
        if self.world.context is not None and self.world.context.broker_id == broker.id:
            self.world.controller_gone()
            self.seat_of_dead = broker.id
        for producer in self.producers:
            if producer.waits_for is broker:
                producer.waits_for = None
        for pipelined in self.pipelined:
            if pipelined.connection is not None and pipelined.connection.broker is broker:
                pipelined.disconnect(pipelined.connection)

    def bring_back(self, broker_id: int) -> None:
        self.trace.append(f"broker {broker_id} returns")
        if broker_id not in self.brokers:
            self.start(broker_id)
            if broker_id in self.world.registered:
                self.lose(broker_id)
        self.register(broker_id)

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.stop()

    def crash(self) -> None:
        """The end of a story that failed: files are closed, nothing else."""
        for broker in self.brokers.values():
            broker.crash()

    @property
    def acknowledged_records(self) -> int:
        pipelined = sum(producer.acknowledged for producer in self.pipelined)
        return pipelined + sum(producer.sequence for producer in self.producers)

    # ---- what must be true

    def check(self) -> None:
        context = self.world.context
        if self.weak is not None and context is not None and context.brokers:
            known = context.brokers.get(self.weak)
            if known is None or known.epoch > self.epoch_before:
                self.invariants.lost_tail.discard(self.weak)
        self.invariants.check(self.brokers, self.state)
        if faults := [producer.fault for producer in self.pipelined if producer.fault]:
            raise Violation(faults[0])
        if self.weak is not None and self.weak not in self.invariants.lost_tail and self.is_well(self.weak):
            self.weak = None

    def is_well(self, broker_id: int) -> bool:
        isr = self.state.isr if self.state else ()
        return broker_id in self.brokers and broker_id in self.world.registered and broker_id in isr

    def heal(self) -> None:
        """End all faults: everything must come together again."""
        self.trace.append("all is well from now on")
        for broker_id in sorted(self.world.registered.keys() - self.brokers.keys()):
            self.lose(broker_id)
        if self.world.context is None and self.world.registered:
            self.world.elect_controller(min(self.world.registered))
        self.world.run()
        for broker_id in BROKERS:
            if broker_id not in self.brokers or broker_id not in self.world.registered:
                self.bring_back(broker_id)
        for _ in range(HEALING_ROUNDS):
            if self._has_converged():
                self.invariants.check_end(self.brokers, self.state.isr if self.state else ())
                self._check_records()
                return
            self._healing_round()
        raise Violation(f"no convergence: {self.state}, {self.network.messages[:3]}")

    def _check_records(self) -> None:
        """Check the pipelined producers: acknowledged records are there, in order and once."""
        assert self.state is not None
        opened = self.brokers[self.state.leader].log
        assert opened is not None
        values: list[bytes] = []
        offset, end = 0, opened.log_end_offset
        while offset < end:
            data = opened.read(offset, 1 << 20, upper_bound=end).records.read()
            for at, header in batches(data):
                values += [record.value or b"" for record in read_records(data, at, header)]
                offset = header.next_offset
        for producer in self.pipelined:
            own = [value for value in values if value.startswith(f"{producer.number}/".encode())]
            expected = [producer.value(number) for number in range(producer.acknowledged)]
            if own[: len(expected)] != expected or len(set(own)) < len(own):
                raise Violation(
                    f"{len(expected)} records of producer {producer.number} are acknowledged, the log has {own}"
                )

    def _healing_round(self) -> None:
        if self.world.context is None:
            self.world.elect_controller(0)
        self.world.run()
        for broker_id in BROKERS:
            self.fetch(broker_id)
            if self.brokers[broker_id].wanted_isr is not None:
                self.ask_for_isr(self.brokers[broker_id])
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        for producer in self.producers:
            if producer.batch is not None and not producer.is_waiting and len(leaders) == 1:
                self.produce(producer, leaders[0])
        for pipelined in self.pipelined:
            self.produce_pipelined(pipelined, only_retries=True)
        for message in list(self.network.messages):
            self.network.arrive(message)
            self.check()
        self.wait(20)
        self.check()

    def _has_converged(self) -> bool:
        state = self.state
        if state is None or set(state.isr) != set(BROKERS):
            return False
        if any(producer.batch is not None for producer in self.producers):
            return False
        if not all(producer.is_done for producer in self.pipelined):
            return False
        partitions = [broker.partition for broker in self.brokers.values()]
        ends = {p.log.log_end_offset for p in partitions if p} | {p.high_watermark for p in partitions if p}
        return all(partitions) and len(ends) == 1 and all(map(self._is_informed, self.brokers.values()))

    def _is_informed(self, broker: SimulatedBroker) -> bool:
        """Return whether its metadata has the live brokers and the leaders."""
        image = broker.metadata.image
        known = image.partition(ORDERS)
        told = (known.leader, known.leader_epoch, known.isr) if known is not None else None
        state = self.state
        assert state is not None
        return image.brokers.keys() == set(BROKERS) and told == (state.leader, state.leader_epoch, state.isr)
