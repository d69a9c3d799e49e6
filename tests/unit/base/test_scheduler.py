import threading
from collections.abc import Iterator

import pytest

from odradek.base.scheduler import Scheduler


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start()
    yield scheduler
    scheduler.stop()


def test_tasks_run_in_the_order_of_their_time(scheduler: Scheduler) -> None:
    ran: list[str] = []
    done = threading.Event()
    scheduler.once("t", lambda: (ran.append("late"), done.set()), delay_ms=40)
    scheduler.once("t", lambda: ran.append("soon"), delay_ms=10)
    scheduler.once("t", lambda: ran.append("now"))
    assert done.wait(5)
    assert ran == ["now", "soon", "late"]


def test_a_task_that_fails_runs_again_and_harms_no_other(scheduler: Scheduler) -> None:
    times, twice = [0], threading.Event()

    def fail() -> None:
        times[0] += 1
        if times[0] == 2:
            twice.set()
        raise RuntimeError("as planned")

    scheduler.every("fails", 5, fail)
    assert twice.wait(5)


def test_after_stop_nothing_runs() -> None:
    scheduler, ran = Scheduler(), threading.Event()
    scheduler.start()
    scheduler.once("t", ran.set, delay_ms=50)
    scheduler.stop()
    assert not ran.wait(0.1)
