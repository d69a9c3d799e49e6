"""Stage of a scenario: the simulator's world, brokers in memory, and the text of what the controller saw and did."""

from collections.abc import Sequence
from dataclasses import replace

from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.sim.world import Listeners, World

from .brokers_in_memory import BrokerInMemory, BrokersInMemory
from .trace import Trace, event_line


class Stage:
    def __init__(self, listeners: Listeners | None = None) -> None:
        channels = BrokersInMemory()
        self.brokers = channels.by_id
        self.world = World(channels, replace(listeners or Listeners(), on_end=self._write))
        self.lines: list[str] = []

    def register(self, broker_id: int) -> None:
        self.world.register(broker_id)
        self.brokers[broker_id] = BrokerInMemory(self.world.znodes.registered[broker_id].epoch)

    def lose(self, broker_id: int) -> None:
        del self.brokers[broker_id]
        self.world.lose(broker_id)

    def _write(self, event: Event, begun: Sequence[Effect]) -> None:
        trace = Trace()
        for effect in begun:
            trace.add(effect)
        lines = trace.lines()
        if lines or not isinstance(event, LeaderAndIsrAnswered | StopReplicaAnswered):
            self.lines += [event_line(event, self.world.znodes.registered), *lines]
