"""Rates between two readings of a cluster."""

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.history_keeper import Sample, rates_between
from odradek.apps.console.screens.topic_create import as_changes
from odradek.client.config_admin import parse_changes
from odradek.model.topology import TopicPartition

A0, A1, B0, C0 = (TopicPartition(topic, number) for topic, number in (("a", 0), ("a", 1), ("b", 0), ("c", 0)))


def _sample(at_ms: int, ends: dict[TopicPartition, int]) -> Sample:
    return Sample(at_ms, frozenset(tp.topic for tp in ends), ends, {})


def test_records_per_second_of_topics_that_were_there_at_both_moments() -> None:
    before = _sample(0, {A0: 10, A1: 0, B0: 500})
    now = _sample(60_000, {A0: 40, A1: 30, B0: 20, C0: 7})
    assert rates_between(before, now) == {"a": 1.0, "b": 0.0}  # b was created anew, c was not there before


def test_a_clock_that_was_set_back_tells_no_rate() -> None:
    assert rates_between(_sample(60_000, {A0: 1}), _sample(0, {A0: 2})) == {}


def test_settings_of_a_clone_are_read_as_they_were_written() -> None:
    settings = {"cleanup.policy": "compact,delete", "retention.ms": "1000"}
    assert as_changes(settings) == "cleanup.policy=[compact,delete], retention.ms=1000"
    assert parse_changes(as_changes(settings)) == settings
