"""The simulator's world, which here tells what the controller saw and did."""

from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered
from odradek.sim.world import BrokerInMemory
from odradek.sim.world import World as SilentWorld

from .trace import Trace, event_line

__all__ = ["BrokerInMemory", "World"]


class World(SilentWorld):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def tell(self, event: Event, begun: list[Effect]) -> None:
        trace = Trace()
        for effect in begun:
            trace.add(effect)
        told = trace.lines()
        if told or not isinstance(event, LeaderAndIsrAnswered | StopReplicaAnswered):
            self.lines += [event_line(event, self.registered), *told]
