"""New offsets of a group, by each way to name them."""

from datetime import timedelta

import pytest

from odradek.base.errors import KafkaError
from odradek.client.offset_reset import (
    Goal,
    Situation,
    by_duration,
    parse_duration,
    shift_by,
    to_current,
    to_earliest,
    to_latest,
    to_offset,
    to_time,
)
from odradek.model.topology import TopicPartition

BEEN, NEVER = TopicPartition("t", 0), TopicPartition("t", 1)
SITUATION = Situation(
    earliest={BEEN: 10, NEVER: 0},
    latest={BEEN: 100, NEVER: 50},
    committed={BEEN: 40},
    at_time=lambda ms: {BEEN: ms // 1000, NEVER: None},
    now_ms=90_000,
)


@pytest.mark.parametrize(
    ("goal", "been", "never"),
    [
        (to_earliest, 10, 0),
        (to_latest, 100, 50),
        (to_current, 40, 50),
        (to_offset(7), 7, 7),
        (to_time(33_000), 33, 50),  # nothing is so young in the second: its end
        (by_duration(timedelta(seconds=30)), 60, 50),
        (by_duration(timedelta(days=900_000_000)), 0, 50),
    ],
)
def test_goals(goal: Goal, been: int, never: int) -> None:
    assert (goal(BEEN, SITUATION), goal(NEVER, SITUATION)) == (been, never)


def test_only_who_stands_somewhere_can_shift() -> None:
    assert shift_by(-15)(BEEN, SITUATION) == 25
    with pytest.raises(KafkaError, match="no offset in t-1 to shift"):
        shift_by(1)(NEVER, SITUATION)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h", 3600),
        ("15 minutes", 900),
        ("PT1H30M", 5400),
        ("P7D", 604_800),
        ("P1DT1S", 86_401),
        ("PT0.5S", 0.5),
        ("-PT1S", -1),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "P", "PT", "1x", "P1DT", "PT1X", "P9999999999D"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
