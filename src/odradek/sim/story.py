"""Events of a simulated cluster, drawn from a seed: the same seed, the same story.

The network delays, reorders and loses. Requests of one term of a controller reach a broker in order, but those of an
earlier term may come after them, and so may the first copy of one that was sent twice; a fetch or produce whose
connection broke may still arrive. Brokers are killed, frozen, restarted, cut off from ZooKeeper, lose a directory, and
one at a time loses what it had not flushed: only while everybody else is well, for that is what replication promises
to survive. Meanwhile topics come and go, partitions move, logs are compacted and shortened, groups rebalance.
"""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core.events import ElectionAsked, ElectionType, ReassignmentsAsked
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topology import ZERO_UUID, ReplicaAssignment, TopicPartition
from odradek.sim.checkers.log_reading import entries_in
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.group_member import GroupMember
from odradek.sim.faults import Faults
from odradek.sim.healing import HealingCluster
from odradek.sim.options import Options

SCRATCH_TOPICS_MAX = 2
TRANSFORMERS_MAX = 3


class Step(NamedTuple):
    """One thing that happens, and the seed of its own choices: without it, the steps after it stay what they are."""

    name: str
    seed: int


def steps_of(seed: int, options: Options) -> list[Step]:
    """The story of a seed."""
    chance = Random(seed)
    names, weights = list(options.weights), list(options.weights.values())
    drawn = chance.choices(names, weights, k=options.steps)
    return [Step(name, chance.getrandbits(32)) for name in drawn]


