"""Results of a partition: of reads, of appends, and their consequences for others."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.base.file_slice import FileSlice
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.core.isr import IsrChange
from odradek.format.transaction_index import AbortedTransaction

COMMITTED = -1


class FetchedPartition(NamedTuple):
    """Result of a fetch: never beyond the high watermark, nor beyond the last stable offset if asked so."""

    records: FileSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] = ()


class Appended(NamedTuple):
    """`awaited_in`: the leadership (its first epoch) in which the records may still be committed, or COMMITTED."""

    result: AppendResult
    awaited_in: int


class Advance(NamedTuple):
    """Consequences of a change: whether more is committed than before, and a change of the ISR to propose."""

    committed: bool = False
    change: IsrChange | None = None


NO_ADVANCE = Advance()
MORE_COMMITTED = Advance(committed=True)
