from odradek.base.clock import ManualClock
from odradek.broker.controller.event_queue import EventQueue


def taken(queue: EventQueue[str], count: int) -> list[str]:
    return [queue.take() for _ in range(count)]


def test_first_in_first_out_but_for_what_cannot_wait() -> None:
    queue: EventQueue[str] = EventQueue(ManualClock())
    queue.put("a")
    queue.put("b")
    queue.put_first("stop")
    assert taken(queue, 3) == ["stop", "a", "b"]


def test_what_waits_already_is_not_put_once_more() -> None:
    queue: EventQueue[str] = EventQueue(ManualClock())
    for _ in range(3):
        queue.put_once("a")
    queue.put("b")
    assert taken(queue, 2) == ["a", "b"]
    queue.put_once("a")
    assert taken(queue, 1) == ["a"]


def test_what_is_due_later_comes_in_its_time() -> None:
    clock = ManualClock()
    queue: EventQueue[str] = EventQueue(clock)
    queue.put_later("in 20", 20)
    queue.put_later("in 10", 10)
    queue.put_later("in 10 too", 10)
    queue.put("now")
    assert taken(queue, 1) == ["now"]
    clock.advance(20)
    assert taken(queue, 3) == ["in 10", "in 10 too", "in 20"]


def test_what_is_unwanted_is_dropped_also_of_the_future() -> None:
    clock = ManualClock()
    queue: EventQueue[str] = EventQueue(clock)
    queue.put_once("old")
    queue.put_later("old later", 10)
    queue.put("new")
    queue.put_later("new later", 10)
    assert queue.drop(lambda item: item.startswith("old")) == ["old", "old later"]
    queue.put_once("old")
    clock.advance(10)
    assert taken(queue, 3) == ["new", "old", "new later"]
