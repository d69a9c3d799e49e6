from odradek.client.consumer_protocol import assign_ranges, encode_assignment, read_assignment
from odradek.model.topology import TopicPartition


def test_ranges_go_to_members_in_order_of_their_ids() -> None:
    shares = assign_ranges({"b": ["t", "u"], "a": ["t"]}, {"t": 5, "u": 2})
    assert shares["a"] == [TopicPartition("t", n) for n in (0, 1, 2)]
    assert shares["b"] == [
        TopicPartition("t", 3),
        TopicPartition("t", 4),
        TopicPartition("u", 0),
        TopicPartition("u", 1),
    ]


def test_more_members_than_partitions() -> None:
    assert assign_ranges({"a": ["t"], "b": ["t"]}, {"t": 1}) == {"a": [TopicPartition("t", 0)], "b": []}


def test_an_assignment_is_read_as_it_was_written() -> None:
    partitions = [TopicPartition("t", 2), TopicPartition("t", 0), TopicPartition("u", 1)]
    assert read_assignment(encode_assignment(partitions)) == partitions
    assert read_assignment(b"") == []
