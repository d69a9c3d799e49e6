"""Placement of a leader's append at the end of its log: offsets of the batches, and the producer state after them."""

from typing import Final, NamedTuple

from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.producer_entry import BATCHES_KEPT, AppendedBatch, ProducerEntry
from odradek.broker.log.core.producer_state import NOTHING_STAGED, ProducerStates, Staged
from odradek.broker.log.core.validation import CheckedRecords, Origin, assign_offsets
from odradek.broker.log.core.verification import VerificationGuard
from odradek.native.load import compiled


class Placed(NamedTuple):
    """Bytes to be written, facts about them for the log, and changes after the write."""

    data: memoryview
    batches: list[BatchInfo]
    max_timestamp: int
    log_append_time: int  # -1 when records keep their producer's time
    staged: Staged


PLACED_TYPES: Final = (Placed, BatchInfo, ProducerEntry, AppendedBatch, Staged, NOTHING_STAGED)
"""Types of a placed batch, and the value for one without a producer, for the compiled inner loop."""


def place(
    checked: CheckedRecords,
    producers: ProducerStates,
    next_offset: int,
    leader_epoch: int,
    may_begin_anywhere: bool,
    guard: VerificationGuard | None,
) -> Placed | AppendedBatch:
    """Place the batches from the offset on, where they lie; or return the batch in the log that the first one repeats.
    KafkaError where their producers may not write them. `guard` and `may_begin_anywhere`: as of `stage`."""
    rules = checked.rules
    if compiled is not None and rules.places_only:
        entries = producers.entries
        usual = compiled.place_next(PLACED_TYPES, checked.batches, entries, next_offset, leader_epoch, BATCHES_KEPT)
        if usual is not None:
            return usual
    data, batches, max_timestamp, log_append_time = assign_offsets(
        checked, next_offset=next_offset, leader_epoch=leader_epoch
    )
    staged = None
    if rules.origin is Origin.CLIENT:
        staged = producers.stage_next(batches)
        if staged is None and (duplicate := producers.find_duplicate(batches[0])) is not None:
            return duplicate
    if staged is None:
        staged = producers.stage(batches, data, rules.origin, may_begin_anywhere=may_begin_anywhere, guard=guard)
    return Placed(data, batches, max_timestamp, log_append_time, staged)
