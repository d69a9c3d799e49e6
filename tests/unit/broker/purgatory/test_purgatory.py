"""Operations wait, are asked, and are completed exactly once."""

import itertools
import random
import sys
import threading
from collections.abc import Iterator

import pytest

from odradek.base.clock import ManualClock
from odradek.broker.purgatory.purgatory import DelayedOperation, Purgatory
from odradek.broker.purgatory.reaper import ExpirationReaper
from waiting import PATIENCE_S


class Wish(DelayedOperation):
    def __init__(self, delay_ms: int = 1000, granted: bool = False) -> None:
        super().__init__(delay_ms)
        self.granted = granted
        self.asked = 0
        self.story: list[str] = []

    def try_complete(self) -> bool:
        self.asked += 1
        return self.granted and self.force_complete()

    def on_complete(self) -> None:
        self.story.append("complete")

    def on_expiration(self) -> None:
        self.story.append("expired")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(10_000)


@pytest.fixture
def reaper(clock) -> ExpirationReaper:
    return ExpirationReaper(clock)


@pytest.fixture
def purgatory(reaper) -> Purgatory[str]:
    return Purgatory("test", reaper)


def test_what_can_be_done_at_once_never_waits(purgatory, reaper):
    prefer_directory = Wish(granted=True)
    assert purgatory.try_complete_else_watch(prefer_directory, ["a"])
    assert prefer_directory.story == ["complete"]
    assert (len(purgatory), purgatory.watched_keys, len(reaper)) == (0, 0, 0)


def test_an_event_on_any_key_completes_and_nothing_is_left_on_the_others(purgatory, reaper):
    prefer_directory, other = Wish(), Wish()
    assert not purgatory.try_complete_else_watch(prefer_directory, ["a", "b", "c", "a"])
    assert not purgatory.try_complete_else_watch(other, ["c"])
    assert purgatory.check_and_complete("b") == 0
    prefer_directory.granted = True
    assert purgatory.check_and_complete("z") == 0
    assert purgatory.check_and_complete("b") == 1
    assert prefer_directory.story == ["complete"]
    assert purgatory.check_and_complete("a") == 0
    assert (len(purgatory), purgatory.watched_keys, len(reaper)) == (1, 1, 1)


def test_the_time_completes_what_no_event_did(purgatory, reaper, clock):
    prefer_directory = Wish(delay_ms=500)
    purgatory.try_complete_else_watch(prefer_directory, ["a"])
    clock.advance(499)
    assert reaper.expire_due() == 0
    clock.advance(1)
    assert reaper.expire_due() == 1
    assert prefer_directory.story == ["complete", "expired"]
    assert (len(purgatory), purgatory.watched_keys) == (0, 0)


def test_no_time_at_all_expires_at_once(purgatory):
    prefer_directory = Wish(delay_ms=0)
    assert purgatory.try_complete_else_watch(prefer_directory, ["a"])
    assert prefer_directory.story == ["complete", "expired"]
    assert (len(purgatory), purgatory.watched_keys) == (0, 0)


def test_an_event_between_the_first_question_and_the_watching_is_not_missed(purgatory):
    class Late(Wish):
        def try_complete(self) -> bool:
            self.granted = self.asked == 1
            return super().try_complete()

    late = Late()
    assert purgatory.try_complete_else_watch(late, ["a"])
    assert (late.asked, late.story) == (2, ["complete"])
    assert (len(purgatory), purgatory.watched_keys) == (0, 0)


def test_a_keyless_operation_waits_for_its_time(purgatory, reaper, clock):
    prefer_directory = Wish(delay_ms=10)
    assert not purgatory.try_complete_else_watch(prefer_directory, [])
    clock.advance(10)
    reaper.expire_due()
    assert (prefer_directory.story, len(purgatory)) == (["complete", "expired"], 0)


def test_a_failing_operation_keeps_nobody_else_from_being_asked(purgatory, reaper, clock):
    class Failing(Wish):
        def on_complete(self) -> None:
            raise RuntimeError("can't")

    failing, fine = Failing(), Wish()
    for prefer_directory in (failing, fine):
        purgatory.try_complete_else_watch(prefer_directory, ["a"])
        prefer_directory.granted = True
    assert purgatory.check_and_complete("a") == 1
    assert fine.story == ["complete"]
    late, later = Failing(), Wish()
    for prefer_directory in (late, later):
        purgatory.try_complete_else_watch(prefer_directory, ["a"])
    clock.advance(1000)
    assert reaper.expire_due() == 2
    assert later.story == ["complete", "expired"]


