"""What the flight recorder would write of a world, read back line by line into a picture."""

from typing import Any

from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import ControllerElected, Event
from odradek.broker.controller.recording import ControllerTermRecord
from odradek.broker.recorder.core.entry import Entry, maybe_entry
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.recorder import Describe, RecordedEvent

from .world import World


class RecordedWorld:
    def __init__(self, world: World) -> None:
        self.picture = Picture()
        self._world = world
        self._seq = 0
        self._record = ControllerTermRecord(self, 0)
        world.on_event = self._event
        world.on_effect = self._effect
        world.on_decided = self._decided

    def record(
        self, describe: Describe, *subject: Any, controller_epoch: int | None = None, cause: RecordedEvent | None = None
    ) -> RecordedEvent | None:
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
            self._record = ControllerTermRecord(self, self._world.controller_epoch)
            self._record.term_changed("Elected", "")
        self._record.event(event)

    def _effect(self, effect: Effect, brought: Any) -> None:
        self._record.effect(effect, brought)

    def _decided(self, event: Event) -> None:
        if isinstance(event, ControllerElected):
            self._record.term_changed("TookOver", "")
