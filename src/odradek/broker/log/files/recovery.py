"""Recovery: opens a log from its files, and repairs it after a crash.

After a clean stop nothing is scanned: only the indexes are checked, and the end of the last segment from its last index
entry. After any other stop every segment from the recovery point on is read completely: lengths, magic, CRC-32C,
increasing offsets. A segment is truncated at the first invalid byte, the segments after it are deleted, and indexes are
rebuilt. Other files that are missing or corrupt (index, snapshot, checkpoint) are rebuilt from the batches. Corrupt
files never prevent a start.

Leftovers by suffix: `.deleted` and `.cleaned` go; `.swap` was a finished compaction and takes the place of the
segments it covers, unless a `.cleaned` at or below it shows that it was one of a set that never got complete.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.log.core.batch_info import batch_info
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.open_transactions import CompletedTransaction
from odradek.broker.log.core.producer_state import EVERY_PRODUCER, ProducerStates
from odradek.broker.log.files.index import CorruptIndex
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.broker.log.files.producer_snapshot import ProducerSnapshots
from odradek.broker.log.files.scan import checked_batches, headers
from odradek.broker.log.files.segment import Segment, TimestampOffset
from odradek.format.checkpoints import LEADER_EPOCH_FILE
from odradek.format.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
)
from odradek.format.transaction_index import AbortedTransaction
from odradek.protocol.record_batch import NO_TIMESTAMP, BatchHeader

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """Parts of a log as they are found on disk. The last segment is active."""

    segments: tuple[Segment, ...]
    epochs: LeaderEpochCache
    producers: ProducerStates
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


def load(
    directory: Path,
    config: LogConfig,
    clock: Clock,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean: bool,
) -> LoadedLog:
    epochs = LeaderEpochCache(directory / LEADER_EPOCH_FILE)
    states = ProducerStates(config.producer_id_expiration_ms)
    snapshots = ProducerSnapshots(directory)
    finish_interrupted_swaps(directory)
    segments = _segments_on_disk(directory, clock.now_ms())
    trusted = [segment for segment in segments if clean or segment.end_offset <= recovery_point]
    for segment in trusted:
        _check_indexes(segment, config, epochs, snapshots)
    if len(trusted) < len(segments):
        snapshots.keep(lambda offset: offset <= segments[len(trusted)].base_offset)
        segments = trusted + _recover_unflushed(segments[len(trusted) :], config, epochs)
    elif segments:
        _find_end(segments[-1], config, epochs, snapshots)
    if segments and segments[-1].end_offset < log_start_offset:
        log.warning(
            "log end offset is below the log start offset, log deleted",
            directory=str(directory),
            start=log_start_offset,
        )
        remove_files(path for segment in segments for path in segment.mark_deleted())
        epochs.clear()
        segments = []
    if segments:
        segments[-1].activate(config)
    else:
        segments = [Segment.create(directory, log_start_offset, config, clock.now_ms())]
    end_offset = segments[-1].end_offset
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    snapshots.drop_strays({segment.base_offset for segment in segments})
    if not _holds_every_producer(segments[0], log_start_offset, end_offset, states.oldest_kept_ms(clock.now_ms())):
        states.forgotten_up_to = EVERY_PRODUCER
    rebuild_producers(segments, states, snapshots, log_start_offset, end_offset, clock.now_ms())
    recovery_point = end_offset if clean else min(recovery_point, end_offset)
    return LoadedLog(tuple(segments), epochs, states, snapshots, log_start_offset, end_offset, recovery_point)


def _holds_every_producer(first: Segment, log_start_offset: int, log_end_offset: int, oldest_kept_ms: int) -> bool:
    """Return whether no producer can be missing in the snapshots: nothing was deleted, and the log is too young for
    expiry.
    """
    if log_end_offset == 0:
        return True
    if log_start_offset:
        return False
    try:
        _, header = next(first.headers(), (0, None))
    except KafkaError:  # a corrupt batch in a flushed segment: its readers find it
        return False
    return header is not None and header.base_offset == 0 and header.max_timestamp > oldest_kept_ms


def rebuild_producers(
    segments: Iterable[Segment],
    states: ProducerStates,
    snapshots: ProducerSnapshots,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    *,
    sync: bool = True,
) -> None:
    """Rebuild the producers as of the log's end from the newest snapshot and the batches after it. `sync`: wait for the
    disk; without it a crash may leave an incomplete snapshot, which its checksum reveals."""
    snapshots.load_latest(states, log_start_offset, log_end_offset, now_ms)
    start = states.map_end_offset
    for segment in segments:
        if segment.end_offset <= start or not segment.size:
            continue
        if segment.base_offset > start:
            states.map_end_offset = segment.base_offset
            snapshots.take(states, sync=sync)
        try:
            _replay_segment(states, segment, max(start, segment.base_offset))
        except KafkaError as error:  # it was valid at the fsync: a reader of the batch gets an error
            log.error("producers forgotten because of a broken batch", path=str(segment.path), reason=str(error))
            states.clear(segment.end_offset)
            states.forgotten_up_to = EVERY_PRODUCER
    states.map_end_offset = log_end_offset
    if log_end_offset > log_start_offset:
        snapshots.take(states, sync=sync)


def _replay_segment(states: ProducerStates, segment: Segment, start: int) -> None:
    found = segment.locate(start)
    if found is not None:
        fd = segment.file.fileno()
        for position, header in headers(fd, found[0], segment.size):
            _replay(states, segment, header, fd, position)


def _replay(states: ProducerStates, segment: Segment, header: BatchHeader, fd: int, position: int) -> None:
    if header.producer_id < 0:
        return
    data = os.pread(fd, header.size, position) if header.is_control else b""
    staged = states.stage((batch_info(header, header.base_offset, 0),), data, None)
    for transaction in staged.completed:
        note_aborted(segment, transaction)
    states.commit(staged, header.next_offset)


def note_aborted(segment: Segment, transaction: CompletedTransaction) -> None:
    """Add an abort marker of the segment to its transaction index, once."""
    if transaction.is_aborted:
        segment.transactions.append(
            AbortedTransaction(
                transaction.producer_id,
                transaction.first_offset,
                transaction.last_offset,
                transaction.last_stable_offset,
            )
        )


def recover_segment(segment: Segment, config: LogConfig, epochs: LeaderEpochCache) -> int:
    """Read the whole segment, rebuild its indexes, truncate it at the first invalid batch; return the number of removed
    bytes."""
    valid, next_offset, reason = _rebuild_indexes(segment, config, epochs)
    removed = segment.size - valid
    if removed:
        log.warning(
            "segment truncated at the first invalid batch",
            path=str(segment.path),
            at_byte=valid,
            removed_bytes=removed,
            reason=reason,
        )
    segment.cut_back(valid, next_offset)
    segment.transactions.reset()  # `rebuild_producers` fills it again
    return removed


def _rebuild_indexes(segment: Segment, config: LogConfig, epochs: LeaderEpochCache) -> tuple[int, int, str]:
    """Rebuild the indexes; return the number of valid bytes, the offset after them, and the fault of the next byte."""
    segment.index.reset()
    segment.time_index.reset()
    valid, since_index, next_offset = 0, 0, segment.base_offset
    newest = TimestampOffset(segment.base_offset, NO_TIMESTAMP)
    reason = ""
    try:
        for position, header in checked_batches(segment.file.fileno(), segment.size):
            if header.base_offset < next_offset or header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                reason = f"offset {header.base_offset} where {next_offset} or more was to come"
                break
            next_offset = header.next_offset
            if header.max_timestamp > newest.timestamp:
                newest = TimestampOffset(header.last_offset, header.max_timestamp)
            if since_index > config.index_interval_bytes:
                segment.index.append(header.last_offset, position)
                segment.time_index.maybe_append(newest.timestamp, newest.offset)
                since_index = 0
            since_index += header.size
            valid = position + header.size
            epochs.found(header.leader_epoch, header.base_offset)
    except KafkaError as error:
        reason = str(error)
    segment.note_newest(newest)
    segment.finish_indexes()
    return valid, next_offset, reason


def finish_interrupted_swaps(directory: Path) -> None:
    names = os.listdir(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min((_offset_of(name) for name in cleaned), default=None)
    swaps = []
    for name in names:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)):
            remove_files([directory / name])
        elif name.endswith(SWAP_SUFFIX):
            if first_cleaned is not None and _offset_of(name) >= first_cleaned:
                remove_files([directory / name])
            else:
                swaps.append(name)
    if not swaps:
        return
    covered = [
        (_offset_of(name), max(_offset_of(name) + 1, _next_offset_in(directory / name)))
        for name in swaps
        if name.removesuffix(SWAP_SUFFIX).endswith(LOG_SUFFIX)
    ]
    low, high = min((low for low, _ in covered), default=0), max((high for _, high in covered), default=0)
    for name in os.listdir(directory):
        if name.endswith(SEGMENT_SUFFIXES) and low <= _offset_of(name) < high:
            log.info("segment replaced by log cleaner deleted", path=str(directory / name))
            remove_files([directory / name])
    for name in swaps:
        os.replace(directory / name, directory / name.removesuffix(SWAP_SUFFIX))


def remove_files(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _segments_on_disk(directory: Path, now_ms: int) -> list[Segment]:
    """Every segment, none active; an index without its log is deleted."""
    sizes = {}
    for entry in os.scandir(directory):
        if entry.name.endswith(LOG_SUFFIX) and entry.name[: -len(LOG_SUFFIX)].isdigit():
            sizes[_offset_of(entry.name)] = entry.stat().st_size
    for name in os.listdir(directory):
        if name.endswith(SEGMENT_SUFFIXES[1:]) and _offset_of(name) not in sizes:
            log.warning("orphaned index file deleted", path=str(directory / name))
            remove_files([directory / name])
    bases = sorted(sizes)
    ends = [*bases[1:], bases[-1] + MAX_RELATIVE_OFFSET] if bases else []
    return [
        Segment(directory, base, size=sizes[base], end_offset=end, created_ms=now_ms)
        for base, end in zip(bases, ends, strict=True)
    ]


def _check_indexes(segment: Segment, config: LogConfig, epochs: LeaderEpochCache, snapshots: ProducerSnapshots) -> None:
    if not segment.transactions.is_sane(segment.base_offset):
        log.warning("transaction index rebuilt", path=str(segment.transactions.path))
        segment.transactions.reset()
        snapshots.keep(lambda offset: offset <= segment.base_offset)
    try:
        segment.index.check(segment.size)
        segment.time_index.check()
        if segment.size and not len(segment.time_index) and segment.first_timestamp >= 0:
            raise CorruptIndex("no time entry, which closing the segment would have added")
    except (CorruptIndex, KafkaError) as error:
        log.warning("indexes rebuilt", path=str(segment.path), reason=str(error))
        size, end_offset = segment.size, segment.end_offset
        _rebuild_indexes(segment, config, epochs)
        segment.set_end(size, end_offset)


def _recover_unflushed(segments: list[Segment], config: LogConfig, epochs: LeaderEpochCache) -> list[Segment]:
    """Check each segment up to the first truncated one; later segments do not continue the log."""
    for slot, segment in enumerate(segments):
        log.info("segment recovered", path=str(segment.path), number=slot + 1, of=len(segments))
        end_offset = segment.end_offset
        if recover_segment(segment, config, epochs):
            remove_files(path for later in segments[slot + 1 :] for path in later.mark_deleted())
            return segments[: slot + 1]
        if slot + 1 < len(segments):
            segment.set_end(segment.size, end_offset)
    return segments


def _find_end(last: Segment, config: LogConfig, epochs: LeaderEpochCache, snapshots: ProducerSnapshots) -> None:
    """Read on from the last index entry to find the offset after the last batch. Whole batches must fill the file."""
    start = last.index.last()
    end_offset, end = last.base_offset, start[1] if start else 0
    try:
        for position, header in last.headers(end):
            end_offset, end = header.next_offset, position + header.size
    except KafkaError:
        end = -1
    if end == last.size:
        last.set_end(end, end_offset)
    else:
        snapshots.keep(lambda offset: offset <= last.base_offset)
        recover_segment(last, config, epochs)


def _next_offset_in(path: Path) -> int:
    """The offset after the last batch of a file that has no index yet."""
    next_offset = _offset_of(path.name)
    with open(path, "rb", buffering=0) as file:
        for _, header in headers(file.fileno(), 0, os.fstat(file.fileno()).st_size):
            next_offset = header.next_offset
    return next_offset


def _offset_of(name: str) -> int:
    digits = name.split(".", 1)[0]
    return int(digits) if digits.isdigit() else -1
