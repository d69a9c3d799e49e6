"""Three brokers, a controller and a network in one thread, driven by one seed: the same seed, the same story.

Real: logs on disk, partitions, acknowledgement, truncation, ISR arithmetic, the handlers of the controller's requests
and every decision of the controller. In memory: ZooKeeper (the world of the scenarios), the network, time, clients.

The network delays, reorders and loses. Requests of one tenure of a controller reach a broker in order, but those of
an earlier tenure may come after them; a fetch or produce whose connection broke may still arrive. Brokers are killed,
restarted, cut off from ZooKeeper, and one at a time loses what it had not flushed: only while everybody else is well,
for that is what replication promises to survive.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from scenarios.world import World

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.controller import effects
from odradek.controller.events import ControlledShutdownAsked, ElectionAsked, ElectionType, IsrChangeAsked
from odradek.controller.request_answers import event_of
from odradek.log.partition_log import AppendResult
from odradek.model.topology import LeaderAndIsr, ReplicaAssignment, TopicAssignment
from odradek.protocol.record_batch import build_batch, read_header
from odradek.protocol.records import Record
from odradek.replication.delayed_produce import AppendOutcome
from odradek.replication.fetching import FetchOutcome, FetchTarget, FetchTerms
from odradek.replication.isr import IsrChange

from .invariants import Invariants, Violation, entries_in
from .simulated_broker import MAX_LAG_MS, ORDERS, ORDERS_ID, SimulatedBroker, wire_data

BROKERS = (0, 1, 2)
STEPS = 500
HEALING_ROUNDS = 400
PRODUCE_TIMEOUT_MS = 2_000


@dataclass(eq=False)
class Message:
    text: str
    deliver: Callable[[], None]
    lose: Callable[[], None] = lambda: None
    channel: object = None  # those of one channel arrive in order, and are lost only with it


class SimulatedWorld(World):
    """ZooKeeper and the controller's decisions; what it sends goes out on the simulated network."""

    def __init__(self, send: Callable[[effects.Send], None]) -> None:
        super().__init__()
        self._transmit = send

    def _send(self, effect: effects.Send) -> None:
        self._transmit(effect)


@dataclass
class Producer:
    """Idempotent, with one batch in flight, which it sends again until it is acknowledged."""

    number: int
    sequence: int = 0
    count: int = 0
    batch: bytes | None = None
    attempt: int = 0
    waits_for: SimulatedBroker | None = None

    @property
    def is_waiting(self) -> bool:
        return self.waits_for is not None

    def next_batch(self, chance: Random, broker: SimulatedBroker) -> bytes:
        if self.batch is None:
            self.count = chance.randint(1, 3)
            values = [f"{self.number}/{self.sequence + n}".encode() for n in range(self.count)]
            records = [Record(n, 1_700_000_000_000, None, value) for n, value in enumerate(values)]
            self.batch = build_batch(
                records, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence
            )
        self.attempt += 1
        self.waits_for = broker
        return self.batch

    def done(self) -> None:
        self.sequence += self.count
        self.batch = None


