"""Subscription of a consumer, carried by JoinGroup: its topics, and data for its assignor. Preceded by its version as
an int16.

v1 partitions it still owns, v2 generation, v3 rack.
"""

from odradek.protocol.schema import Message, Struct, array, bytes_, int32, string


class TopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)  # the assignor's own
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)  # for cooperative rebalancing
    generation_id: int = int32("2+", default=-1, ignorable=True)  # in which the partitions were owned
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
