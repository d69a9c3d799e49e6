"""Faults of a simulated cluster, each a step of its story: of the network, of ZooKeeper, of brokers and their disks and
clocks.

One broker at a time loses what it had not flushed: only while everybody else is well, for that is what replication
promises to survive.
"""

import re

from odradek.broker.controller.core.events import ControlledShutdownAsked
from odradek.broker.replication.core.isr import IsrChange
from odradek.sim.broker import SimulatedBroker
from odradek.sim.clients.transformer import is_offset_commit
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.options import LEDGER

_CLOCK_ERRORS_MS = (-8_000, -1_000, 0, 1_000, 8_000)
"""Less than a transaction may last: its coordinator goes by the wall clock, as Apache Kafka's does."""
_LARGE_CLOCK_ERRORS_MS = (-3_600_000, 3_600_000)
_SLOW_WRITES_MS = (100, 1_000, 12_000)
_STAYS_AWAY = 0.9
"""Share of the chances to come back, while a topic is deleted, that a broker without a replica of it doesn't take."""
_COMMIT_IS_RELEASED = 0.2
"""Commits of group members are held for longer than other messages: until the members of the next generation commit."""
_COMMIT = re.compile(r"member \d+ commits in generation (-?\d+) ")


def _is_transactional_batch(text: str) -> bool:
    return text.startswith(LEDGER) and ": batch " in text


def _is_verification_answer(text: str) -> bool:
    return text.startswith("answer of ") and " to the verification of " in text


def _generation_of_commit(text: str) -> int | None:
    """Return the generation if the message is a commit of a group's member."""
    found = _COMMIT.match(text)
    return None if found is None else int(found[1])


def _is_isr_answer(text: str) -> bool:
    return ": ISR answer to " in text


