"""The fast way to read ranges: batches are fetched as they are in the log, and decoded by compiled code.

It handles only plain records in order. Anything else (an error, no answer, records of an old format, a malformed batch)
ends it, and librdkafka continues from there; `fetching` handles these cases. So a range that ends early here loses
time, never records.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from odradek.apps.pipeline.arrow_records.record_columns import (
    MAX_DECOMPRESSED,
    MalformedRecords,
    PlainBatch,
    RecordColumns,
    chunked,
    decode_records,
)
from odradek.apps.pipeline.source.offsets import OffsetRange
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.record_reader import Fetched, FetchOptions, RecordReader
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import check_crc
from odradek.protocol.records import plain_payload

_FETCH_BYTES: Final = 4 * 1024 * 1024
_WAIT_MS: Final = 500
_TIMEOUT_MS: Final = 5_000


def plain_records(
    bootstrap: str, ranges: Sequence[OffsetRange], headers_type: pa.DataType | None
) -> Iterator[tuple[TopicPartition, RecordColumns, int]]:
    """Yield records of the ranges, each of another partition, with the next position of the partition.

    Records of a partition come in order from the start of its range, not always up to its end.
    """
    ends = {wanted.partition: wanted.end for wanted in ranges}
    try:
        with ClusterClient(bootstrap, client_id="odradek-spark", timeout_ms=_TIMEOUT_MS) as client:
            options = FetchOptions(max_wait_ms=_WAIT_MS, partition_max_bytes=_FETCH_BYTES)
            reader = RecordReader(client, {wanted.partition: wanted.start for wanted in ranges}, options)
            while not reader.is_finished:
                fetched = reader.poll()
                if not fetched:
                    return
                for part in fetched:
                    for chunk in chunked(_plain_batches(part)):
                        found = decode_records(chunk, headers_type)
                        yield part.tp, _within(found, part.from_offset, ends[part.tp]), chunk[-1][0].next_offset
                    if reader.positions[part.tp] >= ends[part.tp]:
                        reader.stop(part.tp)
    except (KafkaError, ConnectionFailed, UnsupportedByBroker, MalformedRecords):
        return


def _plain_batches(fetched: Fetched) -> Iterator[PlainBatch]:
    for position, header in fetched.batches:
        check_crc(fetched.data, position, header)
        if not header.is_control and header.record_count:
            yield header, plain_payload(fetched.data, position, header, max_decompressed=MAX_DECOMPRESSED)


def _within(found: RecordColumns, start: int, end: int) -> RecordColumns:
    """The wanted range of records: the first and the last batch may have others."""
    offsets = found.offset.to_numpy()
    first, last = np.searchsorted(offsets, [start, end])
    if first == 0 and last == len(offsets):
        return found
    columns = (found.offset, found.timestamp, found.timestamp_type, found.key, found.value, found.headers)
    return RecordColumns(*(None if column is None else column.slice(first, last - first) for column in columns))
