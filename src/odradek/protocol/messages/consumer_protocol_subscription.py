"""consumer_protocol_subscription."""

from odradek.protocol.schema import Message, Struct, array, bytes_, int32, string


class TopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
