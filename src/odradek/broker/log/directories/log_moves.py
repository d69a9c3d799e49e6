"""Move of a partition's log from one directory to another while it is written.

    1  B/orders-0.UUID-future is created and filled from A/orders-0, a piece at a time        (`LogCopy`)
    2  B/orders-0.UUID-future/moved-from contains A                                           (`prepare_to_finish`)
    3  the copy is complete, and the partition's writers wait                                 (`finish_move`)
    4  B/orders-0.UUID-future is renamed to B/orders-0
    5  A/orders-0 is renamed to A/orders-0.UUID-delete, whose files are deleted later
    6  B/orders-0/moved-from is deleted                                                       (`settle_move`)

Each step is on disk before the next begins. A crash before step 4 leaves the log in A, and the copy continues after the
next start. Between steps 4 and 5 there are two logs, and `moved-from` decides which one to keep. If A's disk fails in
between, the log in A is removed by the same rule when the disk is back.

A copy is compared with its log by leader epochs: no two leaders have written the same offset in the same epoch, so the
records are equal as far as the epochs are. The comparison is needed after a start, and after the log was truncated.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from struct import Struct

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.log.files.checkpoint import replace_file, sync_directory
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.log_names import LogKind, parse
from odradek.model.topology import TopicPartition

MOVED_FROM_FILE = "moved-from"
_NEVER = -1
_BASE_OFFSET = Struct(">q")

log = get_logger(__name__)


class LogCopy:
    """Fills a future log from the current one, beside its writer. One thread at a time."""

    def __init__(self, source: PartitionLog, future: PartitionLog) -> None:
        self.source = source
        self.future = future
        self._compared_at = _NEVER  # how often the source had been truncated when it was compared with the copy

    @property
    def is_prefix(self) -> bool:
        """Return whether the whole copy is known to equal the source."""
        return self._compared_at == self.source.flushed.truncations

    @property
    def is_whole(self) -> bool:
        return self.is_prefix and self.future.log_end_offset == self.source.log_end_offset

    def remaining_bytes(self) -> int:
        return bytes_from(self.source, self.future.log_end_offset)

    def compare(self) -> None:
        """Truncate the copy to its common end with the source; nothing if that is truncated meanwhile, see
        `is_prefix`."""
        source, future = self.source, self.future
        truncations = source.flushed.truncations
        end = common_end(source, future)
        with future.files.in_place:
            if source.flushed.truncations != truncations or future.files.is_deleted:
                return
            if future.log_start_offset <= source.log_start_offset <= end:
                future.truncate_to(end)
            else:
                future.truncate_fully_and_start_at(source.log_start_offset)
            self._compared_at = truncations

    def copy(self, max_bytes: int) -> int:
        """Copy the next piece; return its bytes, 0 if there is nothing to copy now. KafkaError if a disk fails."""
        if not self.is_prefix:
            self.compare()
            return 0
        with self.future.files.in_place:  # it may be cancelled at any time
            return 0 if self.future.files.is_deleted else self._copy(max_bytes)

    def _copy(self, max_bytes: int) -> int:
        source, future = self.source, self.future
        if future.log_end_offset < source.log_start_offset:  # deleted before its turn came
            future.truncate_fully_and_start_at(source.log_start_offset)
        records = self._read(max_bytes)
        if not records or not self.is_prefix:  # a piece that was read during a truncation may mix old and new records
            return 0
        self._maybe_start_before(records)
        future.append_as_follower(memoryview(records))
        future.maybe_advance_log_start(min(source.log_start_offset, future.log_end_offset))
        return len(records)

    def _read(self, max_bytes: int) -> bytes:
        source = self.source
        try:
            return source.read(self.future.log_end_offset, max_bytes, upper_bound=source.log_end_offset).records.read()
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                return b""
            raise

    def _maybe_start_before(self, records: bytes) -> None:
        """A log may start inside of a batch; the copy's files begin with the whole batch."""
        future = self.future
        (base_offset,) = _BASE_OFFSET.unpack_from(records)
        if future.log_start_offset == future.log_end_offset and base_offset < future.log_end_offset:
            future.truncate_fully_and_start_at(base_offset)


def common_end(source: PartitionLog, future: PartitionLog) -> int:
    """Offset up to which the copy equals its source. It may be outside of both logs."""
    end = future.log_end_offset
    for epoch, start in reversed(future.epochs.entries):
        if start >= end:
            continue
        known, known_end = source.epochs.end_offset_for(epoch, source.log_end_offset)
        if known == epoch:
            return min(end, known_end)
        end = start
    return min(end, future.log_start_offset)


def bytes_from(source: PartitionLog, offset: int) -> int:
    """Return the number of bytes from the batch with the offset on."""
    total = 0
    for segment in reversed(source.segments):
        if segment.base_offset <= offset:
            found = segment.locate(offset)
            return total + (segment.size - found[0] if found else 0)
        total += segment.size
    return total


# -- which of two logs is the right one -----------------------------------------------------------------------------


def mark_moved(future: PartitionLog, source: PartitionLog) -> None:
    """Step 2. Also removes the source's own mark of an earlier move, which would contradict this one."""
    unmark_moved(source.directory)
    if moved_from(future.directory) == source.directory.parent:
        return
    replace_file(future.directory / MOVED_FROM_FILE, str(source.directory.parent).encode())


def unmark_moved(directory: Path) -> None:
    """Remove the mark of a log that is the only one, without an fsync: an old mark does no harm."""
    (directory / MOVED_FROM_FILE).unlink(missing_ok=True)


def moved_from(directory: Path) -> Path | None:
    try:
        return Path((directory / MOVED_FROM_FILE).read_text("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def finish_interrupted(found: dict[Path, list[Path]], retire: Callable[[TopicPartition, Path], bool]) -> None:
    """Retire the source of a move: of two current logs of a partition, the one from which the other was moved.

    `found` are the logs in each directory; the source is removed from it. `retire` returns whether its disk works.
    Others that lie twice are left as they are.
    """
    by_partition: dict[TopicPartition, list[Path]] = defaultdict(list)
    for paths in found.values():
        for path in paths:
            name = parse(path.name)
            if name.kind is LogKind.CURRENT and name.partition is not None:
                by_partition[name.partition].append(path)
    for tp, twins in by_partition.items():
        if len(twins) < 2:
            continue
        kept, former = next(
            ((path, other) for path in twins for other in twins if other.parent == moved_from(path)), (None, None)
        )
        if kept is not None and former is not None:
            log.warning("interrupted move finished", partition=str(tp), kept=str(kept), retired=str(former))
            found[former.parent].remove(former)
            if retire(tp, former):
                unmark_moved(kept)


def make_current(future: PartitionLog, path: Path) -> None:
    """Step 4: from here on a restart opens this one."""
    future.rename(path)
    sync_directory(path.parent)
