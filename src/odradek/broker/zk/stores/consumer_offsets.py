"""Offsets that groups commit in /consumers/GROUP/offsets, where consumers before Kafka 0.8.2 keep them."""

from collections.abc import Collection, Mapping

from kazoo.exceptions import NoNodeError

from odradek.broker.zk.session import Request
from odradek.broker.zk.stores.access import ZnodeAccess, raise_unless, readable
from odradek.broker.zk.znodes import ConsumerOffset
from odradek.model.topology import TopicPartition


class ConsumerOffsetNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets; a partition without a readable one is left out."""
        nodes = self._access.read_all([ConsumerOffset.path(group, tp) for tp in partitions])
        found = {
            tp: readable(ConsumerOffset.decode, group, tp, node[0])
            for tp, node in zip(partitions, nodes, strict=True)
            if node is not None
        }
        return {tp: offset for tp, offset in found.items() if offset is not None}

    def save(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets; the last writer wins, as there is no coordinator that knows the members."""
        nodes = {ConsumerOffset.path(group, tp): ConsumerOffset.encode(offset) for tp, offset in offsets.items()}
        outcomes = self._access.pipeline([_setting(path, content) for path, content in nodes.items()])
        raise_unless(NoNodeError, outcomes)
        for (path, content), outcome in zip(nodes.items(), outcomes, strict=True):
            if isinstance(outcome, NoNodeError):
                self._access.put(path, content)


def _setting(path: str, content: bytes) -> Request:
    return lambda zk: zk.set_async(path, content)
