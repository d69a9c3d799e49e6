"""Events of a simulated cluster, drawn from a seed: the same seed, the same story.

The network delays, reorders and loses. Requests of one tenure of a controller reach a broker in order, but those of
an earlier tenure may come after them, and so may the first copy of one that was sent twice; a fetch or produce whose
connection broke may still arrive. Brokers are killed,
restarted, cut off from ZooKeeper, and one at a time loses what it had not flushed: only while everybody else is well,
for that is what replication promises to survive.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from odradek.broker.controller.core.events import ControlledShutdownAsked, ElectionAsked, ElectionType
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.sim.broker import MAX_LAG_MS, ORDERS, ORDERS_ID, SimulatedBroker
from odradek.sim.cluster import BROKERS, SimulatedCluster
from odradek.sim.invariants import Violation, entries_in

STEPS = 800

WEIGHTS = {
    "messages_arrive": 60,
    "follower_fetches": 40,
    "producer_sends": 25,
    "pipelined_producer_sends": 25,
    "controller_acts": 12,
    "leader_asks_for_isr": 8,
    "consumer_reads": 5,
    "time_passes": 4,
    "broker_returns": 8,
    "message_is_lost": 2,
    "connection_breaks": 2,
    "pipelined_connection_breaks": 2,
    "broker_writes_checkpoints": 2,
    "broker_flushes": 1,
    "controller_changes": 4,
    "session_expires": 4,
    "leaders_are_rebalanced": 2,
    "broker_is_killed": 2,
    "broker_loses_power": 2,
    "broker_leaves": 1,
}


class Step(NamedTuple):
    """One thing that happens, and the seed of its own choices: without it, the steps after it stay what they are."""

    name: str
    seed: int


def steps_of(seed: int) -> list[Step]:
    """The story of a seed."""
    chance = Random(seed)
    names = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
    return [Step(chance.choice(names), chance.getrandbits(48)) for _ in range(STEPS)]


class Story(SimulatedCluster):
    """A cluster and the steps that happen to it; `on_step` is called after each of them."""

    def run(self, steps: Iterable[Step], on_step: Callable[[Step], None] = lambda step: None) -> None:
        for step in steps:
            self.chance.seed(step.seed)
            getattr(self, step.name)()
            self.check()
            on_step(step)
        self.heal()
        self.stop()

    # ---- the network

    def messages_arrive(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            if self.network.messages:
                self.network.arrive(self.chance.choice(self.network.first_ones()))

    def message_is_lost(self) -> None:
        if loose := self.network.loose_ones():
            self.network.lose(self.chance.choice(loose))

    def connection_breaks(self) -> None:
        if loose := self.network.loose_ones():
            self.network.give_up(self.chance.choice(loose))

    # ---- the controller

    def controller_acts(self) -> None:
        if self.world.context is not None and self.world._events:
            self.trace.append(f"controller {self.world.context.broker_id} acts")
            self.world.run()

    def controller_changes(self) -> None:
        """The office is vacant, or taken from a controller that doesn't know."""
        vacant = self.world.context is None and self.seat_of_dead is None
        candidates = sorted(self.world.registered.keys() & self.brokers.keys())
        if candidates and (vacant or self._may_usurp()):
            winner = self.chance.choice(candidates)
            self.trace.append(f"broker {winner} becomes controller")
            self.world.elect_controller(winner)

    def _may_usurp(self) -> bool:
        return self.world.context is not None and not self.invariants.lost_tail and self.chance.random() < 0.1

    def leaders_are_rebalanced(self) -> None:
        self.trace.append("a preferred election is asked for")
        self.world.enqueue(ElectionAsked(frozenset((ORDERS,)), ElectionType.PREFERRED, lambda value: None))

    def leader_asks_for_isr(self) -> None:
        asking = [broker for broker in self.brokers.values() if broker.wanted_isr is not None]
        if asking:
            self.ask_for_isr(self.chance.choice(asking))

    # ---- replication and time

    def follower_fetches(self) -> None:
        self.fetch(self.chance.choice(BROKERS))

    def time_passes(self) -> None:
        ms = self.chance.choice((1, 10, 100, 500, MAX_LAG_MS // 2))
        self.trace.append(f"{ms} ms pass")
        self.wait(ms)

    def broker_writes_checkpoints(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self.trace.append(f"broker {broker.id} writes its checkpoints")
            broker.logs.checkpoint_high_watermarks(broker.replicas.high_watermarks())
            broker.logs.checkpoint_recovery_points()

    def broker_flushes(self) -> None:
        broker = self._some_broker()
        if broker is not None and broker.log is not None:
            self.trace.append(f"broker {broker.id} flushes")
            broker.log.flush()

    # ---- clients

    def producer_sends(self) -> None:
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        idle = [producer for producer in self.producers if not producer.is_waiting]
        if leaders and idle:
            self.produce(self.chance.choice(idle), self.chance.choice(leaders))

    def pipelined_producer_sends(self) -> None:
        producer = self.chance.choice(self.pipelined)
        for _ in range(self.chance.randint(1, 5)):
            self.produce_pipelined(producer)

    def pipelined_connection_breaks(self) -> None:
        producer = self.chance.choice(self.pipelined)
        if producer.connection is not None:
            self.trace.append(f"the connection of producer {producer.number} breaks")
            producer.disconnect(producer.connection)

    def consumer_reads(self) -> None:
        """Read from a broker that believes that it leads. What was committed is in range of every such broker, for
        ever.
        """
        leaders = [broker for broker in self.brokers.values() if broker.leads]
        if not leaders:
            return
        broker = self.chance.choice(leaders)
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(ORDERS, ORDERS_ID, self.consumed, 100_000)
        broker.replicas.fetch([target], FetchTerms(0, 1, 100_000, 0), outcomes.extend)
        (outcome,) = outcomes
        if outcome.error:
            raise Violation(f"leader {broker.id} tells a consumer at {self.consumed}: {outcome.error.name}")
        assert outcome.found is not None
        assert outcome.found.records is not None
        found = entries_in(outcome.found.records.read())
        self.trace.append(f"a consumer reads {len(found)} batches of {broker.id}")
        self.invariants.consume(broker.id, found)
        if found:
            self.consumed = found[-1].last_offset + 1

    # ---- faults

    def _some_broker(self) -> SimulatedBroker | None:
        return self.chance.choice([*self.brokers.values()]) if self.brokers else None

    def broker_is_killed(self) -> None:
        broker = self._some_broker()
        if broker is not None and self.weak is None:
            self.trace.append(f"broker {broker.id} is killed")
            self.bury(broker, broker.crash)

    def broker_loses_power(self) -> None:
        broker = self._some_broker()
        if broker is None or broker.log is None or self.weak is not None or broker.id not in self.world.registered:
            return
        if not all(self.is_well(other) for other in BROKERS if other != broker.id):
            return
        self.trace.append(f"broker {broker.id} loses power")
        self.weak, self.epoch_before = broker.id, broker.gate.broker_epoch
        self.invariants.lost_tail.add(broker.id)
        self.bury(broker, lambda: broker.crash_and_lose_tail(self.chance))

    def broker_leaves(self) -> None:
        """Politely: what it leads goes to others first, if there are any."""
        broker = self._some_broker()
        if broker is None or broker.id not in self.world.registered or self.weak is not None:
            return
        self.trace.append(f"broker {broker.id} leaves")
        epoch = broker.gate.broker_epoch
        self.world.enqueue(ControlledShutdownAsked(broker.id, epoch, lambda value: None))
        self.world.run()
        self.bury(broker, broker.stop)

    def session_expires(self) -> None:
        """Of a broker that is dead, or only cut off from ZooKeeper."""
        broker_id = self.chance.choice(BROKERS)
        lives = broker_id in self.brokers
        if broker_id in self.world.registered and (not lives or (self.weak is None and self.chance.random() < 0.3)):
            self.trace.append(f"the session of broker {broker_id} expires")
            self.lose(broker_id)

    def broker_returns(self) -> None:
        """Bring a broker that lost its tail back when a controller is in office that will notice its absence.

        (One that takes over later can't know: the state of a partition doesn't tell which life of a broker it means.)
        """
        gone = [b for b in BROKERS if b not in self.brokers or b not in self.world.registered]
        if gone:
            broker_id = self.chance.choice(gone)
            if broker_id not in self.invariants.lost_tail or (self.world.context and self.world.context.brokers):
                self.bring_back(broker_id)
