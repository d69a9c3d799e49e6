import threading
from collections.abc import Iterator

import pytest

from odradek.base.clock import ManualClock
from odradek.base.scheduler import Scheduler
from waiting import PATIENCE_S


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start()
    yield scheduler
    scheduler.stop()


def test_tasks_run_in_the_order_of_their_time() -> None:
    ran: list[str] = []
    done = threading.Event()
    clock = ManualClock()  # they are due as far apart as they say, however long it takes to ask for them
    scheduler = Scheduler(clock)
    scheduler.once("t", lambda: (ran.append("late"), done.set()), delay_ms=40)
    scheduler.once("t", lambda: ran.append("soon"), delay_ms=10)
    scheduler.once("t", lambda: ran.append("now"))
    clock.advance(40)
    scheduler.start()
    assert done.wait(PATIENCE_S)
    assert ran == ["now", "soon", "late"]
    scheduler.stop()


def test_a_task_that_fails_runs_again_and_harms_no_other(scheduler: Scheduler) -> None:
    times, twice = [0], threading.Event()

    def fail() -> None:
        times[0] += 1
        if times[0] == 2:
            twice.set()
        raise RuntimeError("as planned")

    scheduler.every("fails", 5, fail)
    assert twice.wait(PATIENCE_S)


def test_after_stop_nothing_runs() -> None:
    scheduler, ran = Scheduler(), threading.Event()
    scheduler.start()
    scheduler.once("t", ran.set, delay_ms=50)
    scheduler.stop()
    assert not ran.wait(0.1)
