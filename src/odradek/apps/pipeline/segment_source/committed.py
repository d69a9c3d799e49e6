"""Transactions in the files of a partition: the aborted ones, and the start of the first open one.

Aborted ones stand in the transaction indexes. Open ones are found as recovery finds them: in the newest producer
snapshot, and in the batches behind it. The files may belong to a running broker: records that are appended meanwhile
are behind the end that was found, and left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.apps.pipeline.segment_source.segment_file import stored_batches
from odradek.format.producer_snapshot import CorruptSnapshot, read_rows
from odradek.format.segment_files import SNAPSHOT_SUFFIX, TXN_INDEX_SUFFIX
from odradek.format.transaction_index import AbortedTransaction, read_entries
from odradek.protocol.transaction_markers import read_marker

NO_END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CommittedPart:
    """The records of a replica that a reader of committed records sees: those before `end`, without the aborted."""

    aborted: tuple[AbortedTransaction, ...]
    end: int

    def of_segment(self, base_offset: int, next_base: int) -> tuple[tuple[int, int], ...]:
        """Return producer id and first offset of the aborted transactions that touch the segment."""
        return tuple(
            (each.producer_id, each.first_offset)
            for each in self.aborted
            if each.last_offset >= base_offset and each.first_offset < next_base
        )


def committed_part(directory: Path, segments: Sequence[Path], high_watermark: int | None) -> CommittedPart:
    """`segments` are the replica's log files in order. Nothing at or above the high watermark is committed, where its
    broker has checkpointed one."""
    end = _first_open(directory, segments)
    if high_watermark is not None:
        end = min(end, high_watermark)
    aborted = [each for path in sorted(directory.glob(f"*{TXN_INDEX_SUFFIX}")) for each in _entries(path)]
    return CommittedPart(tuple(sorted(aborted, key=lambda each: each.first_offset)), end)


def _first_open(directory: Path, segments: Sequence[Path]) -> int:
    start, open_since = _newest_snapshot(directory)
    end = start
    for path, next_path in zip(segments, [*segments[1:], None], strict=True):
        if next_path is not None and base_offset(next_path) <= start:
            continue
        for batch in stored_batches(path):
            header = batch.header
            if batch.problem is not None:
                return min([*open_since.values(), end])  # the end of the transaction is not known
            end = max(end, header.next_offset)
            if header.base_offset < start or header.producer_id < 0:
                continue
            if not header.is_control:
                if header.is_transactional:
                    open_since.setdefault(header.producer_id, header.base_offset)
            elif read_marker(batch.view, 0, header) is not None:
                open_since.pop(header.producer_id, None)
    return min([*open_since.values(), end])


def _newest_snapshot(directory: Path) -> tuple[int, dict[int, int]]:
    """Return the offset that the newest snapshot knows of, and the open transactions: first offset by producer id."""
    for path in sorted(directory.glob(f"*{SNAPSHOT_SUFFIX}"), reverse=True):
        try:
            rows = read_rows(path.read_bytes())
        except (CorruptSnapshot, FileNotFoundError):
            continue
        return base_offset(path), {row.producer_id: row.txn_first_offset for row in rows if row.txn_first_offset >= 0}
    return 0, {}


def _entries(path: Path) -> Iterable[AbortedTransaction]:
    try:
        return list(read_entries(path.read_bytes()))
    except FileNotFoundError:
        return []


def base_offset(path: Path) -> int:
    digits = path.name.split(".", 1)[0]
    return int(digits) if digits.isdecimal() else NO_END
