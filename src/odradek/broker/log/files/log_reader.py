"""Reading a log's files: batches by offset, records by time, aborted transactions. Takes no writer's lock."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.file_slice import FileSlice
from odradek.broker.log.files import timestamps
from odradek.broker.log.files.log_files import LogFiles
from odradek.broker.log.files.segment import Segment, TimestampOffset
from odradek.format.transaction_index import AbortedTransaction

T = TypeVar("T")


class ReadResult(NamedTuple):
    """Whole batches but for the last, which `max_bytes` may have cut. Size 0: nothing to read there now."""

    records: FileSlice
    segment: Segment


class LogReader:
    def __init__(self, files: LogFiles) -> None:
        self._files = files

    def read(self, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool) -> ReadResult:
        """Read as `PartitionLog.read`, an offset that the log has."""
        segments = self._files.segments
        slot = len(segments) - 1
        if offset < segments[slot].base_offset:
            slot = max(bisect_right(segments, offset, key=_base_of) - 1, 0)
        if offset < upper_bound:
            for segment in segments[slot:] if slot < len(segments) - 1 else (segments[slot],):
                found = self._read_segment(segment, offset, max_bytes, upper_bound, min_one_batch)
                if found is not None:
                    return ReadResult(found, segment)
        segment = segments[slot]
        return ReadResult(FileSlice(segment.file, segment.size, 0), segment)

    def _read_segment(
        self, segment: Segment, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> FileSlice | None:
        files = self._files
        renames = files.renames
        try:
            return segment.read(offset, max_bytes, upper_bound, min_one_batch=min_one_batch)
        except FileNotFoundError as error:  # deleted between the look at the tuple and the opening
            if files.is_deleted:
                raise files.storage_error(error) from error
            if files.were_renamed_since(renames):
                return self._read_segment(segment, offset, max_bytes, upper_bound, min_one_batch)
            if segment in files.segments:
                raise files.fail(error) from error
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} has just been deleted") from error
        except OSError as error:
            raise files.fail(error) from error

    def aborted_in(self, found: ReadResult, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Return the aborted transactions in a range that was read from the offset on, up to the bound."""
        if not found.records.size or not any(len(segment.transactions) for segment in self._from(offset)):
            return []
        end = found.segment.offset_bound(found.records.position + found.records.size)
        return self.aborted_transactions(offset, min(upper_bound, end))

    def aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [offset, upper_bound), by first offset: read_committed
        consumers skip them."""
        renames = self._files.renames
        found = self._aborted_transactions(offset, upper_bound)
        return self.aborted_transactions(offset, upper_bound) if self._files.were_renamed_since(renames) else found

    def _aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        for segment in self._from(offset):
            here, complete = segment.transactions.overlapping(offset, upper_bound)
            found += here
            if complete:
                break
        found.sort(key=_first_offset)  # each index is in the order of markers; clients trust the order of first offsets
        return found

    def find_offset_by_timestamp(self, timestamp: int, log_start_offset: int) -> TimestampOffset | None:
        """Return the first record that is not older, with its own timestamp."""
        return self._among_segments(
            lambda segments: timestamps.first_at_or_after(segments, timestamp, log_start_offset)
        )

    def max_timestamp(self, log_start_offset: int) -> TimestampOffset | None:
        """The youngest record, None in an empty log."""
        return self._among_segments(lambda segments: timestamps.youngest(segments, log_start_offset))

    def starts_written_before(self, timestamp: int) -> list[int]:
        """Return the starts of the segments up to the last one whose file was not written to after the time."""

        def starts(segments: Sequence[Segment]) -> list[int]:
            written = (place for place in reversed(range(len(segments))) if segments[place].modified_ms <= timestamp)
            return [segment.base_offset for segment in segments[: next(written, -1) + 1]]

        return self._among_segments(starts)

    def _among_segments(self, look: Callable[[Sequence[Segment]], T]) -> T:
        """Search again when segments are deleted or replaced during a lookup."""
        while True:
            segments = self._files.segments
            try:
                return look(segments)
            except FileNotFoundError:
                if segments is self._files.segments:
                    raise

    def _from(self, offset: int) -> Sequence[Segment]:
        """Return the segments from the one that has the offset on."""
        segments = self._files.segments
        return segments[max(bisect_right(segments, offset, key=_base_of) - 1, 0) :]


def _base_of(segment: Segment) -> int:
    return segment.base_offset


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset
