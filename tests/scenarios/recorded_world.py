"""What the flight recorder would write of a world, read back line by line into a picture."""

from typing import Any

from odradek.controller.effects import Effect
from odradek.controller.events import ControllerElected, Event
from odradek.controller.recording import TenureRecord
from odradek.recorder.entry import Entry, maybe_entry
from odradek.recorder.picture import Picture
from odradek.recorder.recorder import Describe, Happening

from .world import World


class RecordedWorld:
    def __init__(self, world: World) -> None:
        self.picture = Picture()
        self._world = world
        self._seq = 0
        self._tenure = TenureRecord(self, 0)
        world.on_event = self._event
        world.on_effect = self._effect
        world.on_decided = self._decided

    def record(
        self, describe: Describe, *subject: Any, controller_epoch: int | None = None, cause: Happening | None = None
    ) -> Happening | None:
        assert self._world.context is not None
        broker = self._world.context.broker_id
        for facts in describe(*subject):
            self._seq += 1
            entry = Entry(self._seq, broker, self._seq, controller_epoch=controller_epoch, **facts)
            read = maybe_entry(entry.as_line())
            assert read == entry
            self.picture.apply(read)
        return None

    def _event(self, event: Event) -> None:
        if isinstance(event, ControllerElected):
            self._tenure = TenureRecord(self, self._world.controller_epoch)
            self._tenure.tenure("Elected", "")
        self._tenure.event(event)

    def _effect(self, effect: Effect, brought: Any) -> None:
        self._tenure.effect(effect, brought)

    def _decided(self, event: Event) -> None:
        if isinstance(event, ControllerElected):
            self._tenure.tenure("TookOver", "")
