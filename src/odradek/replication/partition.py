"""One replica of a partition on this broker: its log, its role, and its high watermark.

Writers hold `lock`: appends, role changes and truncation are serialised by it. Readers take no lock: the log
publishes what it has written only once it is whole, and the high watermark is a single integer.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.file_slice import FileSlice
from odradek.log.config import LogConfig
from odradek.log.partition_log import AppendResult, PartitionLog
from odradek.log.transaction_index import AbortedTransaction
from odradek.log.validation import BatchRules, CheckedRecords, Origin, RecordCheck, check_produce_records
from odradek.model.topology import NO_LEADER, PartitionDirective, TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import TimestampType
from odradek.replication.high_watermark import high_watermark

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

# "producer" isn't here: it means to leave the codec to whoever produces.
_CODECS = {"uncompressed": Codec.NONE} | {codec.name.lower(): codec for codec in Codec if codec}


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """What a fetch found: never beyond the high watermark, nor beyond the last stable offset if asked so."""

    records: FileSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] = ()


def batch_rules(config: LogConfig) -> BatchRules:
    """A topic's configuration as the rules for what may be appended to it."""
    return BatchRules(
        max_message_bytes=config.max_message_bytes,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if config.message_timestamp_type == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compression_type=_CODECS.get(config.compression_type),
        compacted=config.compacts,
    )


def own_rules(rules: BatchRules) -> BatchRules:
    """The same for what this broker made itself: nobody has to find out whether its records are sound."""
    return replace(rules, origin=Origin.COORDINATOR, compacted=False, verify_records=RecordCheck.HEADER)


class Partition:
    def __init__(self, partition: TopicPartition, topic_id: UUID, log: PartitionLog, broker_id: int) -> None:
        self.topic_partition = partition
        self.topic_id = topic_id
        self.log = log
        self.lock = threading.Lock()
        self.leader_id: int = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.high_watermark = log.log_start_offset
        self.messages_in = self.bytes_in = self.bytes_out = 0  # since the broker began to host it
        self._broker_id = broker_id
        self._rules = batch_rules(log.config)
        self._own_rules = own_rules(self._rules)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self._broker_id

    def become_leader(self, directive: PartitionDirective, checkpointed_high_watermark: int) -> None:
        """Lead from the end of the own log in a new epoch."""
        state = directive.state
        with self.lock:
            self.log.begin_epoch(state.leader_epoch)
            self.leader_epoch = state.leader_epoch
            self.partition_epoch = state.zk_version
            self.isr, self.replicas = state.isr, directive.replicas
            self.high_watermark = max(checkpointed_high_watermark, self.log.log_start_offset)
            self._advance_high_watermark()
            self.leader_id = state.leader

    def append(self, records: memoryview, *, acks: int, api_version: int) -> AppendResult:
        """Write what a producer sent. KafkaError says why nothing was written."""
        self._check_may_append(acks)
        check_produce_records(records, api_version)
        # Before the lock: what is long about a batch must not hold up those who write to the same partition.
        checked = self.log.check(records, self._rules)
        with self.lock:
            self._check_may_append(acks)
            return self._write(checked, len(records))

    def append_own(self, records: memoryview, *, acks: int) -> AppendResult:
        """Write what a coordinator of this broker has to remember."""
        with self.lock:
            self._check_may_append(acks)
            checked = self.log.check(records, self._own_rules)
            return self._write(checked, len(records))

    def _check_may_append(self, acks: int) -> None:
        self._check_leader(-1)
        self._check_in_sync(acks)

    def _write(self, checked: CheckedRecords, size: int) -> AppendResult:
        result = self.log.append_checked(checked, leader_epoch=self.leader_epoch)
        self._advance_high_watermark()
        self.messages_in += result.last_offset - result.first_offset + 1
        self.bytes_in += size
        return result

    def read(
        self, offset: int, max_bytes: int, *, isolation: int, current_leader_epoch: int, min_one_batch: bool
    ) -> FetchedPartition:
        self._check_leader(current_leader_epoch)
        # The watermark first: bytes below it are in the file already, so whatever is read after is there.
        watermark = self.high_watermark
        stable = self.last_stable_offset(watermark)
        upper_bound = stable if isolation == READ_COMMITTED else watermark
        records = self.log.read(offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch).records
        aborted: Sequence[AbortedTransaction] = ()
        if isolation == READ_COMMITTED and records.size:
            aborted = self.log.aborted_transactions(offset, upper_bound)
        return FetchedPartition(records, watermark, stable, self.log.log_start_offset, aborted)

    def update_config(self, config: LogConfig) -> None:
        with self.lock:
            self.log.update_config(config)
            self._rules = batch_rules(config)
            self._own_rules = own_rules(self._rules)

    def last_stable_offset(self, watermark: int) -> int:
        """The end of what a read_committed consumer may see: no transaction before it is still open."""
        unstable = self.log.producers.first_unstable_offset
        return watermark if unstable is None else min(watermark, unstable)

    def leader_log(self, current_leader_epoch: int = -1) -> PartitionLog:
        """The log, if this broker leads in the epoch that the caller believes in (-1: it doesn't say)."""
        self._check_leader(current_leader_epoch)
        return self.log

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start; answers where the log starts now."""
        with self.lock:
            self._check_leader(-1)
            target = self.high_watermark if offset == -1 else offset
            if not 0 <= target <= self.high_watermark:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            self.log.maybe_advance_log_start(target)
            return self.log.log_start_offset

    def _check_in_sync(self, acks: int) -> None:
        if acks == -1 and len(self.isr) < self.log.config.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {self.log.config.min_insync_replicas} for partition {self.topic_partition}",
            )

    def _check_leader(self, current_leader_epoch: int) -> None:
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.leader_id != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _advance_high_watermark(self) -> None:
        self.high_watermark = high_watermark(self.high_watermark, [self.log.log_end_offset])
        self.log.producers.advance_high_watermark(self.high_watermark)
