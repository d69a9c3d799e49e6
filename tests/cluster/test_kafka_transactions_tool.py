"""`odradek kafka-transactions` beside Kafka's own tool, on the same cluster: they must print the same."""

import re

import pytest
from confluent_kafka import Producer

from .conftest import TopicMaker, unused_name
from .test_kafka_command_lines import Side, sides
from .test_transactions import PATIENCE_S, producer, write

TOOL = "kafka-transactions"
__all__ = ["sides"]


@pytest.fixture
def open_at(bootstrap: str, new_topic: TopicMaker) -> tuple[str, str, Producer]:
    """A topic, and the transactional id of a producer with a transaction that is open there since offset 0."""
    topic, name = new_topic(), unused_name()
    made = producer(bootstrap, name)
    made.begin_transaction()
    write(made, topic, "a", "b")
    return topic, name, made


def shown(side: Side, *arguments: object) -> tuple[int, list[str]]:
    """The exit code and the lines, without durations, which pass between one question and the next."""
    status, text = side(TOOL, *arguments)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("WARN", "ERROR", "\tat"))]
    return status, [re.sub(r"(\d{13} *)\t\d+ *\t", r"\1\t-\t", line) for line in lines]


def test_what_is_shown(sides: tuple[Side, Side], open_at: tuple[str, str, Producer]) -> None:
    topic, name, made = open_at
    theirs, ours = sides
    questions: list[tuple[object, ...]] = [
        ("describe", "--transactional-id", name),
        ("describe-producers", "--topic", topic, "--partition", 0),
        ("describe-producers", "--topic", topic, "--partition", 0, "--broker-id", 0),
        ("find-hanging", "--topic", topic),
        ("find-hanging", "--broker-id", 0, "--max-transaction-timeout", 60),
        ("describe", "--transactional-id", "nobody"),
        ("find-hanging",),
        ("find-hanging", "--partition", 0, "--broker-id", 0),
        ("abort", "--topic", topic, "--partition", 0),
        ("abort", "--topic", topic, "--partition", 0, "--producer-id", 5),
        ("abort", "--topic", topic, "--partition", 0, "--producer-id", 5, "--producer-epoch", 0),
        ("abort", "--topic", topic, "--partition", 0, "--start-offset", 77),
    ]
    for question in questions:
        assert shown(ours, *question) == shown(theirs, *question), question
    listed = [next(line for line in shown(side, "list")[1] if line.startswith(name)) for side in sides]
    assert listed[0].split() == listed[1].split() == [name, "0", listed[0].split()[2], "Ongoing"]
    made.commit_transaction(PATIENCE_S)
    assert "CompleteCommit" in shown(ours, "describe", "--transactional-id", name)[1][1]


@pytest.mark.parametrize("which", [0, 1], ids=["theirs", "ours"])
def test_an_open_transaction_is_aborted(
    sides: tuple[Side, Side], open_at: tuple[str, str, Producer], which: int
) -> None:
    topic, _, _ = open_at
    where = ("--topic", topic, "--partition", 0)
    assert shown(sides[which], "abort", *where, "--start-offset", 0) == (0, [])
    assert shown(sides[1], "describe-producers", *where)[1][1].rstrip().endswith("None")
