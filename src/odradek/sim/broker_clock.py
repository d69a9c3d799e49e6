"""The clock of one machine: the time of the story, and a wall clock that may be wrong."""

from odradek.base.clock import Clock


class BrokerClock:
    def __init__(self, common: Clock) -> None:
        self._common = common
        self.wrong_by_ms = 0

    def now_ms(self) -> int:
        return self._common.now_ms() + self.wrong_by_ms

    def monotonic_ms(self) -> int:
        return self._common.monotonic_ms()
