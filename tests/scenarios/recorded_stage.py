"""Lines that the flight recorder would write of a stage, read back one by one into a picture."""

from typing import Any

from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import ControllerElected, Event
from odradek.broker.controller.recording import ControllerTermRecord
from odradek.broker.recorder.core.entry import Entry, maybe_entry
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.recorder import Describe, RecordedEvent
from odradek.sim.world import Listeners

from .stage import Stage


class RecordedStage:
    def __init__(self) -> None:
        self.picture = Picture()
        self._seq = 0
        self._record = ControllerTermRecord(self, 0)
        self.stage = Stage(Listeners(self._event, self._effect, self._decided))

    def record(
        self, describe: Describe, *subject: Any, controller_epoch: int | None = None, cause: RecordedEvent | None = None
    ) -> RecordedEvent | None:
        assert self.stage.world.context is not None
        broker = self.stage.world.context.broker_id
        for facts in describe(*subject):
            self._seq += 1
            entry = Entry(self._seq, broker, self._seq, controller_epoch=controller_epoch, **facts)
            read = maybe_entry(entry.as_line())
            assert read == entry
            self.picture.apply(read)
        return None

    def _event(self, event: Event) -> None:
        if isinstance(event, ControllerElected):
            self._record = ControllerTermRecord(self, self.stage.world.controller_epoch)
            self._record.term_changed("Elected", "")
        self._record.event(event)

    def _effect(self, effect: Effect, brought: Any) -> None:
        self._record.effect(effect, brought)

    def _decided(self, event: Event) -> None:
        if isinstance(event, ControllerElected):
            self._record.term_changed("TookOver", "")
