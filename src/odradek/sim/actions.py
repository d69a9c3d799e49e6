"""Actions in a simulated cluster, each a step of its story: of the controller, administrators, replicas and clients."""

from itertools import count

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core.events import ElectionAsked, ReassignmentsAsked
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.client.topic_admin import MIN_ISR
from odradek.model.topology import ZERO_UUID, ReplicaAssignment, TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.elect_leaders import ElectionType
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.log_reading import entries_in
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.committed_reader import KnownEpochs
from odradek.sim.clients.group_member import GroupMember
from odradek.sim.clients.group_membership import SESSION_TIMEOUT_MS
from odradek.sim.cluster import SimulatedCluster

SCRATCH_TOPICS_MAX = 2
ISR_ASKED_AGAIN = 0.2
MOVED_BACK = 0.6
"""Share of the reassignments that move a partition back, if one was moved."""
_STALLED_ACTS = (20, 80)
"""Number of times that a stalled member could have acted."""


class Actions:
    """Steps of a story: each public method is one."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._scratch = count(1)
        self._epochs = KnownEpochs()
        self._moved_from: dict[TopicPartition, tuple[int, ...]] = {}  # replicas before a reassignment

    # ---- the controller

    def controller_changes(self) -> None:
        """Elect a controller where there is none, or in place of one that doesn't notice."""
        without_controller = self._cluster.world.context is None and self._cluster.dead_controller is None
        candidates = sorted(
            (self._cluster.world.znodes.registered.keys() & self._cluster.brokers.keys()) - self._cluster.network.frozen
        )
        if candidates and (without_controller or self._may_replace_controller()):
            winner = self._cluster.chance.choice(candidates)
            self._cluster.trace.append(f"broker {winner} becomes controller")
            self._cluster.world.elect_controller(winner)

    def _may_replace_controller(self) -> bool:
        return (
            self._cluster.world.context is not None
            and not self._cluster.lost_tail
            and self._cluster.chance.random() < 0.1
        )

    def leaders_are_rebalanced(self) -> None:
        self._cluster.trace.append("a preferred election is asked for")
        chosen = frozenset((self._cluster.chance.choice(self._cluster.all_partitions()),))
        self._cluster.world.enqueue(ElectionAsked(chosen, ElectionType.PREFERRED, lambda value: None))

    def leader_asks_for_isr(self) -> None:
        """Ask for a change of the ISR; now and then again for one whose answer may be on its way."""
        repeats = self._cluster.chance.random() < ISR_ASKED_AGAIN
        wanted = [(broker, change) for broker in self._cluster.awake() for change in broker.wanted_isr.values()]
        if asking := [each for each in wanted if repeats or not self._cluster.was_asked(*each)]:
            self._cluster.ask_for_isr(*self._cluster.chance.choice(asking))

    # ---- administration

    def partition_is_reassigned(self) -> None:
        """Move a partition to brokers that are drawn, or one that was moved back to where it was."""
        chance, partitions = self._cluster.chance, self._cluster.all_partitions()
        moved = [tp for tp in partitions if tp in self._moved_from]
        if moved and chance.random() < MOVED_BACK:
            tp = chance.choice(moved)
            target = self._moved_from.pop(tp)
        else:
            tp = chance.choice(partitions)
            before = self._cluster.replicas_of(tp).target
            target = tuple(chance.sample(self._cluster.broker_ids, len(before)))
            if set(target) != set(before):
                self._moved_from[tp] = before
        self._cluster.trace.append(f"{tp} is to move to {target}")
        self._cluster.world.enqueue(ReassignmentsAsked({tp: target}, lambda value: None))

    def scratch_topics(self) -> list[str]:
        return [
            name
            for name in self._cluster.world.znodes.topics
            if name.startswith("scratch-") and name not in self._cluster.world.znodes.to_delete
        ]

    def topic_is_created(self) -> None:
        if len(self.scratch_topics()) >= SCRATCH_TOPICS_MAX:
            return
        tp = TopicPartition(f"scratch-{next(self._scratch)}", 0)
        needed = int(self._cluster.options.plan(tp.topic).config[MIN_ISR])
        number = max(needed, self._cluster.chance.choice((2, 3)))
        replicas = tuple(self._cluster.chance.sample(self._cluster.broker_ids, number))
        self._cluster.trace.append(f"topic {tp.topic} is created on {replicas}")
        self._cluster.create_topic(tp.topic, {0: ReplicaAssignment(replicas)})
        self._cluster.producers[tp] = self._cluster.new_producer(tp)

    def topic_is_deleted(self) -> None:
        """Delete a topic, one of which no broker that is away has a replica if there is one."""
        if topics := self.scratch_topics():
            away = self._cluster.brokers.keys() - self._cluster.world.znodes.registered.keys()
            others = [name for name in topics if not away & self._brokers_of(name)]
            self.delete(self._cluster.chance.choice(others or topics))

    def delete(self, topic: str) -> None:
        self._cluster.trace.append(f"topic {topic} is to be deleted")
        self._cluster.world.mark_for_deletion(topic)
        for tp in self._cluster.partitions_of(topic):
            del self._cluster.producers[tp]

    def _brokers_of(self, topic: str) -> set[int]:
        partitions = self._cluster.partitions_of(topic)
        return {broker_id for tp in partitions for broker_id in self._cluster.replicas_of(tp).replicas}

    # ---- replication and time

    def follower_fetches(self) -> None:
        broker = self._cluster.some_broker()
        followed = broker.fetchers.leaders() if broker is not None else []
        if broker is not None and followed:
            self._cluster.fetch(
                broker, self._cluster.chance.choice(followed), self._cluster.chance.choice((1, 300, 100_000))
            )

    def time_passes(self) -> None:
        self._pass(self._cluster.chance.choice((1, 10, 100, 500, self._cluster.options.max_lag_ms // 2)))

    def time_jumps(self) -> None:
        """Let more time pass than any lag, session or rebalance may last."""
        self._pass(self._cluster.chance.choice((20_000, 60_000, 300_000)))

    def _pass(self, ms: int) -> None:
        self._cluster.trace.append(f"{ms} ms pass")
        self._cluster.wait(ms)

    def broker_writes_checkpoints(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None:
            self._cluster.trace.append(f"broker {broker.id} writes its checkpoints")
            broker.logs.table.checkpoint_high_watermarks(broker.replicas.high_watermarks())
            broker.logs.table.checkpoint_recovery_points()
            broker.logs.table.checkpoint_log_start_offsets()

    def broker_flushes(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None:
            self._cluster.trace.append(f"broker {broker.id} flushes")
            for partition in list(broker.replicas.partitions.values()):
                partition.log.flush()

    def log_is_cleaned(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None and broker.clean_logs():
            self._cluster.trace.append(f"broker {broker.id} compacts a log")

    def retention_runs(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None:
            broker.roles.delete_expired()

    # ---- clients

    def producer_sends(self) -> None:
        idle = [producer for producer in self._cluster.producers.values() if not producer.is_waiting]
        if not idle:
            return
        producer = self._cluster.chance.choice(idle)
        leaders = [broker for broker in self._cluster.brokers.values() if broker.leads(producer.partition)]
        if leaders:
            self._cluster.produce(producer, self._cluster.chance.choice(leaders))

    def librdkafka_sends(self) -> None:
        producer = self._cluster.chance.choice(self._cluster.librdkafka)
        tp = self._cluster.chance.choice(list(producer.queues))
        for _ in range(self._cluster.chance.randint(1, 5)):
            producer.send(tp, self._cluster.chance)

    def librdkafka_connection_breaks(self) -> None:
        producer = self._cluster.chance.choice(self._cluster.librdkafka)
        if producer.connections:
            self._cluster.trace.append(f"a connection of librdkafka {producer.number} breaks")
            producer.disconnect(self._cluster.chance.choice(list(producer.connections.values())))

    def java_producer_sends(self) -> None:
        for _ in range(self._cluster.chance.randint(1, 3)):
            self._cluster.java.send(self._cluster.chance)

    def java_connection_breaks(self) -> None:
        if self._cluster.java.connections:
            self._cluster.trace.append(f"a connection of Java producer {self._cluster.java.number} breaks")
            self._cluster.java.disconnect(self._cluster.chance.choice(list(self._cluster.java.connections.values())))

    def consumer_reads(self) -> None:
        """Read from the brokers that believe they lead, of a partition with several of them if there is one. Committed
        offsets are in range of them, for ever, unless the consumer knows of a later leader, which it tells them."""
        leaders = {tp: self._leaders(tp) for tp in self._cluster.consumed}
        disputed = [tp for tp, brokers in leaders.items() if len(brokers) > 1]
        tp = self._cluster.chance.choice(disputed or list(leaders))
        for broker in leaders[tp]:
            self._read_from(broker, tp)

    def consumer_asks_for_end(self) -> None:
        """Ask the present leaders for the ends that a reader of committed records sees, as ListOffsets does; one that
        doesn't know its end yet says so."""
        for tp in self._cluster.committed_reader.positions:
            leader = self._cluster.elected_leader(tp)
            if leader is not None and self._cluster.coordinates(leader, tp):
                committed = leader.replicas.partitions[tp].committed
                if committed.end_is_known:
                    self._cluster.transactions.end_told(tp, committed.visible_end(IsolationLevel.READ_COMMITTED))

    def _leaders(self, tp: TopicPartition) -> list[SimulatedBroker]:
        """Return the brokers that believe they lead, the present leader first."""
        believing = [broker for broker in self._cluster.brokers.values() if broker.leads(tp)]
        return sorted(believing, key=lambda broker: -broker.replicas.partitions[tp].leader_epoch)

    def _read_from(self, broker: SimulatedBroker, tp: TopicPartition) -> None:
        log, offset = broker.replicas.partitions[tp].log, self._cluster.consumed[tp]
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(tp, ZERO_UUID, offset, 100_000, self._epochs.at(tp, broker))
        broker.replicas.fetch([target], FetchTerms(0, 1, 100_000, 0), outcomes.extend)
        (outcome,) = outcomes
        if outcome.error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return
        if outcome.error is ErrorCode.OFFSET_OUT_OF_RANGE and offset < log.log_start_offset:
            self._cluster.consumed[tp] = log.log_start_offset
            return
        if outcome.error:
            raise Violation(f"{tp}: leader {broker.id} tells a consumer at {offset}: {outcome.error.name}")
        assert outcome.found is not None
        records = outcome.found.records
        found = [] if records is None else entries_in(records.read())
        self._cluster.trace.append(f"{tp}: a consumer reads {len(found)} batches of {broker.id}")
        self._cluster.histories[tp].consume(broker.id, found)
        if found:
            self._cluster.consumed[tp] = max(offset, found[-1].last_offset + 1)

    def group_member_acts(self) -> None:
        if self._cluster.members:
            self._cluster.chance.choice(self._cluster.members).act(self._cluster.chance)

    def member_dies(self) -> None:
        """End a member without LeaveGroup; another one takes its place."""
        if self._cluster.members:
            place = self._cluster.chance.randrange(len(self._cluster.members))
            number = self._cluster.members[place].number + 10
            self._cluster.trace.append(f"member {self._cluster.members[place].number} dies, {number} begins")
            self._cluster.members[place] = GroupMember(
                number, list(self._cluster.consumed), self._cluster, self._cluster.group
            )

    def member_stalls(self) -> None:
        """Let a member stall when it has sent a commit, which is held back: its session passes, others take its
        partitions, and the commit arrives in a later generation."""
        ready = [member for member in self._cluster.members if member.has_to_commit]
        if ready:
            member = self._cluster.chance.choice(ready)
            self._cluster.trace.append(f"member {member.number} stalls")
            self._cluster.network.holds_next = member.is_commit
            member.stall(self._cluster.chance.randint(*_STALLED_ACTS))
            self._cluster.wait(SESSION_TIMEOUT_MS + 1)

    def coordinator_loads(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None:
            broker.load_coordinators()

    def transactional_producer_acts(self) -> None:
        self._cluster.chance.choice(self._cluster.transactional).act(self._cluster.chance)

    def everything_moves(self) -> None:
        """One hop of most messages, fetches, transactions and groups: each takes dozens, between two faults too."""
        for broker in self._cluster.awake():
            broker.load_coordinators()
            for leader_id in broker.fetchers.leaders():
                self._cluster.fetch(broker, leader_id, 100_000)
        for producer in (*self._cluster.transactional, *self._cluster.copying.transformers):
            producer.act(self._cluster.chance)
        self._cluster.bank.teller_acts()
        for member in () if self._cluster.options.transactions else self._cluster.members:
            member.act(self._cluster.chance)
        for message in self._cluster.network.first_ones():
            if self._cluster.chance.random() < 0.8:
                self._cluster.network.arrive(message)
        self._cluster.wait(10)

    def transactional_producer_dies(self) -> None:
        producer = self._cluster.chance.choice(self._cluster.transactional)
        self._cluster.trace.append(f"transactional producer {producer.number} dies and begins anew")
        producer.die()

    def committed_reader_reads(self) -> None:
        tp = self._cluster.chance.choice(list(self._cluster.committed_reader.positions))
        leaders = [broker for broker in self._cluster.brokers.values() if broker.leads(tp)]
        if leaders:
            self._cluster.read_committed(tp, self._cluster.chance.choice(leaders))
