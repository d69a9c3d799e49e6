"""Stories that fail, made short."""

import pytest

from odradek.sim.shrinking import kind_of, numbers_as_text, numbers_of, shrink


def test_only_the_steps_that_are_needed_remain() -> None:
    needed = {3, 40, 41, 97}
    assert shrink(range(100), lambda kept: needed <= set(kept)) == sorted(needed)


def test_attempts_are_bounded() -> None:
    tried: list[int] = []

    def fails(kept: object) -> bool:
        tried.append(1)
        return False

    assert shrink(range(1_000), fails, attempts_max=50) == list(range(1_000))
    assert len(tried) == 50


def test_a_story_without_any_step_may_fail() -> None:
    assert shrink(range(10), lambda kept: True) == []


def test_a_failure_stays_the_same_kind_with_other_numbers() -> None:
    lost = "Violation: the batch acknowledged at {} is lost"
    assert kind_of(lost.format(3)) == kind_of(lost.format(41))
    assert kind_of(lost.format(3)) != kind_of("Violation: a batch is in the log twice")


@pytest.mark.parametrize("numbers", [[0], [0, 1, 2, 7], [5, 6, 9, 11, 12, 13]])
def test_numbers_of_steps_can_be_typed(numbers: list[int]) -> None:
    assert numbers_of(numbers_as_text(numbers)) == numbers
    assert numbers_as_text([0, 1, 2, 7]) == "0-2,7"
