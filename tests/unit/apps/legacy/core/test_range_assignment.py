"""The assignment that every member computes for itself: what Kafka 1.1's RangeAssignor computes."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.apps.legacy.core.range_assignment import assign, member_of
from odradek.apps.legacy.core.znodes import Registration
from odradek.model.topology import TopicPartition


def by_stream(members: dict[str, dict[str, int]], partitions: dict[str, int]) -> dict[str, list[str]]:
    assigned = assign(
        {member: Registration(topics) for member, topics in members.items()},
        {topic: range(count) for topic, count in partitions.items()},
    )
    shown: dict[str, list[str]] = {}
    for tp, stream in sorted(assigned.items()):
        shown.setdefault(stream, []).append(str(tp))
    return shown


def test_the_example_in_kafkas_documentation() -> None:
    assert by_stream({"c1": {"t": 2}, "c2": {"t": 2}}, {"t": 5}) == {
        "c1-0": ["t-0", "t-1"],
        "c1-1": ["t-2"],
        "c2-0": ["t-3"],
        "c2-1": ["t-4"],
    }


def test_streams_are_ordered_as_text() -> None:
    """A member's eleventh stream comes before its third: Kafka compares the names."""
    assigned = by_stream({"c": {"t": 11}}, {"t": 11})
    assert assigned["c-10"] == ["t-2"]
    assert assigned["c-2"] == ["t-3"]


def test_each_topic_is_divided_among_those_that_want_it() -> None:
    assert by_stream({"a": {"t": 1, "u": 1}, "b": {"u": 1}, "idle": {"gone": 1}}, {"t": 2, "u": 2}) == {
        "a-0": ["t-0", "t-1", "u-0"],
        "b-0": ["u-1"],
    }


@given(st.dictionaries(st.text("abc-", min_size=1, max_size=4), st.integers(1, 3), min_size=1), st.integers(0, 40))
def test_every_partition_goes_to_one_stream_and_shares_are_even(members: dict[str, int], partitions: int) -> None:
    registered = {member: Registration({"t": count}) for member, count in members.items()}
    assigned = assign(registered, {"t": range(partitions)})
    assert sorted(assigned) == [TopicPartition("t", number) for number in range(partitions)]
    assert {member_of(stream) for stream in assigned.values()} <= members.keys()
    shares = [list(assigned.values()).count(stream) for stream in set(assigned.values())]
    assert not shares or max(shares) - min(shares) <= 1
