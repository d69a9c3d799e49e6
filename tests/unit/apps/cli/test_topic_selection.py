"""Selection of topics by typed names."""

from uuid import UUID

import pytest

from odradek.apps.cli.topic_selection import parse_numbers, parse_replica_assignment, partitions_of, select_topics
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import PartitionState, TopicState
from odradek.model.topology import TopicPartition

TOPICS = {name: TopicState(name, UUID(int=0), name.startswith("__"), ()) for name in ("a.b", "axb", "__offsets", "c")}


def names(wanted: str | None, *, exclude_internal: bool = False) -> list[str]:
    return [topic.name for topic in select_topics(TOPICS, wanted, exclude_internal=exclude_internal)]


def test_all_of_them_in_order() -> None:
    assert names(None) == ["__offsets", "a.b", "axb", "c"]
    assert names(None, exclude_internal=True) == ["a.b", "axb", "c"]


def test_an_exact_name_is_not_taken_for_an_expression() -> None:
    assert names("a.b") == ["a.b"]


def test_expressions_and_lists() -> None:
    assert names("a.*") == ["a.b", "axb"]
    assert names("c, axb") == ["c", "axb"]


def test_an_expression_must_match_as_a_whole() -> None:
    with pytest.raises(KafkaError, match="topic 'x' does not exist; see which do with: odradek topics list"):
        names("x")


def test_what_is_no_expression() -> None:
    with pytest.raises(WrongUsage, match="neither a topic nor a regular expression"):
        names("[")


def test_numbers() -> None:
    assert parse_numbers("0,2", "--partitions") == {0, 2}
    assert parse_numbers("", "--partitions") == set()
    with pytest.raises(WrongUsage, match="--partitions: 'a' is not a list of numbers"):
        parse_numbers("a", "--partitions")


def test_replica_assignments() -> None:
    assert parse_replica_assignment("0:1,1:2") == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("text", "complaint"), [("0:0", "names a broker twice"), ("0:1,2", "another number"), ("x", "not of the form")]
)
def test_impossible_assignments(text: str, complaint: str) -> None:
    with pytest.raises(WrongUsage, match=complaint):
        parse_replica_assignment(text)


def test_topics_with_and_without_partitions() -> None:
    there = tuple(PartitionState(n, 0, 0, (0,), (0,), ()) for n in range(3))
    topics = {"t": TopicState("t", UUID(int=0), False, there)}
    assert partitions_of(topics, ["t:1,0", "t:1"]) == [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert len(partitions_of(topics, ["t"])) == 3
    with pytest.raises(KafkaError, match="has no partition 9"):
        partitions_of(topics, ["t:9"])
    with pytest.raises(KafkaError, match="'u' does not exist"):
        partitions_of(topics, ["u"])
    with pytest.raises(WrongUsage, match="is not TOPIC or TOPIC:0,1,2"):
        partitions_of(topics, ["t:x"])
