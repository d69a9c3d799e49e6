"""Registrations of brokers under /brokers/ids."""

from odradek.broker.zk.stores.access import ZnodeAccess, readable
from odradek.broker.zk.znodes import BrokerIds, BrokerRegistration
from odradek.model.topology import Broker


class BrokerNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_brokers(self) -> dict[int, Broker]:
        """Load the live brokers. One with a corrupt registration is reported and left out."""
        ids = [int(name) for name in self._access.children(BrokerIds.path) if name.isdecimal()]
        found = self._access.read_all([BrokerRegistration.path(broker_id) for broker_id in ids])
        nodes = ((broker_id, node) for broker_id, node in zip(ids, found, strict=True) if node is not None)
        brokers = (readable(BrokerRegistration.decode, broker_id, node[0], node[1].czxid) for broker_id, node in nodes)
        return {broker.id: broker for broker in brokers if broker is not None}
