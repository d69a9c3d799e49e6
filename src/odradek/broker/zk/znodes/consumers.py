"""/consumers: what a broker keeps for the oldest consumers, which have no coordinator."""

from odradek.broker.zk.znodes.reading import CorruptZnode
from odradek.model.topology import TopicPartition

_NOT_IN_PATHS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xF900), *range(0xFFF0, 0x10000))))
"""Characters that ZooKeeper refuses in paths."""


class ConsumerOffset:
    """Offset of the next record to read, as decimal text."""

    @staticmethod
    def path(group: str, tp: TopicPartition) -> str:
        return f"/consumers/{group}/offsets/{tp.topic}/{tp.partition}"

    @staticmethod
    def encode(offset: int) -> bytes:
        return str(offset).encode()

    @classmethod
    def decode(cls, group: str, tp: TopicPartition, content: bytes | None) -> int:
        try:
            return int((content or b"").decode())
        except ValueError as error:
            raise CorruptZnode(cls.path(group, tp), content, "it is not a number") from error


def can_be_node(group: str) -> bool:
    """False for a group id that can't be the name of one node."""
    return group not in ("", ".", "..") and "/" not in group and _NOT_IN_PATHS.isdisjoint(group)
