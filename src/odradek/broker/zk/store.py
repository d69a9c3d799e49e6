"""Typed reads and writes of the cluster's znodes, by subject. Bulk work is pipelined; writes are conditional.

Only this module and `registration` read and write the state of the cluster in ZooKeeper. Writes that only the
controller may make take its `ControllerTerm`, and raise `ControllerMoved` if another controller was elected since.
"""

from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.stores.access import ControllerMoved, ZnodeAccess
from odradek.broker.zk.stores.acls import AclNodes
from odradek.broker.zk.stores.brokers import BrokerNodes
from odradek.broker.zk.stores.configs import ConfigNodes
from odradek.broker.zk.stores.consumer_offsets import ConsumerOffsetNodes
from odradek.broker.zk.stores.controller_election import ControllerElectionStore
from odradek.broker.zk.stores.partition_states import PartitionStateNodes
from odradek.broker.zk.stores.producer_ids import ProducerIdNodes
from odradek.broker.zk.stores.requests import RequestNodes
from odradek.broker.zk.stores.tokens import TokenNodes
from odradek.broker.zk.stores.topics import TopicNodes

__all__ = ["ControllerMoved", "ZkStore"]


class ZkStore:
    """Calls wait for ZooKeeper with `until_available`; else they raise `ZkUnavailable` after the connection timeout."""

    def __init__(self, session: ZkSession, *, until_available: bool = False) -> None:
        access = ZnodeAccess(session, until_available=until_available)
        self.brokers = BrokerNodes(access)
        self.producer_ids = ProducerIdNodes(access)
        self.topics = TopicNodes(access)
        self.partition_states = PartitionStateNodes(access)
        self.election = ControllerElectionStore(access, self.partition_states)
        self.configs = ConfigNodes(access)
        self.acls = AclNodes(access)
        self.consumer_offsets = ConsumerOffsetNodes(access)
        self.tokens = TokenNodes(access)
        self.requests = RequestNodes(access)
