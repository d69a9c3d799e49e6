"""Assignment of a member: whatever a client has put there, it is read or passed over."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer_protocol import read_assignment
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from odradek.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned


def test_an_assignment_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    body = ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic="orders", partitions=[2, 0])]).encode(3)
    expected = [TopicPartition("orders", 2), TopicPartition("orders", 0)]
    assert read_assignment(b"\0\3" + body) == read_assignment(b"\0\x63" + body + b"more") == expected


@given(st.binary(max_size=40))
def test_bytes_that_are_no_assignment_are_nothing(data: bytes) -> None:
    assert isinstance(read_assignment(data), list)
    assert read_assignment(b"\xff\xff" + data) == [], "there is no version below 0"
