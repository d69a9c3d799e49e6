"""Producer ids: unique in the cluster, handed out from blocks that ZooKeeper reserves."""

import threading
from collections.abc import Iterator

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.zk.session import ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import CorruptZnode


class ProducerIds:
    def __init__(self, broker_id: int, store: ZkStore) -> None:
        self._broker_id = broker_id
        self._store = store
        self._lock = threading.Lock()
        self._block: Iterator[int] = iter(())

    def next(self) -> int:
        """Return the next id. Waits for ZooKeeper once per block of a thousand."""
        with self._lock:
            producer_id = next(self._block, None)
            if producer_id is None:
                self._block = iter(self.allocate_block(self._broker_id))
                producer_id = next(self._block)
            return producer_id

    def allocate_for(self, broker_id: int, broker_epoch: int) -> range:
        """Allocate ids for another broker, if that is its present registration: for AllocateProducerIds."""
        try:
            registered = self._store.brokers.load_brokers().get(broker_id)
        except ZkUnavailable as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        if registered is None:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if registered.epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        return self.allocate_block(broker_id)

    def allocate_block(self, broker_id: int) -> range:
        """Allocate ids that no other broker will hand out."""
        try:
            block = self._store.producer_ids.allocate(broker_id)
        except ZkUnavailable as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        except CorruptZnode as error:
            # an id that is only assumed to be free could be given to two producers
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return range(block.first, block.last + 1)
