"""Disks of the simulation that take long for a write."""

from odradek.base.clock import Clock


class SlowDisks:
    """Durations of the writes of brokers. While one takes its time, its broker takes no other."""

    def __init__(self, clock: Clock) -> None:
        self.write_ms: dict[int, int] = {}
        """Duration of a write, by broker."""
        self._clock = clock
        self._busy_until_ms: dict[int, int] = {}

    def begin_write(self, broker_id: int) -> None:
        if (write_ms := self.write_ms.get(broker_id)) is not None:
            self._busy_until_ms[broker_id] = self._clock.monotonic_ms() + write_ms

    def is_busy(self, broker_id: int | None) -> bool:
        return broker_id is not None and self._busy_until_ms.get(broker_id, 0) > self._clock.monotonic_ms()

    def forget(self, broker_id: int) -> None:
        """The disk is fast again, or its broker has ended."""
        self.write_ms.pop(broker_id, None)
        self._busy_until_ms.pop(broker_id, None)

    def heal(self) -> None:
        self.write_ms.clear()
        self._busy_until_ms.clear()
