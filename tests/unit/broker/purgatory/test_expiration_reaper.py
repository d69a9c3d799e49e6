"""The reaper's thread: on time, woken for an earlier timer, and asleep otherwise."""

import threading
import time

from odradek.broker.purgatory.reaper import ExpirationReaper, Timer


class Alarm(Timer):
    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.set_at = time.monotonic()
        self.rang = threading.Event()

    def expire(self) -> None:
        self.late_ms = (time.monotonic() - self.set_at) * 1000 - self.delay_ms
        self.rang.set()


def test_timers_ring_and_not_early_also_when_an_earlier_one_comes_last():
    reaper = ExpirationReaper()
    reaper.start()
    alarms = []
    for delay_ms in (300_000, 200_000, 150, 30):
        alarms.append(Alarm(delay_ms))
        reaper.add(alarms[-1])
        time.sleep(0.01)
    for alarm in reversed(alarms[2:]):
        assert alarm.rang.wait(100)
        assert alarm.late_ms >= -1
    assert len(reaper) == 2
    reaper.stop()
    assert not any(alarm.rang.is_set() for alarm in alarms[:2])


def test_cancelled_timers_neither_ring_nor_stay():
    reaper = ExpirationReaper()
    reaper.start()
    alarms = [Alarm(50) for _ in range(1000)]
    for alarm in alarms:
        reaper.add(alarm)
        reaper.cancel(alarm)
    assert len(reaper) == 0
    time.sleep(0.1)
    assert not any(alarm.rang.is_set() for alarm in alarms)
    reaper.stop()


def test_waiting_costs_no_processor_time():
    reaper = ExpirationReaper()
    reaper.start()
    for delay_ms in (60_000, 5_000_000):
        reaper.add(Alarm(delay_ms))
    own_time = time.pthread_getcpuclockid(reaper._thread.ident)
    before_s = time.clock_gettime(own_time)
    time.sleep(0.4)
    assert time.clock_gettime(own_time) - before_s < 0.01
    reaper.stop()
