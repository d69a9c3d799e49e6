"""Small compacted logs for tests: keyed batches, one cleaning, and what is left as values to compare."""

import threading
from collections.abc import Callable
from pathlib import Path

from log_building import NEVER, START_MS, open_log

from odradek.broker.log.compaction.cleaner import Cleaner, CleaningStats
from odradek.broker.log.core.config import DAY_MS, LogConfig
from odradek.broker.log.core.dirtiness import assess
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.core.validation import BatchRules, Origin, RecordCheck
from odradek.broker.log.core.verification import VERIFICATION_OFF
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.protocol.record_batch import BatchHeader, batches, build_batch
from odradek.protocol.records import ControlType, Record, control_key, read_records

COMPACTED = LogConfig(
    segment_bytes=400, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01
)
PLAIN = BatchRules()
MARKER_VALUE = bytes(6)
MARKERS = BatchRules(origin=Origin.COORDINATOR, verify_records=RecordCheck.HEADER)


class Hosted:
    """As a partition owns its log; everything is committed unless told otherwise."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.lock = threading.Lock()
        self.committed: int | None = None

    @property
    def high_watermark(self) -> int:
        return self.log.log_end_offset if self.committed is None else self.committed

    def last_stable_offset(self, watermark: int) -> int:
        unstable = self.log.producers.transactions.first_unstable_offset
        return watermark if unstable is None else min(watermark, unstable)

    def put(
        self,
        *records: tuple[str, str | None],
        timestamp: int = START_MS,
        rules: BatchRules = PLAIN,
        **fields: object,
    ) -> None:
        """One batch of (key, value) pairs; value None is a tombstone."""
        made = [
            Record(number, timestamp + number, key.encode(), None if value is None else value.encode())
            for number, (key, value) in enumerate(records)
        ]
        data = memoryview(bytearray(build_batch(made, **fields)))  # type: ignore[arg-type]
        self.log.append_as_leader(data, leader_epoch=0, rules=rules, guard=VERIFICATION_OFF)
        self.log.producers.advance_high_watermark(self.log.log_end_offset)

    def end_transaction(self, producer_id: int, kind: ControlType, producer_epoch: int = 0) -> None:
        record = Record(0, START_MS, control_key(kind), MARKER_VALUE)
        data = build_batch(
            [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
        )
        self.log.append_as_leader(memoryview(bytearray(data)), leader_epoch=0, rules=MARKERS)
        self.log.producers.advance_high_watermark(self.log.log_end_offset)


def hosted(directory: Path, config: LogConfig = COMPACTED, **options: object) -> Hosted:
    options.setdefault("background", NEVER)
    return Hosted(open_log(directory, config, **options))


def clean(
    host: Hosted,
    *,
    first_dirty: int = 0,
    now_ms: int = START_MS + DAY_MS,
    map_bytes: int = 1 << 16,
    buffer_bytes: int = 256,
    go_on: Callable[[], bool] = lambda: True,
) -> CleaningStats:
    """Clean all that may be cleaned."""
    log = host.log
    stable = host.last_stable_offset(host.high_watermark)
    dirtiness = assess(log.segments, log.config, first_dirty=first_dirty, last_stable_offset=stable, now_ms=now_ms)
    cleaner = Cleaner(KeyMap(map_bytes, 0.9), buffer_bytes, lambda size: None)
    return cleaner.clean(host, dirtiness, now_ms, go_on)


def batches_of(log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, upper_bound=log.log_end_offset).records.read()
        if not data:
            break
        for position, header in batches(data, partial_tail=True):
            found.append((header, list(read_records(data, position, header))))
            offset = header.next_offset
    return found


def entries_of(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """(offset, key, value) of every record that isn't a marker."""
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for header, records in batches_of(log)
        if not header.is_control
        for record in records
    ]


def latest_of(log: PartitionLog) -> dict[str, str]:
    """Return the last value of each key, as a reader of the whole log has them."""
    state = {key: value for _, key, value in entries_of(log)}
    return {key: value for key, value in state.items() if value is not None}
