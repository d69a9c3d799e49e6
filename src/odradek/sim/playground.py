"""A simulated cluster that people break: rounds in which everything works, and faults by command.

Rounds pass, and in each of them brokers, controller and clients do what they have to do. A command kills, freezes or
cuts off a broker, or brings it back. The seed, and the rounds before which commands were given, decide everything.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

from odradek.sim.actions import Actions
from odradek.sim.checkers.violation import Violation
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.cluster_view import ClusterView, view_of
from odradek.sim.invariants import Invariants
from odradek.sim.network import Message
from odradek.sim.options import Options, TopicPlan

ROUND_MS = 200
SESSION_TIMEOUT_MS = 3_000
REQUEST_TIMEOUT_MS = 2_000
_MAX_LAG_MS = 3_000
_HOPS = 3
"""Times a round at which messages arrive."""
_ARRIVES = 0.9
_PRODUCES = 0.4
_FETCH_BYTES = 100_000
_TRACE_MAX = 200
_EVENTS_MAX = 100
_TOPIC = TopicPlan("orders", 3, 3, {"min.insync.replicas": "2", "segment.bytes": "20000"})


class Playground:
    def __init__(self, directory: Path, seed: int) -> None:
        self.round = 0
        self.fault: str | None = None
        self.events: list[str] = []
        """Changes of the cluster, the last ones."""
        chance = Random(f"playground {seed}")
        options = Options(brokers=chance.choice((3, 3, 4, 5)), max_lag_ms=_MAX_LAG_MS, topics=(_TOPIC,))
        self.cluster = SimulatedCluster(directory, options)
        self.cluster.chance.seed(chance.getrandbits(32))
        self._actions = Actions(self.cluster)
        self._invariants = Invariants(self.cluster)
        self._silent_since: dict[int, int] = {}  # brokers that ZooKeeper doesn't hear of
        self._sent: dict[Message, int] = {}  # round of messages on their way
        self._seen = self.view()
        self._commands: dict[str, Callable[[int], None]] = {
            "kill": self._kill,
            "start": self._start,
            "freeze": self.cluster.network.frozen.add,
            "thaw": self.cluster.network.frozen.discard,
            "cut": self.cluster.network.cut_off.add,
            "connect": self.cluster.network.cut_off.discard,
        }

    def view(self) -> ClusterView:
        return view_of(self.cluster)

    # ---- commands

    def command(self, name: str, broker_id: int) -> None:
        """Kill, start, freeze, thaw, cut or connect a broker. ValueError if there is no such command or broker."""
        action = self._commands.get(name)
        if action is None or broker_id not in self.cluster.broker_ids:
            raise ValueError(f"{name} {broker_id}: valid are {', '.join(self._commands)} and a broker")
        if name == "start" or broker_id in self.cluster.brokers:
            self._tell(f"broker {broker_id}: {name}")
            action(broker_id)

    def _kill(self, broker_id: int) -> None:
        broker = self.cluster.brokers[broker_id]
        self.cluster.end_process(broker, broker.crash)
        self.cluster.network.cut_off.discard(broker_id)

    def _start(self, broker_id: int) -> None:
        if broker_id not in self.cluster.brokers:
            self.cluster.bring_back(broker_id)

    # ---- rounds

    def advance(self) -> None:
        """Run one round. After a violation nothing happens any more: `fault` tells it."""
        if self.fault is not None:
            return
        self.round += 1
        try:
            self._sessions()
            self._controller()
            self._replicas()
            self._clients()
            self._messages()
            self.cluster.wait(ROUND_MS)
            self._invariants.check()
        except Violation as violation:
            self.fault = str(violation)
            self._tell(self.fault)
        self._tell_changes()
        del self.cluster.trace[:-_TRACE_MAX]

    def _reaches_others(self, broker_id: int) -> bool:
        network = self.cluster.network
        return broker_id in self.cluster.brokers and broker_id not in network.frozen | network.cut_off

    def _sessions(self) -> None:
        """End the sessions of silent brokers; let the others register."""
        now_ms, registered = self.cluster.clock.monotonic_ms(), self.cluster.world.znodes.registered
        for broker_id in self.cluster.broker_ids:
            if self._reaches_others(broker_id):
                self._silent_since.pop(broker_id, None)
                if broker_id not in registered:
                    self.cluster.register(broker_id)
                continue
            silent_ms = now_ms - self._silent_since.setdefault(broker_id, now_ms)
            if silent_ms >= SESSION_TIMEOUT_MS and broker_id in registered:
                self.cluster.lose(broker_id)

    def _controller(self) -> None:
        world = self.cluster.world
        if world.context is None and self.cluster.dead_controller is None:
            candidates = [each for each in sorted(world.znodes.registered) if self._reaches_others(each)]
            if candidates:
                world.elect_controller(self.cluster.chance.choice(candidates))
        if world.context is not None and self._reaches_others(world.context.broker_id):
            world.run()

    def _replicas(self) -> None:
        asks_again = self.round % (REQUEST_TIMEOUT_MS // ROUND_MS) == 0
        for broker in self.cluster.awake():
            for leader_id in broker.fetchers.leaders():
                self.cluster.fetch(broker, leader_id, _FETCH_BYTES)
            for change in list(broker.wanted_isr.values()):
                if asks_again or not self.cluster.was_asked(broker, change):
                    self.cluster.ask_for_isr(broker, change)

    def _clients(self) -> None:
        for producer in self.cluster.producers.values():
            leader = self.cluster.elected_leader(producer.partition)
            has_work = producer.batch is not None or self.cluster.chance.random() < _PRODUCES
            if leader is not None and has_work and not producer.is_waiting:
                self.cluster.produce(producer, leader)
        self._actions.consumer_reads()

    def _messages(self) -> None:
        """Let messages arrive, and give up late ones: a frozen broker may still answer."""
        network = self.cluster.network
        for _ in range(_HOPS):
            for message in network.first_ones():
                if self.cluster.chance.random() < _ARRIVES:
                    network.arrive(message)
        self._sent = {message: self._sent.get(message, self.round) for message in network.messages}
        for message, sent in self._sent.items():
            if message.channel is None and (self.round - sent) * ROUND_MS == REQUEST_TIMEOUT_MS:
                (network.lose if network.is_cut(message) else network.give_up)(message)

    # ---- events

    def _tell(self, text: str) -> None:
        self.events.append(f"{self.round * ROUND_MS / 1000:.1f} s  {text}")
        del self.events[:-_EVENTS_MAX]

    def _tell_changes(self) -> None:
        before, now = self._seen, self.view()
        self._seen = now
        for was, each in zip(before.brokers, now.brokers, strict=True):
            if was.has_session != each.has_session:
                self._tell(f"broker {each.broker_id}: session {'begins' if each.has_session else 'expires'}")
        if (before.controller, before.controller_epoch) != (now.controller, now.controller_epoch):
            if now.controller is None:
                self._tell("no controller")
            else:
                self._tell(f"controller {now.controller} elected, controller epoch {now.controller_epoch}")
        known = {each.name: each for each in before.partitions}
        for partition in now.partitions:
            old = known.get(partition.name, partition)
            if (old.leader, old.leader_epoch) != (partition.leader, partition.leader_epoch):
                change = f"{_leader(old.leader)} → {_leader(partition.leader)}"
                self._tell(f"{partition.name}: leader {change}, leader epoch {partition.leader_epoch}")
            if old.isr != partition.isr:
                self._tell(f"{partition.name}: ISR {list(old.isr)} → {list(partition.isr)}")


def _leader(broker_id: int) -> str:
    return str(broker_id) if broker_id >= 0 else "none"
