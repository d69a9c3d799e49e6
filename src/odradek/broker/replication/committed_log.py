"""Log of a replica with its high watermark: records below it are committed, and consumers see only these.

    log start ≤ last stable offset ≤ high_watermark ≤ log end

Writers hold the partition's lock. Readers take none: the high watermark is a single integer that is moved after the
bytes are in the file, and the first unstable offset is another; both are read once for each answer.
"""

from struct import Struct

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.outcomes import FetchedPartition
from odradek.protocol.isolation import IsolationLevel

READ_COMMITTED = IsolationLevel.READ_COMMITTED

_BASE_OFFSET = Struct(">q")


class CommittedLog:
    def __init__(self, log: PartitionLog, checkpointed_high_watermark: int) -> None:
        self.log = log
        self.epoch_start_offset: int | None = None  # end of the leader's log when its epoch began
        self.set_high_watermark(min(max(checkpointed_high_watermark, log.log_start_offset), log.log_end_offset))

    def set_high_watermark(self, offset: int) -> None:
        """Move the watermark, and forget the transactions whose markers are below it. A truncation finds them again,
        so it has to call this even if the watermark stays."""
        self.high_watermark = offset
        transactions = self.log.producers.transactions
        if transactions.first_unstable_offset is not None:
            transactions.advance_high_watermark(offset)

    # ---- reading

    def last_stable_offset(self, watermark: int) -> int:
        """Return the end for read_committed consumers: no transaction before it is open. Retention may
        have deleted the beginning of an open one."""
        log = self.log
        unstable = log.producers.transactions.first_unstable_offset
        return watermark if unstable is None else min(watermark, max(unstable, log.log_start_offset))

    @property
    def end_is_known(self) -> bool:
        """Return whether the watermark is at least that of the leader before (KIP-207): a new leader learns from its
        followers how much is committed, and an end that it has sent before would decrease."""
        start = self.epoch_start_offset
        return start is None or start <= self.high_watermark

    def visible_end(self, isolation: int) -> int:
        """Return the end for consumers."""
        watermark = self.high_watermark
        return self.last_stable_offset(watermark) if isolation == READ_COMMITTED else watermark

    def read(self, offset: int, max_bytes: int, isolation: int, min_one_batch: bool) -> FetchedPartition:
        """Read from the offset on, up to the bound of a consumer."""
        # The watermark first: bytes below it are in the file already, so whatever is read after is there.
        log, watermark = self.log, self.high_watermark
        stable = self.last_stable_offset(watermark)
        if offset == (stable if isolation == READ_COMMITTED else watermark):  # the case of most waiting fetches
            return FetchedPartition(None, watermark, stable, log.log_start_offset)
        if isolation == READ_COMMITTED:
            found, aborted = log.read_committed(offset, max_bytes, upper_bound=stable, min_one_batch=min_one_batch)
            return FetchedPartition(found.records, watermark, stable, log.log_start_offset, aborted)
        found = log.read(offset, max_bytes, upper_bound=watermark, min_one_batch=min_one_batch)
        return FetchedPartition(found.records, watermark, stable, log.log_start_offset)

    # ---- a follower writes what it fetched

    def append_fetched(self, records: memoryview, high_watermark: int, log_start_offset: int) -> AppendResult:
        """Write batches of the leader, and take over its watermark and log start as far as this log has them."""
        self._maybe_start_before(records)
        log = self.log
        result = log.append_as_follower(records)
        known = min(high_watermark, log.log_end_offset)
        if known > self.high_watermark:
            self.set_high_watermark(known)
        if log.log_start_offset < log_start_offset <= self.high_watermark:
            log.maybe_advance_log_start(log_start_offset)
        return result

    def _maybe_start_before(self, records: memoryview) -> None:
        """An empty log that starts inside of the leader's first batch starts with that batch instead."""
        log = self.log
        if log.log_start_offset != log.log_end_offset or len(records) < _BASE_OFFSET.size:
            return
        (base_offset,) = _BASE_OFFSET.unpack_from(records)
        if 0 <= base_offset < log.log_end_offset:
            self.start_over_at(base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop records that the leader doesn't have."""
        self.log.truncate_to(offset)
        self.set_high_watermark(min(self.high_watermark, self.log.log_end_offset))

    def start_over_at(self, offset: int) -> None:
        """Drop everything and continue at the offset: the leader's log begins after the end of this one."""
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    # ---- deletion of records

    def delete_before(self, offset: int) -> int:
        """Advance the log start to the offset (-1: to the high watermark), and return the new start."""
        if not self.log.config.deletes:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.log.partition} can not be deleted due to the configured policy",
            )
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.maybe_advance_log_start(target)
        return target
