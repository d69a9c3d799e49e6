"""What a follower fetched, made ready for its own log: checked, and cut where a segment must end.

The leader gave the offsets; here they must only rise. One fetch may hold more than a segment takes, so the batches come
as runs, each of which fits into one segment and is written in one go.
"""

from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.log.scan import batch_info
from odradek.log.segment import MAX_RELATIVE_OFFSET
from odradek.log.validation import BatchInfo
from odradek.protocol.record_batch import BatchHeader, batches, check_crc


class Run(NamedTuple):
    """Batches whose positions count from the start of `data`, and (leader epoch, first offset) of each batch."""

    data: memoryview
    batches: list[BatchInfo]
    epochs: list[tuple[int, int]]

    @property
    def max_timestamp(self) -> int:
        return max(info.max_timestamp for info in self.batches)


def split_into_runs(records: memoryview, next_offset: int, segment_bytes: int) -> list[Run]:
    """Every whole batch; one that the end of the fetch cut is left for the next fetch. KafkaError if any is wrong."""
    runs: list[Run] = []
    start = 0
    for position, header in batches(records, partial_tail=True):
        check_crc(records, position, header)
        _check_follows(header, next_offset)
        next_offset = header.next_offset
        end = position + header.size
        if not runs or not _fits(runs[-1], header, end - start, segment_bytes):
            runs.append(Run(records[position:end], [], []))
            start = position
        run = runs[-1]._replace(data=records[start:end])
        run.batches.append(batch_info(header, position - start))
        run.epochs.append((header.leader_epoch, header.base_offset))
        runs[-1] = run
    return runs


def _fits(run: Run, header: BatchHeader, size: int, segment_bytes: int) -> bool:
    return size <= segment_bytes and header.last_offset - run.batches[0].base_offset <= MAX_RELATIVE_OFFSET


def _check_follows(header: BatchHeader, next_offset: int) -> None:
    if header.base_offset < next_offset or header.last_offset_delta < 0:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Batch of offsets {header.base_offset} to {header.last_offset} can't follow {next_offset - 1}",
        )
