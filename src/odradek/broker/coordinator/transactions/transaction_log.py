"""The topic __transaction_state as the transaction coordinator uses it, and the replay of one of its partitions."""

from collections.abc import Iterator, Mapping

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
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
        """The last value of each transactional id. Values before it are not decoded: a busy id has a hundred of them
        for each one that compaction leaves, and producers wait for the next coordinator."""
        last: dict[bytes, bytes | None] = {}
        for record in self._records(partition):
            last[record.key or b""] = record.value
        try:
            return _decoded(last)
        except KafkaError:
            return self._replay_each(partition)

    def _replay_each(self, partition: int) -> dict[str, Transaction]:
        """Replay record by record: one that can't be read changes nothing."""
        found: dict[str, Transaction] = {}
        for record in self._records(partition):
            try:
                _apply(found, record)
            except KafkaError as error:
                log.warning("record of transaction state can't be read", offset=record.offset, error=str(error))
        return found

    def _records(self, partition: int) -> Iterator[Record]:
        for buf, pos, header in self.read(partition):
            if not header.is_control:
                yield from read_records(buf, pos, header)


def _decoded(last: Mapping[bytes, bytes | None]) -> dict[str, Transaction]:
    """KafkaError: a record can't be read, or two keys have one id, of which the order decides."""
    found: dict[str, Transaction] = {}
    ids: set[str] = set()
    for key, value in last.items():
        transactional_id = decode_key(key)
        if transactional_id is None:
            continue
        if transactional_id in ids:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Two keys of transactional id {transactional_id}")
        ids.add(transactional_id)
        if value is not None:
            found[transactional_id] = decode_transaction(transactional_id, value)
    return found


def _apply(found: dict[str, Transaction], record: Record) -> None:
    transactional_id = decode_key(record.key or b"")
    if transactional_id is None:
        return
    if record.value is None:
        found.pop(transactional_id, None)
    else:
        found[transactional_id] = decode_transaction(transactional_id, record.value)
