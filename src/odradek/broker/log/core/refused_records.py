"""Invalid records of a refused batch, for the error that the producer gets."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import NO_TIMESTAMP
from odradek.protocol.records import Record

_NAMED_MAX: Final = 1000
SEARCHED_MAX: Final = 10_000


class RecordsRefused(KafkaError):
    """Some records are invalid, and their batch is refused with them. `why` has their places in the batch.

    No more than a thousand are named, of the first ten thousand, whatever a batch is full of.
    """

    def __init__(self, code: ErrorCode, message: str, refused: Iterable[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.why = dict(islice(refused, _NAMED_MAX))


def keyless(records: Iterable[Record]) -> RecordsRefused:
    why = "A compacted topic takes no record without a key"
    return RecordsRefused(
        ErrorCode.INVALID_RECORD, why, ((place, why) for place, record in _searched(records) if record.key is None)
    )


def out_of_time(records: Iterable[Record], first: int, last: int) -> RecordsRefused:
    """Refuse records whose timestamps are not within these."""
    return RecordsRefused(
        ErrorCode.INVALID_TIMESTAMP,
        f"Timestamps of records should be within [{first}, {last}]",
        (
            (place, f"Timestamp {record.timestamp} is not within [{first}, {last}]")
            for place, record in _searched(records)
            if record.timestamp != NO_TIMESTAMP and not first <= record.timestamp <= last
        ),
    )


def _searched(records: Iterable[Record]) -> Iterable[tuple[int, Record]]:
    return enumerate(islice(records, SEARCHED_MAX))
