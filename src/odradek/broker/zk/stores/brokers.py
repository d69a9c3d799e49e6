"""Registrations of brokers, and the blocks of producer ids that brokers allocate."""

from kazoo.exceptions import BadVersionError

from odradek.broker.zk.stores.access import ZnodeAccess, conditional_set, readable
from odradek.broker.zk.znodes import BrokerIds, BrokerRegistration, ProducerIdBlock, ProducerIds
from odradek.model.topology import Broker

PRODUCER_ID_BLOCK_SIZE = 1000


class BrokerNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_brokers(self) -> dict[int, Broker]:
        """The live ones. One whose registration can't be understood is reported and left out."""
        ids = [int(name) for name in self._access.children(BrokerIds.path) if name.isdecimal()]
        found = self._access.read_all([BrokerRegistration.path(broker_id) for broker_id in ids])
        nodes = ((broker_id, node) for broker_id, node in zip(ids, found, strict=True) if node is not None)
        brokers = (readable(BrokerRegistration.decode, broker_id, node[0], node[1].czxid) for broker_id, node in nodes)
        return {broker.id: broker for broker in brokers if broker is not None}

    def allocate_producer_ids(self, broker_id: int) -> ProducerIds:
        """The next block of ids, which no other broker will get."""
        while True:
            content, stat = self._access.call(lambda zk: zk.get_async(ProducerIdBlock.path))
            first = ProducerIdBlock.decode(content).last + 1 if content else 0
            block = ProducerIds(broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)
            try:
                self._access.call(conditional_set(ProducerIdBlock.path, ProducerIdBlock.encode(block), stat.version))
            except BadVersionError:
                continue
            return block