def test_no_lock_is_held_while_an_operation_completes(purgatory):
    class Nested(Wish):
        def on_complete(self) -> None:
            super().on_complete()
            thread = threading.Thread(target=lambda: purgatory.try_complete_else_watch(Wish(), ["a"]))
            thread.start()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
            purgatory.check_and_complete("a")

    nested = Nested()
    purgatory.try_complete_else_watch(nested, ["a"])
    nested.granted = True
    assert purgatory.check_and_complete("a") == 1
    assert len(purgatory) == 1


def test_completion_happens_once_however_many_race_for_it():
    """Events, the clock and the one who adds, all at the same time, thousands of times."""
    reaper = ExpirationReaper()
    reaper.start()
    purgatory: Purgatory[int] = Purgatory("race", reaper)
    wishes: list[Wish] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            for key in range(4):
                purgatory.check_and_complete(key)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    askers = [threading.Thread(target=ask) for _ in range(3)]
    try:
        for asker in askers:
            asker.start()
        chance = random.Random(3)
        for _ in range(4000):
            prefer_directory = Wish(delay_ms=chance.choice([0, 1, 2, 3]))
            wishes.append(prefer_directory)
            purgatory.try_complete_else_watch(prefer_directory, {chance.randrange(4), chance.randrange(4)})
            prefer_directory.granted = chance.random() < 0.7
            if chance.random() < 0.2:
                prefer_directory.force_complete()
        deadline = threading.Event()
        while any(not prefer_directory.completed for prefer_directory in wishes) and not deadline.wait(0.01):
            pass
    finally:
        done.set()
        for asker in askers:
            asker.join()
        sys.setswitchinterval(interval)
        reaper.stop()
    assert all(prefer_directory.story in (["complete"], ["complete", "expired"]) for prefer_directory in wishes)
    assert {len(prefer_directory.story) for prefer_directory in wishes} == {1, 2}
    assert (len(purgatory), purgatory.watched_keys, len(reaper)) == (0, 0, 0)


def test_without_an_event_since_the_first_question_an_operation_is_not_asked_again(purgatory):
    quiet, late, before = Wish(), Wish(granted=True), purgatory.last_event
    assert not purgatory.watch(quiet, ["a"], before)
    assert quiet.asked == 0
    assert purgatory.note_event(), "an operation waits"
    assert purgatory.watch(late, ["a"], before)
    assert (late.asked, late.story, len(purgatory)) == (1, ["complete"], 1)


def test_an_operation_that_begins_to_wait_while_an_event_is_counted_is_asked(purgatory):
    late, before = Wish(), purgatory.last_event

    def numbers() -> Iterator[int]:
        assert not purgatory.watch(late, ["a"], before)  # on another thread, which sees no event yet
        yield from itertools.count(1)

    purgatory._event_numbers = numbers()
    assert purgatory.note_event()
    late.granted = True
    assert purgatory.check_and_complete("a") == 1


def test_no_event_is_missed_where_the_second_question_is_left_out():
    """Several writers and readers, thousands of times; no clock helps an operation that missed its event."""
    reaper = ExpirationReaper(ManualClock(0))
    purgatory: Purgatory[str] = Purgatory("race", reaper)
    written = [0, 0]

    class Reaches(DelayedOperation):
        def __init__(self, writer: int, wanted: int) -> None:
            super().__init__(1000)
            self.writer, self.wanted = writer, wanted
            self.done = threading.Event()

        def try_complete(self) -> bool:
            return written[self.writer] >= self.wanted and self.force_complete()

        def on_complete(self) -> None:
            self.done.set()

    def write(writer: int, rounds: int) -> None:
        for _ in range(rounds):
            written[writer] += 1
            if purgatory.note_event():
                purgatory.check_and_complete("a")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for number in range(1, 301):
            writers = [threading.Thread(target=write, args=(writer, 1)) for writer in (0, 1)]
            for thread in writers:
                thread.start()
            waiting = []
            for writer in (0, 1):
                before = purgatory.last_event
                if written[writer] < number:
                    waiting.append(Reaches(writer, number))
                    purgatory.watch(waiting[-1], ["a"], before)
            for thread in writers:
                thread.join()
            assert all(each.done.is_set() for each in waiting), f"round {number}"
    finally:
        sys.setswitchinterval(interval)
    assert (len(purgatory), purgatory.watched_keys) == (0, 0)
