"""The topic __transaction_state as the transaction coordinator uses it, and the replay of one of its partitions."""

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.state.state_log import StateLog, StateTopic
from odradek.broker.coordinator.transactions.core.transaction import Transaction
from odradek.broker.coordinator.transactions.core.transaction_records import decode_key, decode_transaction
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.protocol.compression import Codec
from odradek.protocol.records import Record, read_records

log = get_logger(__name__)

_ALL_REPLICAS = -1


class TransactionLog(StateLog):
    def __init__(self, config: BrokerConfig, replicas: PartitionTable, metadata: MetadataCache, clock: Clock) -> None:
        topic = StateTopic(
            TRANSACTIONS_TOPIC,
            partitions_to_be=config.transaction_state_log_num_partitions,
            acks=_ALL_REPLICAS,
            timeout_ms=config.request_timeout_ms,
            codec=Codec.NONE,
            load_bytes=config.transaction_state_log_load_buffer_size,
        )
        super().__init__(topic, replicas, metadata, clock)

    def replay(self, partition: int) -> dict[str, Transaction]:
        """The last value of each transactional id."""
        found: dict[str, Transaction] = {}
        for buf, pos, header in self.read(partition):
            if header.is_control:
                continue
            for record in read_records(buf, pos, header):
                try:
                    _apply(found, record)
                except KafkaError as error:
                    log.warning("record of transaction state can't be read", offset=record.offset, error=str(error))
        return found


def _apply(found: dict[str, Transaction], record: Record) -> None:
    transactional_id = decode_key(record.key or b"")
    if transactional_id is None:
        return
    if record.value is None:
        found.pop(transactional_id, None)
    else:
        found[transactional_id] = decode_transaction(transactional_id, record.value)
