"""Blocks of producer ids that brokers allocate in /latest_producer_id_block."""

from kazoo.exceptions import BadVersionError

from odradek.broker.zk.stores.access import ZnodeAccess, conditional_set
from odradek.broker.zk.znodes import ProducerIdBlock, ProducerIds

PRODUCER_ID_BLOCK_SIZE = 1000


class ProducerIdNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def allocate(self, broker_id: int) -> ProducerIds:
        """Reserve the next block of ids, which no other broker gets."""
        while True:
            content, stat = self._access.call(lambda zk: zk.get_async(ProducerIdBlock.path))
            first = ProducerIdBlock.decode(content).last + 1 if content else 0
            block = ProducerIds(broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)
            try:
                self._access.call(conditional_set(ProducerIdBlock.path, ProducerIdBlock.encode(block), stat.version))
            except BadVersionError:
                continue
            return block
