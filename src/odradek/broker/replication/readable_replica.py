"""Replica as readers see it: its log up to the high watermark, and up to the last stable offset.

Readers take no lock. The high watermark is a single integer that is moved after the bytes are in the file, and the
first unstable offset is another: both are read once for each answer.

    log start ≤ last stable offset ≤ high_watermark ≤ log end
"""

from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.outcomes import FetchedPartition
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.isolation import IsolationLevel

READ_COMMITTED = IsolationLevel.READ_COMMITTED


class ReadableReplica:
    def __init__(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        broker_id: int,
        checkpointed_high_watermark: int,
    ) -> None:
        self.topic_partition = partition
        self.topic_id = topic_id
        self.log = log
        self.leader_id: int = NO_LEADER
        self.leader_epoch = -1
        self._broker_id = broker_id
        self._set_high_watermark(min(max(checkpointed_high_watermark, log.log_start_offset), log.log_end_offset))

    def _set_high_watermark(self, offset: int) -> None:
        """Move the watermark, and forget the transactions whose markers are below it. A truncation finds them again,
        so it has to call this even if the watermark stays."""
        self.high_watermark = offset
        self.log.producers.transactions.advance_high_watermark(offset)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self._broker_id

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: int,
        current_leader_epoch: int,
        min_one_batch: bool,
        only_leader: bool = True,
    ) -> FetchedPartition:
        """Read from the offset on, up to the bound of a consumer."""
        self.check_epoch(current_leader_epoch, only_leader=only_leader)
        # The watermark first: bytes below it are in the file already, so whatever is read after is there.
        watermark = self.high_watermark
        stable = self.last_stable_offset(watermark)
        if isolation == READ_COMMITTED:
            found, aborted = self.log.read_committed(offset, max_bytes, upper_bound=stable, min_one_batch=min_one_batch)
            return FetchedPartition(found.records, watermark, stable, self.log.log_start_offset, aborted)
        found = self.log.read(offset, max_bytes, upper_bound=watermark, min_one_batch=min_one_batch)
        return FetchedPartition(found.records, watermark, stable, self.log.log_start_offset)

    def last_stable_offset(self, watermark: int) -> int:
        """The end of what a read_committed consumer may see: no transaction before it is still open. Retention may
        have deleted the beginning of an open one."""
        log = self.log
        unstable = log.producers.transactions.first_unstable_offset
        return watermark if unstable is None else min(watermark, max(unstable, log.log_start_offset))

    def leader_log(self, current_leader_epoch: int = -1) -> PartitionLog:
        """The log, if this broker leads in the epoch that the caller believes in (-1: it doesn't say)."""
        self.check_epoch(current_leader_epoch, only_leader=True)
        return self.log

    def check_epoch(self, current_leader_epoch: int, *, only_leader: bool) -> None:
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if only_leader and self.leader_id != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