class Faults:
    """Each public method is a step of a story."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    # ---- the network

    def messages_arrive(self) -> None:
        for _ in range(self._cluster.chance.randint(1, 4)):
            if first := self._cluster.network.first_ones():
                self._cluster.network.arrive(self._cluster.chance.choice(first))

    def message_is_lost(self) -> None:
        if loose := self._cluster.network.loose_ones():
            self._cluster.network.lose(self._cluster.chance.choice(loose))

    def connection_breaks(self) -> None:
        if loose := self._cluster.network.loose_ones():
            self._cluster.network.give_up(self._cluster.chance.choice(loose))

    def message_is_held_back(self) -> None:
        """Hold a message of a connection that its sender takes for broken: one on its way, the next batch or offset of
        a transaction, or the next answer to a leader that asked for a change of the ISR."""
        if self._cluster.transactional and self._cluster.chance.random() < 0.5:
            kinds = (_is_transactional_batch, _is_transactional_batch, is_offset_commit)
            self._cluster.network.holds_next = self._cluster.chance.choice(kinds)
        elif self._cluster.chance.random() < 0.3:
            self._cluster.network.holds_next = _is_isr_answer
        elif loose := [message for message in self._cluster.network.loose_ones() if not message.is_held]:
            self._cluster.network.hold(self._cluster.chance.choice(loose))

    def message_is_delayed(self) -> None:
        """Delay a message on its way, or the next answer of a coordinator that verifies a transaction: markers may
        overtake it. Its sender waits."""
        network, chance = self._cluster.network, self._cluster.chance
        if self._cluster.transactional and chance.random() < 0.5:
            network.delays_next = _is_verification_answer
        elif loose := [message for message in network.loose_ones() if not message.is_held]:
            network.delay(chance.choice(loose))

    def message_is_released(self) -> None:
        held = [message for message in self._cluster.network.messages if message.is_held]
        if held:
            message = self._cluster.chance.choice(held)
            generation = _generation_of_commit(message.text)
            if generation is None or self._cluster.group.generation != generation:
                message.is_held = generation is not None and self._cluster.chance.random() >= _COMMIT_IS_RELEASED

    def pipe_is_full(self) -> None:
        """The receiver of a channel reads nothing more: requests wait in it, answers don't come."""
        if channels := self._cluster.network.channels():
            self._cluster.network.full[self._cluster.chance.choice(channels)] = None

    def pipe_drains(self) -> None:
        if self._cluster.network.full:
            del self._cluster.network.full[self._cluster.chance.choice(list(self._cluster.network.full))]

    # ---- the controller and its ZooKeeper

    def controller_acts(self) -> None:
        context = self._cluster.world.context
        if (
            context is not None
            and self._cluster.world.has_events
            and context.broker_id not in self._cluster.network.frozen
        ):
            self._cluster.trace.append(f"controller {context.broker_id} acts")
            self._cluster.world.run()

    def former_controller_acts(self) -> None:
        """A controller that doesn't know that it is replaced decides on (`FormerController`)."""
        former = self._cluster.world.former
        if former is not None and former.events and former.context.broker_id not in self._cluster.network.frozen:
            self._cluster.trace.append(f"former controller {former.context.broker_id} acts")
            self._cluster.world.former_controller_decides()

    def zookeeper_server_lags(self) -> None:
        if self._cluster.world.context is not None and not self._cluster.world.session.is_behind:
            self._cluster.trace.append("the ZooKeeper server of the controller's session falls behind")
            self._cluster.world.session.fall_behind()

    def zookeeper_server_catches_up(self) -> None:
        if self._cluster.world.session.is_behind:
            self._cluster.trace.append("the ZooKeeper server of the controller's session catches up")
            self._cluster.world.session.catch_up()

    # ---- brokers

    def clock_jumps(self) -> None:
        """Set the wall clock of one machine wrong, or right again; time goes on as before."""
        broker_id = self._cluster.chance.choice(self._cluster.broker_ids)
        errors = (
            _CLOCK_ERRORS_MS if self._cluster.options.transactions else (*_CLOCK_ERRORS_MS, *_LARGE_CLOCK_ERRORS_MS)
        )
        self._cluster.clocks[broker_id].wrong_by_ms = error_ms = self._cluster.chance.choice(errors)
        self._cluster.trace.append(f"the clock of broker {broker_id} is wrong by {error_ms} ms")

    def broker_is_killed(self) -> None:
        broker = self._cluster.chance.choice([*self._cluster.brokers.values()]) if self._cluster.brokers else None
        if broker is not None and self._cluster.weak is None:
            self._cluster.trace.append(f"broker {broker.id} is killed")
            self._cluster.end_process(broker, broker.crash)

    def broker_loses_power(self) -> None:
        broker = self._cluster.some_broker()
        if broker is not None and self._may_lose_power(broker):
            self._lose_power(broker)

    def joining_broker_reboots(self) -> None:
        """Cut the power of a broker for which a leader asks to join the ISR, and bring it back at once. The request is
        held back: it names the registration that the leader saw (KIP-903)."""
        context = self._cluster.world.context
        if context is None or not context.brokers:
            return  # nobody would notice; nor would the next controller, if it were this one
        asked = [
            (change, joining)
            for leader in self._cluster.awake()
            for change in leader.wanted_isr.values()
            for joining in set(change.isr).difference(leader.isr_of(change.partition))
            if joining in self._cluster.brokers and joining != context.broker_id
        ]
        for change, joining in sorted(asked, key=lambda each: (each[0].partition, each[1])):
            broker = self._cluster.brokers[joining]
            if joining not in self._cluster.network.frozen and self._may_lose_power(broker):
                self._hold_isr_requests(change)
                self._lose_power(broker)
                self._cluster.bring_back(joining)
                return

    def _hold_isr_requests(self, change: IsrChange) -> None:
        start = f"{change.partition}: broker {change.leader} asks for the ISR "
        for message in self._cluster.network.loose_ones():
            if message.text.startswith(start) and not message.is_held:
                self._cluster.network.hold(message)

    def _may_lose_power(self, broker: SimulatedBroker) -> bool:
        if self._cluster.weak is not None or broker.id not in self._cluster.world.znodes.registered:
            return False
        if broker.wanted_isr:
            return False  # it may be about to become the last member of an ISR
        return all(self._cluster.is_well(other) for other in self._cluster.broker_ids if other != broker.id)

    def _lose_power(self, broker: SimulatedBroker) -> None:
        self._cluster.trace.append(f"broker {broker.id} loses power")
        self._cluster.weak, self._cluster.epoch_before = broker.id, broker.gate.broker_epoch
        self._cluster.lost_tail.add(broker.id)
        self._cluster.end_process(broker, lambda: broker.crash_and_lose_tail(self._cluster.chance))

    def broker_leaves(self) -> None:
        """Stop a broker by ControlledShutdown: its partitions get other leaders first, if there are any."""
        broker = self._cluster.some_broker()
        if broker is None or broker.id not in self._cluster.world.znodes.registered or self._cluster.weak is not None:
            return
        self._cluster.trace.append(f"controlled shutdown of broker {broker.id}")
        epoch = broker.gate.broker_epoch
        self._cluster.world.enqueue(ControlledShutdownAsked(broker.id, epoch, lambda value: None))
        self.controller_acts()
        self._cluster.end_process(broker, broker.stop)

    def broker_freezes(self) -> None:
        """Freeze a broker as by SIGSTOP, or a long pause of its machine."""
        broker = self._cluster.some_broker()
        if broker is not None and self._cluster.weak is None:
            self._cluster.trace.append(f"broker {broker.id} freezes")
            self._cluster.network.frozen.add(broker.id)

    def leader_is_cut_off(self) -> None:
        """Cut a leader off from all other brokers and ZooKeeper, for long; consumers reach it."""
        cluster = self._cluster
        leaders = {tp: cluster.elected_leader(tp) for tp in cluster.consumed}
        led = [
            broker for broker in leaders.values() if broker is not None and broker.id in cluster.world.znodes.registered
        ]
        if led and cluster.weak is None and not cluster.network.cut_off:
            broker = cluster.chance.choice(led)
            cluster.trace.append(f"leader {broker.id} is cut off")
            cluster.network.cut_off.add(broker.id)
            cluster.lose(broker.id)

    def cut_off_broker_is_reached(self) -> None:
        if self._cluster.network.cut_off:
            self._cluster.trace.append(f"brokers {sorted(self._cluster.network.cut_off)} are reached again")
            self._cluster.network.cut_off.clear()

    def broker_thaws(self) -> None:
        if self._cluster.network.frozen:
            broker_id = self._cluster.chance.choice(sorted(self._cluster.network.frozen))
            self._cluster.trace.append(f"broker {broker_id} thaws")
            self._cluster.network.frozen.discard(broker_id)

    def directory_fails(self) -> None:
        """An error of its disk: the replicas in it are gone until the broker starts again."""
        broker = self._cluster.some_broker()
        if broker is None or self._cluster.weak is not None or broker.id not in self._cluster.world.znodes.registered:
            return
        if len(broker.logs.table.directories) > 1 and broker.logs.table.all_online:
            directory = self._cluster.chance.choice(broker.logs.table.directories)
            self._cluster.trace.append(f"broker {broker.id} loses directory {directory.name}")
            broker.logs.table.fail(directory, OSError(5, "Input/output error"))

    def disk_is_slow(self) -> None:
        """Let each write of a broker take long: longer than a produce request waits, or than a replica may lag."""
        broker = self._cluster.some_broker()
        if broker is not None:
            self._cluster.network.disks.write_ms[broker.id] = write_ms = self._cluster.chance.choice(_SLOW_WRITES_MS)
            self._cluster.trace.append(f"each write of broker {broker.id} takes {write_ms} ms")

    def disk_is_fast(self) -> None:
        disks = self._cluster.network.disks
        if disks.write_ms:
            broker_id = self._cluster.chance.choice(sorted(disks.write_ms))
            self._cluster.trace.append(f"the disk of broker {broker_id} is fast again")
            disks.forget(broker_id)

    def write_fails(self) -> None:
        """Let the next write to a log of a broker, or to its index of aborted transactions, fail."""
        broker = self._cluster.some_broker()
        if broker is None or self._cluster.weak is not None or broker.id not in self._cluster.world.znodes.registered:
            return
        has_other = len(broker.logs.table.directories) > 1 and broker.logs.table.all_online
        if has_other and broker.replicas.partitions:
            tp = self._cluster.chance.choice(sorted(broker.replicas.partitions))
            self._cluster.trace.append(f"broker {broker.id}: the next write to {tp} fails")
            broker.fail_next_write(tp, of_index=self._cluster.chance.random() < 0.3)

    def session_expires(self) -> None:
        """End the session of a broker that is dead, or only cut off from ZooKeeper. While a topic is deleted, it is one
        without a replica of it: the deletion doesn't wait for that broker."""
        if uninvolved := self._without_deleted_topics():
            broker_id = self._cluster.chance.choice(uninvolved)
            self._cluster.trace.append(f"the session of broker {broker_id} expires")
            self._cluster.lose(broker_id)
            return
        broker_id = self._cluster.chance.choice(self._cluster.broker_ids)
        lives = broker_id in self._cluster.brokers
        if broker_id in self._cluster.world.znodes.registered and (
            not lives or (self._cluster.weak is None and self._cluster.chance.random() < 0.3)
        ):
            self._cluster.trace.append(f"the session of broker {broker_id} expires")
            self._cluster.lose(broker_id)

    def _without_deleted_topics(self) -> list[int]:
        """Return the brokers with a session that have no replica of the topics that are being deleted."""
        involved, registered = self._with_deleted_topics(), self._cluster.world.znodes.registered
        if not involved or self._cluster.weak is not None:
            return []
        return [each for each in self._cluster.broker_ids if each in registered and each not in involved]

    def _with_deleted_topics(self) -> set[int]:
        """Return the brokers with a replica of the topics that are being deleted."""
        deleted = [tp for topic in self._cluster.world.znodes.to_delete for tp in self._cluster.partitions_of(topic)]
        return {broker_id for tp in deleted for broker_id in self._cluster.replicas_of(tp).replicas}

    def session_of_dead_broker_expires(self) -> None:
        dead = sorted(self._cluster.world.znodes.registered.keys() - self._cluster.brokers.keys())
        if dead:
            self._cluster.trace.append(f"the session of dead broker {dead[0]} expires")
            self._cluster.lose(dead[0])

    def broker_returns(self) -> None:
        """Bring a broker back; one that lost its tail, when there is a controller that notices its absence.

        (One that takes over later can't know: the state of a partition doesn't tell which life of a broker it means.)
        """
        absent = [
            b
            for b in self._cluster.broker_ids
            if b not in self._cluster.brokers or b not in self._cluster.world.znodes.registered
        ]
        gone = [b for b in absent if b not in self._cluster.network.frozen | self._cluster.network.cut_off]
        if self._cluster.world.znodes.to_delete and self._cluster.chance.random() < _STAYS_AWAY:
            gone = [b for b in gone if b not in self._cluster.brokers or b in self._with_deleted_topics()]
        if gone:
            broker_id = self._cluster.chance.choice(gone)
            if broker_id not in self._cluster.lost_tail or (
                self._cluster.world.context and self._cluster.world.context.brokers
            ):
                self._cluster.bring_back(broker_id)
