"""Faults of a simulated cluster, each a step of its story: of the network, of ZooKeeper, of brokers and their disks and
clocks.

One broker at a time loses what it had not flushed: only while everybody else is well, for that is what replication
promises to survive.
"""

from odradek.broker.controller.core.events import ControlledShutdownAsked
from odradek.sim.broker import SimulatedBroker
from odradek.sim.healing import HealingCluster
from odradek.sim.options import LEDGER

_CLOCK_ERRORS_MS = (-8_000, -1_000, 0, 1_000, 8_000)
"""Less than a transaction may last: its coordinator goes by the wall clock, as Apache Kafka's does."""
_LARGE_CLOCK_ERRORS_MS = (-3_600_000, 3_600_000)


def _is_transactional_batch(text: str) -> bool:
    return text.startswith(LEDGER) and ": batch " in text


class FaultyCluster(HealingCluster):
    # ---- the network

    def messages_arrive(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            if first := self.network.first_ones():
                self.network.arrive(self.chance.choice(first))

    def message_is_lost(self) -> None:
        if loose := self.network.loose_ones():
            self.network.lose(self.chance.choice(loose))

    def connection_breaks(self) -> None:
        if loose := self.network.loose_ones():
            self.network.give_up(self.chance.choice(loose))

    def message_is_held_back(self) -> None:
        """Hold a message of a connection that its sender takes for broken: one on its way, or the next batch of a
        transaction."""
        if self.transactional and self.chance.random() < 0.5:
            self.network.holds_next = _is_transactional_batch
        elif loose := [message for message in self.network.loose_ones() if not message.is_held]:
            self.network.hold(self.chance.choice(loose))

    def message_is_released(self) -> None:
        held = [message for message in self.network.messages if message.is_held]
        if held:
            self.chance.choice(held).is_held = False

    def pipe_is_full(self) -> None:
        """The receiver of a channel reads nothing more: requests wait in it, answers don't come."""
        if channels := self.network.channels():
            self.network.full[self.chance.choice(channels)] = None

    def pipe_drains(self) -> None:
        if self.network.full:
            del self.network.full[self.chance.choice(list(self.network.full))]

    # ---- the controller and its ZooKeeper

    def controller_acts(self) -> None:
        context = self.world.context
        if context is not None and self.world._events and context.broker_id not in self.network.frozen:
            self.trace.append(f"controller {context.broker_id} acts")
            self.world.run()

    def zookeeper_server_lags(self) -> None:
        if self.world.context is not None and not self.world.is_behind:
            self.trace.append("the ZooKeeper server of the controller's session falls behind")
            self.world.fall_behind()

    def zookeeper_server_catches_up(self) -> None:
        if self.world.is_behind:
            self.trace.append("the ZooKeeper server of the controller's session catches up")
            self.world.catch_up()

    # ---- brokers

    def _awake(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if broker.id not in self.network.frozen]

    def clock_jumps(self) -> None:
        """Set the wall clock of one machine wrong, or right again; time goes on as before."""
        broker_id = self.chance.choice(self.broker_ids)
        errors = _CLOCK_ERRORS_MS if self.options.transactions else (*_CLOCK_ERRORS_MS, *_LARGE_CLOCK_ERRORS_MS)
        self.clocks[broker_id].wrong_by_ms = error_ms = self.chance.choice(errors)
        self.trace.append(f"the clock of broker {broker_id} is wrong by {error_ms} ms")

    def _some_broker(self) -> SimulatedBroker | None:
        awake = self._awake()
        return self.chance.choice(awake) if awake else None

    def broker_is_killed(self) -> None:
        broker = self.chance.choice([*self.brokers.values()]) if self.brokers else None
        if broker is not None and self.weak is None:
            self.trace.append(f"broker {broker.id} is killed")
            self.bury(broker, broker.crash)

    def broker_loses_power(self) -> None:
        broker = self._some_broker()
        if broker is None or self.weak is not None or broker.id not in self.world.registered:
            return
        if broker.wanted_isr:
            return  # it may be about to become the last member of an ISR
        if not all(self.is_well(other) for other in self.broker_ids if other != broker.id):
            return
        self.trace.append(f"broker {broker.id} loses power")
        self.weak, self.epoch_before = broker.id, broker.gate.broker_epoch
        self.lost_tail.add(broker.id)
        self.bury(broker, lambda: broker.crash_and_lose_tail(self.chance))

    def broker_leaves(self) -> None:
        """Stop a broker by ControlledShutdown: its partitions get other leaders first, if there are any."""
        broker = self._some_broker()
        if broker is None or broker.id not in self.world.registered or self.weak is not None:
            return
        self.trace.append(f"controlled shutdown of broker {broker.id}")
        epoch = broker.gate.broker_epoch
        self.world.enqueue(ControlledShutdownAsked(broker.id, epoch, lambda value: None))
        self.controller_acts()
        self.bury(broker, broker.stop)

    def broker_freezes(self) -> None:
        """Freeze a broker as by SIGSTOP, or a long pause of its machine."""
        broker = self._some_broker()
        if broker is not None and self.weak is None:
            self.trace.append(f"broker {broker.id} freezes")
            self.network.frozen.add(broker.id)

    def broker_thaws(self) -> None:
        if self.network.frozen:
            broker_id = self.chance.choice(sorted(self.network.frozen))
            self.trace.append(f"broker {broker_id} thaws")
            self.network.frozen.discard(broker_id)

    def directory_fails(self) -> None:
        """An error of its disk: the replicas in it are gone until the broker starts again."""
        broker = self._some_broker()
        if broker is None or self.weak is not None or broker.id not in self.world.registered:
            return
        if len(broker.logs.table.directories) > 1 and broker.logs.table.all_online:
            directory = self.chance.choice(broker.logs.table.directories)
            self.trace.append(f"broker {broker.id} loses directory {directory.name}")
            broker.logs.table.fail(directory, OSError(5, "Input/output error"))
            self.world.fail_directory(broker.id, ())

    def session_expires(self) -> None:
        """End the session of a broker that is dead, or only cut off from ZooKeeper."""
        broker_id = self.chance.choice(self.broker_ids)
        lives = broker_id in self.brokers
        if broker_id in self.world.registered and (not lives or (self.weak is None and self.chance.random() < 0.3)):
            self.trace.append(f"the session of broker {broker_id} expires")
            self.lose(broker_id)

    def broker_returns(self) -> None:
        """Bring a broker back; one that lost its tail, when a controller is in office that will notice its absence.

        (One that takes over later can't know: the state of a partition doesn't tell which life of a broker it means.)
        """
        absent = [b for b in self.broker_ids if b not in self.brokers or b not in self.world.registered]
        gone = [b for b in absent if b not in self.network.frozen]
        if gone:
            broker_id = self.chance.choice(gone)
            if broker_id not in self.lost_tail or (self.world.context and self.world.context.brokers):
                self.bring_back(broker_id)
