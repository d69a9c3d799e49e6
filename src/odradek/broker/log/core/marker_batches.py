"""Markers of transactions as batches for an append, and the check whether each may, and needs to, be written. Pure."""

from collections.abc import Sequence

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.broker.log.core.validation import CheckedBatch
from odradek.protocol.record_batch import read_header
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker


def marker_batches(
    markers: Sequence[EndTransactionMarker], producers: ProducerStates, now_ms: int
) -> tuple[list[CheckedBatch], list[ErrorCode]]:
    """Batches of the markers that have to be written, and a code for each marker. The producers are different ones: a
    marker of one may change the answer to its next. From now on verifications of the ended transactions prove nothing,
    even where the marker is a repeated one.
    """
    batches: list[CheckedBatch] = []
    codes: list[ErrorCode] = []
    for marker in markers:
        try:
            must_write = producers.check_marker(marker)
        except KafkaError as error:
            codes.append(error.code)
            continue
        codes.append(ErrorCode.NONE)
        producers.verifications.end_transaction(marker)
        if must_write:
            data = memoryview(build_marker(marker, now_ms))
            batches.append(CheckedBatch(data, read_header(data), now_ms))
    return batches, codes