class Story(HealingCluster):
    """A cluster and the steps that happen to it; `on_step` is called after each of them."""

    def __init__(self, directory: Path, options: Options | None = None) -> None:
        super().__init__(directory, options)
        self._scratch = count(1)
        self._faults = Faults(self)

    def run(self, steps: Iterable[Step], on_step: Callable[[Step], None] = lambda step: None) -> None:
        self.warm_up()
        for step in steps:
            self.chance.seed(step.seed)
            self._do(step)
            self.check()
            on_step(step)
        self.heal()
        self.stop()

    def _do(self, step: Step) -> None:
        owner = self._faults if hasattr(Faults, step.name) else self
        getattr(owner, step.name)()

    # ---- the controller

    def controller_changes(self) -> None:
        """Elect a controller where there is none, or in place of one that doesn't notice."""
        without_controller = self.world.context is None and self.seat_of_dead is None
        candidates = sorted((self.world.registered.keys() & self.brokers.keys()) - self.network.frozen)
        if candidates and (without_controller or self._may_replace_controller()):
            winner = self.chance.choice(candidates)
            self.trace.append(f"broker {winner} becomes controller")
            self.world.elect_controller(winner)

    def _may_replace_controller(self) -> bool:
        return self.world.context is not None and not self.lost_tail and self.chance.random() < 0.1

    def leaders_are_rebalanced(self) -> None:
        self.trace.append("a preferred election is asked for")
        chosen = frozenset((self.chance.choice(self.all_partitions()),))
        self.world.enqueue(ElectionAsked(chosen, ElectionType.PREFERRED, lambda value: None))

    def leader_asks_for_isr(self) -> None:
        asking = [(broker, change) for broker in self.awake() for change in broker.wanted_isr.values()]
        if asking:
            self.ask_for_isr(*self.chance.choice(asking))

    # ---- administration

    def partition_is_reassigned(self) -> None:
        tp = self.chance.choice(self.all_partitions())
        target = tuple(self.chance.sample(self.broker_ids, len(self.replicas_of(tp).target)))
        self.trace.append(f"{tp} is to move to {target}")
        self.world.enqueue(ReassignmentsAsked({tp: target}, lambda value: None))

    def _scratch_topics(self) -> list[str]:
        return [name for name in self.world.topics if name.startswith("scratch-") and name not in self.world.to_delete]

    def topic_is_created(self) -> None:
        if len(self._scratch_topics()) >= SCRATCH_TOPICS_MAX:
            return
        tp = TopicPartition(f"scratch-{next(self._scratch)}", 0)
        replicas = tuple(self.chance.sample(self.broker_ids, 3))
        self.trace.append(f"topic {tp.topic} is created on {replicas}")
        self.create_topic(tp.topic, {0: ReplicaAssignment(replicas)})
        self.producers[tp] = self.new_producer(tp)

    def topic_is_deleted(self) -> None:
        if topics := self._scratch_topics():
            topic = self.chance.choice(topics)
            self.trace.append(f"topic {topic} is to be deleted")
            self.world.mark_for_deletion(topic)
            for tp in self.partitions_of(topic):
                del self.producers[tp]

    # ---- replication and time

    def follower_fetches(self) -> None:
        broker = self.some_broker()
        followed = broker.leaders_followed() if broker is not None else []
        if broker is not None and followed:
            self.fetch(broker, self.chance.choice(followed), self.chance.choice((1, 300, 100_000)))

    def time_passes(self) -> None:
        self._pass(self.chance.choice((1, 10, 100, 500, self.options.max_lag_ms // 2)))

    def time_jumps(self) -> None:
        """Long enough for every lag, session and rebalance to be over."""
        self._pass(self.chance.choice((20_000, 60_000, 300_000)))

    def _pass(self, ms: int) -> None:
        self.trace.append(f"{ms} ms pass")
        self.wait(ms)

    def broker_writes_checkpoints(self) -> None:
        broker = self.some_broker()
        if broker is not None:
            self.trace.append(f"broker {broker.id} writes its checkpoints")
            broker.logs.table.checkpoint_high_watermarks(broker.replicas.high_watermarks())
            broker.logs.table.checkpoint_recovery_points()
            broker.logs.table.checkpoint_log_start_offsets()

    def broker_flushes(self) -> None:
        broker = self.some_broker()
        if broker is not None:
            self.trace.append(f"broker {broker.id} flushes")
            for partition in list(broker.replicas.partitions.values()):
                partition.log.flush()

    def log_is_cleaned(self) -> None:
        broker = self.some_broker()
        if broker is not None and broker.clean_logs():
            self.trace.append(f"broker {broker.id} compacts a log")

    def retention_runs(self) -> None:
        broker = self.some_broker()
        if broker is not None:
            broker.roles.delete_expired()

    # ---- clients

    def producer_sends(self) -> None:
        idle = [producer for producer in self.producers.values() if not producer.is_waiting]
        if not idle:
            return
        producer = self.chance.choice(idle)
        leaders = [broker for broker in self.brokers.values() if broker.leads(producer.partition)]
        if leaders:
            self.produce(producer, self.chance.choice(leaders))

    def librdkafka_sends(self) -> None:
        producer = self.chance.choice(self.librdkafka)
        tp = self.chance.choice(list(producer.queues))
        for _ in range(self.chance.randint(1, 5)):
            producer.send(tp, self.chance)

    def librdkafka_connection_breaks(self) -> None:
        producer = self.chance.choice(self.librdkafka)
        if producer.connections:
            self.trace.append(f"a connection of librdkafka {producer.number} breaks")
            producer.disconnect(self.chance.choice(list(producer.connections.values())))

    def java_producer_sends(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.java.send(self.chance)

    def java_connection_breaks(self) -> None:
        if self.java.connections:
            self.trace.append(f"a connection of Java producer {self.java.number} breaks")
            self.java.disconnect(self.chance.choice(list(self.java.connections.values())))

    def consumer_reads(self) -> None:
        """Read from a broker that believes it leads. Committed offsets are in range of every such broker, for ever."""
        tp = self.chance.choice(list(self.consumed))
        leaders = [broker for broker in self.brokers.values() if broker.leads(tp)]
        if not leaders:
            return
        broker = self.chance.choice(leaders)
        log, offset = broker.replicas.partitions[tp].log, self.consumed[tp]
        outcomes: list[FetchOutcome] = []
        broker.replicas.fetch(
            [FetchTarget(tp, ZERO_UUID, offset, 100_000)], FetchTerms(0, 1, 100_000, 0), outcomes.extend
        )
        (outcome,) = outcomes
        if outcome.error is ErrorCode.OFFSET_OUT_OF_RANGE and offset < log.log_start_offset:
            self.consumed[tp] = log.log_start_offset
            return
        if outcome.error:
            raise Violation(f"{tp}: leader {broker.id} tells a consumer at {offset}: {outcome.error.name}")
        assert outcome.found is not None
        assert outcome.found.records is not None
        found = entries_in(outcome.found.records.read())
        self.trace.append(f"{tp}: a consumer reads {len(found)} batches of {broker.id}")
        self.histories[tp].consume(broker.id, found)
        if found:
            self.consumed[tp] = max(offset, found[-1].last_offset + 1)

    def group_member_acts(self) -> None:
        if self.members:
            self.chance.choice(self.members).act(self.chance)

    def member_dies(self) -> None:
        """End a member without LeaveGroup; another one takes its place."""
        if self.members:
            place = self.chance.randrange(len(self.members))
            number = self.members[place].number + 10
            self.trace.append(f"member {self.members[place].number} dies, {number} begins")
            self.members[place] = GroupMember(number, list(self.consumed), self, self.group)

    def coordinator_loads(self) -> None:
        broker = self.some_broker()
        if broker is not None:
            broker.load_coordinators()

    def transactional_producer_acts(self) -> None:
        self.chance.choice(self.transactional).act(self.chance)

    def everything_moves(self) -> None:
        """One hop of most messages, fetches and transactions: a transaction takes dozens, between two faults too."""
        for broker in self.awake():
            broker.load_coordinators()
            for leader_id in broker.leaders_followed():
                self.fetch(broker, leader_id, 100_000)
        for producer in (*self.transactional, *self.transformers):
            producer.act(self.chance)
        for message in self.network.first_ones():
            if self.chance.random() < 0.8:
                self.network.arrive(message)
        self.wait(10)

    def transactional_producer_dies(self) -> None:
        producer = self.chance.choice(self.transactional)
        self.trace.append(f"transactional producer {producer.number} dies and begins anew")
        producer.die()

    def transformer_acts(self) -> None:
        for transformer in self.transformers:
            transformer.act(self.chance)
        self.drop_fenced()

    def transformer_is_replaced(self) -> None:
        """Begin another one with the same transactional id, while the one before doesn't know."""
        if len(self.transformers) < TRANSFORMERS_MAX:
            self.trace.append(f"transformer {self.transformers[-1].number} is replaced")
            self.replace_transformer()

    def committed_reader_reads(self) -> None:
        tp = self.chance.choice(list(self.committed_reader.positions))
        leaders = [broker for broker in self.brokers.values() if broker.leads(tp)]
        if leaders:
            self.read_committed(tp, self.chance.choice(leaders))