class SimulatedCluster:
    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = Random(seed)
        self.trace: list[str] = []
        self.clock = ManualClock(1_700_000_000_000)
        self.world = SimulatedWorld(self._transmit)
        self.brokers: dict[int, SimulatedBroker] = {}
        self.invariants = Invariants()
        self.producers = [Producer(number) for number in (1, 2)]
        self._directory = directory
        self._network: list[Message] = []
        self._consumed = 0
        self._weak: int | None = None  # who lost its tail and is not back in the ISR
        self._seat_of_dead: int | None = None  # the controller that died, until its session ends
        for broker_id in BROKERS:
            self._start(broker_id)
            self._register(broker_id)
        self.world.elect_controller(0)
        self.world.write_topic(TopicAssignment(ORDERS.topic, ORDERS_ID, {0: ReplicaAssignment(BROKERS)}))
        self.world.run()
        self.world.write_topic(self.world.topics[ORDERS.topic])

    @property
    def state(self) -> LeaderAndIsr | None:
        return self.world.states.get(ORDERS)

    # ---- one run

    def run(self) -> None:
        names = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
        for _ in range(STEPS):
            getattr(self, self.chance.choice(names))()
            self._check()
        self._heal()
        for broker in self.brokers.values():
            broker.stop()

    def _check(self) -> None:
        self.invariants.check(self.brokers, self.state)
        if self._weak is not None and self._weak not in self.invariants.lost_tail and self._is_well(self._weak):
            self._weak = None

    def _is_well(self, broker_id: int) -> bool:
        isr = self.state.isr if self.state else ()
        return broker_id in self.brokers and broker_id in self.world.registered and broker_id in isr

    def _tell(self, text: str) -> None:
        self.trace.append(text)

    # ---- the network

    def _post(
        self, text: str, deliver: Callable[[], None], lose: Callable[[], None] = lambda: None, channel: object = None
    ) -> None:
        self._network.append(Message(text, deliver, lose, channel))

    def _first_ones(self) -> list[Message]:
        first = []
        channels = set()
        for message in self._network:
            if message.channel is None or message.channel not in channels:
                first.append(message)
                channels.add(message.channel)
        return first

    def messages_arrive(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            if self._network:
                self._arrive(self.chance.choice(self._first_ones()))

    def _arrive(self, message: Message) -> None:
        self._network.remove(message)
        self._tell(f"arrives: {message.text}")
        message.deliver()

    def message_is_lost(self) -> None:
        loose = [message for message in self._network if message.channel is None]
        if loose:
            message = self.chance.choice(loose)
            self._network.remove(message)
            self._tell(f"lost: {message.text}")
            message.lose()

    def connection_breaks(self) -> None:
        """The sender doesn't wait for an answer any longer, but what it sent may still arrive."""
        loose = [message for message in self._network if message.channel is None]
        if loose:
            message = self.chance.choice(loose)
            self._tell(f"given up: {message.text}")
            message.lose()

    # ---- the controller

    def _transmit(self, effect: effects.Send) -> None:
        context = self.world.context
        assert context is not None
        tenure, broker_id, request = context.term.epoch, effect.broker_id, effect.request
        registered = context.brokers.get(broker_id)
        channel = tenure, broker_id, registered.epoch if registered else -1

        def deliver() -> None:
            broker = self.brokers.get(broker_id)
            if broker is None:
                return
            event = event_of(broker_id, request, broker.obey(request))
            if event is not None and self.world.context is context:
                self.world.enqueue(event)

        self._post(f"{type(request).__name__} of controller epoch {tenure} at {broker_id}", deliver, channel=channel)

    def controller_acts(self) -> None:
        if self.world.context is not None and self.world._events:
            self._tell(f"controller {self.world.context.broker_id} acts")
            self.world.run()

    def controller_changes(self) -> None:
        """The office is vacant, or taken from a controller that doesn't know."""
        vacant = self.world.context is None and self._seat_of_dead is None
        candidates = sorted(self.world.registered.keys() & self.brokers.keys())
        if candidates and (vacant or self._may_usurp()):
            winner = self.chance.choice(candidates)
            self._tell(f"broker {winner} becomes controller")
            self.world.elect_controller(winner)

    def _may_usurp(self) -> bool:
        return self.world.context is not None and not self.invariants.lost_tail and self.chance.random() < 0.1

    def leaders_are_rebalanced(self) -> None:
        self._tell("a preferred election is asked for")
        self.world.enqueue(ElectionAsked(frozenset((ORDERS,)), ElectionType.PREFERRED, lambda value: None))

    def leader_asks_for_isr(self) -> None:
        asking = [broker for broker in self.brokers.values() if broker.wanted_isr is not None]
        if asking:
            self._ask_for_isr(self.chance.choice(asking))

    def _ask_for_isr(self, broker: SimulatedBroker) -> None:
        change = broker.wanted_isr
        assert change is not None
        epoch = broker.gate.broker_epoch
        wanted = LeaderAndIsr(broker.id, change.leader_epoch, change.isr, -1, change.partition_epoch)
        seen = {ORDERS: dict(zip(change.isr, change.broker_epochs, strict=True))}

        def answered(results: Any) -> None:
            if isinstance(results, dict):
                found = results[ORDERS]
                answer = found.code if isinstance(found, KafkaError) else found
                self._post(f"ISR answer to {broker.id}", lambda: self._answer_isr(broker, change, answer))

        def deliver() -> None:
            self.world.enqueue(IsrChangeAsked(broker.id, epoch, {ORDERS: wanted}, answered, seen))

        self._post(f"broker {broker.id} asks for the ISR {change.isr}", deliver)

    def _answer_isr(self, broker: SimulatedBroker, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> None:
        if self.brokers.get(broker.id) is broker and broker.wanted_isr is change:
            broker.wanted_isr = None
            broker.replicas.isr_answered(change, answer)

    # ---- replication

    def follower_fetches(self) -> None:
        self._fetch(self.chance.choice(BROKERS))

    def _fetch(self, broker_id: int) -> None:
        broker = self.brokers.get(broker_id)
        target = broker.next_fetch(self.chance.choice((1, 300, 100_000))) if broker else None
        if broker is None or target is None or broker.progress is None:
            return
        leader_id = broker.progress.following.leader_id
        terms = FetchTerms(
            0, 1, target.max_bytes, 0, replica_id=broker_id, replica_epoch=broker.gate.broker_epoch, listener="PLAINTEXT"
        )

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
        self._post(f"fetch of {broker_id} at {leader_id}, {where}", deliver, give_up)

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
        self._post(f"answer to the fetch of {broker.id}: {told}", deliver, give_up)

    def time_passes(self) -> None:
        ms = self.chance.choice((1, 10, 100, 500, MAX_LAG_MS // 2))
        self._tell(f"{ms} ms pass")
        self._pass(ms)

    def _pass(self, ms: int) -> None:
        self.clock.advance(ms)
        for broker in list(self.brokers.values()):
            broker.reaper.expire_due()
            broker.replicas.check_replicas()

    def broker_writes_checkpoints(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self._tell(f"broker {broker.id} writes its checkpoints")
            broker.logs.checkpoint_high_watermarks(broker.replicas.high_watermarks())
            broker.logs.checkpoint_recovery_points()

    def broker_flushes(self) -> None:
        broker = self._some_broker()
        if broker is not None and broker.log is not None:
            self._tell(f"broker {broker.id} flushes")
            broker.log.flush()

    # ---- clients

    def producer_sends(self) -> None:
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        idle = [producer for producer in self.producers if not producer.is_waiting]
        if leaders and idle:
            self._produce(self.chance.choice(idle), self.chance.choice(leaders))

    def _produce(self, producer: Producer, broker: SimulatedBroker) -> None:
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
                elif outcome.code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
                    raise Violation(f"producer {producer.number} is told {outcome.code.name}: records are missing")

            self._post(f"answer to producer {producer.number}: {told}", deliver, give_up)

        def deliver() -> None:
            if self.brokers.get(broker.id) is not broker:
                give_up()
                return
            done = broker.replicas.append(
                [(ORDERS, memoryview(bytearray(batch)))],
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                api_version=9,
                done=answer,
            )
            if done is not None:
                answer(done)

        self._post(f"batch {producer.sequence} of producer {producer.number} at {broker.id}", deliver, give_up)

    def consumer_reads(self) -> None:
        """From whoever believes that it leads. What was committed is in range of every such broker, for ever."""
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        if not leaders:
            return
        broker = self.chance.choice(leaders)
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(ORDERS, ORDERS_ID, self._consumed, 100_000)
        broker.replicas.fetch([target], FetchTerms(0, 1, 100_000, 0), outcomes.extend)
        (outcome,) = outcomes
        if outcome.error:
            raise Violation(f"leader {broker.id} tells a consumer at {self._consumed}: {outcome.error.name}")
        assert outcome.found is not None
        assert outcome.found.records is not None
        found = entries_in(outcome.found.records.read())
        self._tell(f"a consumer reads {len(found)} batches of {broker.id}")
        self.invariants.consume(broker.id, found)
        if found:
            self._consumed = found[-1].last_offset + 1

    # ---- faults

    def _some_broker(self) -> SimulatedBroker | None:
        return self.chance.choice([*self.brokers.values()]) if self.brokers else None

    def _start(self, broker_id: int) -> None:
        self.brokers[broker_id] = SimulatedBroker(broker_id, self._directory / str(broker_id), self.clock)

    def _register(self, broker_id: int) -> None:
        self.world.register(broker_id)
        self.brokers[broker_id].gate.broker_epoch = self.world.registered[broker_id].epoch

    def _lose(self, broker_id: int) -> None:
        self.world.lose(broker_id)
        if self._seat_of_dead == broker_id:
            self._seat_of_dead = None

    def broker_is_killed(self) -> None:
        broker = self._some_broker()
        if broker is not None and self._weak is None:
            self._tell(f"broker {broker.id} is killed")
            self._bury(broker, broker.crash)

    def broker_loses_power(self) -> None:
        broker = self._some_broker()
        if broker is None or broker.log is None or self._weak is not None or not all(map(self._is_well, BROKERS)):
            return
        self._tell(f"broker {broker.id} loses power")
        self._weak = broker.id
        self.invariants.lost_tail.add(broker.id)
        self._bury(broker, lambda: broker.crash_and_lose_tail(self.chance))

    def broker_leaves(self) -> None:
        """Politely: what it leads goes to others first, if there are any."""
        broker = self._some_broker()
        if broker is None or broker.id not in self.world.registered or self._weak is not None:
            return
        self._tell(f"broker {broker.id} leaves")
        epoch = broker.gate.broker_epoch
        self.world.enqueue(ControlledShutdownAsked(broker.id, epoch, lambda value: None))
        self.world.run()
        self._bury(broker, broker.stop)

    def _bury(self, broker: SimulatedBroker, end: Callable[[], None]) -> None:
        del self.brokers[broker.id]
        end()
        if self.world.context is not None and self.world.context.broker_id == broker.id:
            self.world.controller_gone()
            self._seat_of_dead = broker.id
        for producer in self.producers:
            if producer.waits_for is broker:
                producer.waits_for = None

    def session_expires(self) -> None:
        """Of a broker that is dead, or only cut off from ZooKeeper."""
        broker_id = self.chance.choice(BROKERS)
        lives = broker_id in self.brokers
        if broker_id in self.world.registered and (not lives or (self._weak is None and self.chance.random() < 0.3)):
            self._tell(f"the session of broker {broker_id} expires")
            self._lose(broker_id)

    def broker_returns(self) -> None:
        """One that lost its tail comes back when a controller is in office that will notice that it was away.

        (One that takes over later can't know: the state of a partition doesn't tell which life of a broker it means.)
        """
        gone = [b for b in BROKERS if b not in self.brokers or b not in self.world.registered]
        if gone:
            broker_id = self.chance.choice(gone)
            if broker_id not in self.invariants.lost_tail or (self.world.context and self.world.context.brokers):
                self._return(broker_id)

    def _return(self, broker_id: int) -> None:
        self._tell(f"broker {broker_id} returns")
        if broker_id not in self.brokers:
            self._start(broker_id)
            if broker_id in self.world.registered:
                self._lose(broker_id)
        self._register(broker_id)

    # ---- the end

    def _heal(self) -> None:
        """Nothing fails any more: everything must come together again."""
        self._tell("all is well from now on")
        for broker_id in sorted(self.world.registered.keys() - self.brokers.keys()):
            self._lose(broker_id)
        if self.world.context is None and self.world.registered:
            self.world.elect_controller(min(self.world.registered))
        self.world.run()
        for broker_id in BROKERS:
            if broker_id not in self.brokers or broker_id not in self.world.registered:
                self._return(broker_id)
        for _ in range(HEALING_ROUNDS):
            if self._has_converged():
                self.invariants.check_end(self.brokers, self.state.isr if self.state else ())
                return
            self._healing_round()
        raise Violation(f"no convergence: {self.state}, {self._network[:3]}")

    def _healing_round(self) -> None:
        if self.world.context is None:
            self.world.elect_controller(0)
        self.world.run()
        for broker_id in BROKERS:
            self._fetch(broker_id)
            if self.brokers[broker_id].wanted_isr is not None:
                self._ask_for_isr(self.brokers[broker_id])
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        for producer in self.producers:
            if producer.batch is not None and not producer.is_waiting and len(leaders) == 1:
                self._produce(producer, leaders[0])
        for message in list(self._network):
            self._arrive(message)
            self._check()
        self._pass(20)
        self._check()

    def _has_converged(self) -> bool:
        state = self.state
        if state is None or set(state.isr) != set(BROKERS):
            return False
        if any(producer.batch is not None for producer in self.producers):
            return False
        partitions = [broker.partition for broker in self.brokers.values()]
        ends = {p.log.log_end_offset for p in partitions if p} | {p.high_watermark for p in partitions if p}
        return all(partitions) and len(ends) == 1


WEIGHTS = {
    "messages_arrive": 60,
    "follower_fetches": 40,
    "producer_sends": 25,
    "controller_acts": 12,
    "leader_asks_for_isr": 8,
    "consumer_reads": 5,
    "time_passes": 4,
    "broker_returns": 6,
    "message_is_lost": 2,
    "connection_breaks": 2,
    "broker_writes_checkpoints": 2,
    "broker_flushes": 1,
    "controller_changes": 2,
    "session_expires": 2,
    "leaders_are_rebalanced": 1,
    "broker_is_killed": 1,
    "broker_loses_power": 2,
    "broker_leaves": 1,
}


@contextmanager
def told_on_failure(cluster: SimulatedCluster, seed: int) -> Iterator[None]:
    """A failure comes with its seed and the end of its story."""
    try:
        yield
    except Exception as error:
        story = "\n".join(cluster.trace[-60:])
        raise Violation(f"seed {seed}: {type(error).__name__}: {error}\n{story}") from error


def simulate(seed: int, directory: Path) -> list[str]:
    """Runs the story of the seed; Violation if anything is wrong."""
    cluster = SimulatedCluster(seed, directory)
    with told_on_failure(cluster, seed):
        cluster.run()
    return cluster.trace
