"""Admin clients that nobody here wrote: told the same story, Odradek and Apache Kafka give them the same answers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from apache_kafka import KafkaPeer
from obtaining import skipped_if_unobtainable

from .admin_stories import (
    Story,
    aiokafka_story,
    confluent_story,
    franz_story,
    kafka_python_story,
    kafkajs_story,
)
from .conftest import unused_name


@pytest.mark.parametrize(
    "tell",
    [
        kafka_python_story,
        confluent_story,
        aiokafka_story,
        kafkajs_story,
        pytest.param(franz_story, marks=pytest.mark.soak),  # compiling it takes half a minute
    ],
)
def test_every_call_has_the_same_answer(
    bootstrap: str, kafka_peer: KafkaPeer, tell: Callable[[str, str], Story]
) -> None:
    name = unused_name()
    with skipped_if_unobtainable(), ThreadPoolExecutor(2) as both:  # clients wait a lot before they ask again
        ours, theirs = both.map(tell, (bootstrap, kafka_peer.bootstrap_servers), (name, name))
    assert [call for call, _ in ours] == [call for call, _ in theirs]
    for (call, our_answer), (_, their_answer) in zip(ours, theirs, strict=True):
        assert (call, our_answer) == (call, their_answer)
