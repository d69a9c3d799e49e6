"""The compiled inner loop and its Python twins give the same answers, to the value, the error's words and the step.

Batches are made at random, good ones and damaged ones, with the checksum put right again more often than not, so that
damage gets past it. `make soak` compares a million.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.base.errors import KafkaError
from odradek.broker.log.core import batch_filter, replicated, validation
from odradek.broker.log.core.check_budget import CheckBudget, TakesLong
from odradek.broker.log.core.replicated import split_into_runs
from odradek.broker.log.core.validation import BatchRules, RecordCheck, assign_offsets, check_records
from odradek.broker.log.files import scan
from odradek.native.load import compiled
from odradek.protocol import record_batch, record_walk, records
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import (
    CRC_AT,
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    assign,
    build_batch,
    read_header,
)
from odradek.protocol.record_walk import RecordSpan, count_records, walk_records
from odradek.protocol.records import Record, read_plain_records

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")

NOW = 1_700_000_000_000
DEFAULT_INPUTS, SOAK_INPUTS = 1000, 1_000_000
DAMAGES = 6
CALLERS = (record_batch, record_walk, records, validation, batch_filter, replicated, scan)
RULES = [
    BatchRules(),
    BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
    BatchRules(max_message_bytes=700, timestamp_after_max_ms=2**63 - 1),
    BatchRules(timestamp_after_max_ms=5, verify_records=RecordCheck.HEADER),
    BatchRules(compacted=True),
    BatchRules(verify_records=RecordCheck.FIELDS),
    BatchRules(timestamp_before_max_ms=1000),
]


@contextmanager
def python_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in CALLERS:
            patch.setattr(module, "compiled", None)
        yield


def outcome(call: Callable[..., object], *arguments: object) -> object:
    try:
        return call(*arguments)
    except (KafkaError, TakesLong) as error:
        return type(error), getattr(error, "code", None), str(error)


def same(call: Callable[..., object], *arguments: object) -> object:
    """The outcome, which is the same in both ways: what was answered, or which error with which words."""
    found = outcome(call, *arguments)
    with python_only():
        assert outcome(call, *arguments) == found
    return found


class Batches:
    """Batches at random, by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def sound(self) -> bytearray:
        pick = self.random
        count = pick.choice((1, 1, 2, 3, 15, 70, 300))
        size = pick.choice((0, 3, 60, 140)) if count > 3 else pick.choice((0, 100, 9000, 70_000))
        is_wild = pick.random() < 0.2
        batch = build_batch(
            [self._record(offset, size, is_wild) for offset in range(count)],
            compression=pick.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4)),
            producer_id=pick.choice((-1, 7)),
            producer_epoch=0,
            base_sequence=pick.choice((0, 0, 2**31 - 2, -1)),
            transactional=pick.random() < 0.1,
            control=pick.random() < 0.02,
            log_append_time_ms=NOW if pick.random() < 0.05 else None,
        )
        return bytearray(batch)

    def _record(self, offset: int, size: int, is_wild: bool) -> Record:
        pick = self.random
        timestamp = NOW + pick.randrange(5)
        if is_wild and pick.random() < 0.2:
            timestamp = pick.choice((-1, NOW + 400, NOW - 9999, NOW + 4_000_000, 2**62, -(2**62)))
        value = None if pick.random() < 0.05 else bytes(size if pick.random() < 0.8 else pick.randrange(size + 1))
        headers = [("h" * pick.randrange(3), pick.choice((None, b"", b"v" * 100)))] * pick.choice((0, 0, 0, 1, 130))
        return Record(offset, timestamp, pick.choice((None, b"k", b"k" * 70)), value, headers if size < 100 else ())

    def damaged(self) -> bytearray:
        pick, batch = self.random, self.sound()
        for _ in range(pick.choice((0, 0, 1, 1, 1, 2, 3))):
            self._damage(batch)
        if len(batch) >= HEADER_SIZE and pick.random() < 0.7:
            batch[CRC_AT : CRC_AT + 4] = record_batch.crc32c(memoryview(batch)[CRC_AT + 4 :]).to_bytes(4, "big")
        return batch

    def _damage(self, batch: bytearray) -> None:
        pick = self.random
        at = pick.randrange(pick.choice((HEADER_SIZE, HEADER_SIZE + 20, len(batch))) % len(batch) or 1)
        match pick.randrange(DAMAGES):
            case 0:
                batch[at] ^= 1 << pick.randrange(8)
            case 1:
                batch[at] = pick.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del batch[pick.randrange(len(batch)) + 1 :]
            case 3:
                batch[at : at + 1] = bytes((batch[at] | 0x80, 0))  # a number written longer than it need be
            case 4:
                batch += pick.randbytes(pick.randrange(90))
            case 5:
                at = pick.choice((0, 8, 21, 23, 27, 35, 43, 51, 53, 57))
                batch[at : at + 4] = pick.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\1"))
        if pick.random() < 0.5 and len(batch) > HEADER_SIZE:
            batch[8:12] = (len(batch) - 12).to_bytes(4, "big")


def check_one(batch: bytearray, rules: BatchRules, steps: int, is_quick: bool) -> object:
    budget = CheckBudget(is_quick=is_quick)
    budget.left = min(budget.left, steps)
    data = bytearray(batch)
    checked = check_records(memoryview(data), rules=rules, now_ms=NOW, budget=budget)
    placed = assign_offsets(checked, next_offset=2**40, leader_epoch=3)
    return checked, placed, data, budget.left


def lengths_followed(payload: bytes, count: int) -> int:
    paid: list[int] = []
    count_records(memoryview(payload), count, paid.append)
    return sum(paid)


def fields_followed(payload: bytes, count: int) -> tuple[RecordSpan, int]:
    paid: list[int] = []
    span = walk_records(payload, count, paid.append)
    return span, sum(paid)


def spans_of(payload: bytes, count: int) -> list[batch_filter.Span]:
    return list(batch_filter.spans(payload, count))


def records_of(payload: bytes, header: BatchHeader) -> list[Record]:
    return list(read_plain_records(payload, header))


def compare(seed: int, inputs: int) -> dict[str, int]:
    """Numbers of inputs that were taken, and refused."""
    made, taken = Batches(seed), {"taken": 0, "refused": 0}
    header = read_header(build_batch([Record(0, NOW, None, None)]))._replace(base_offset=2**40)
    pick = made.random
    for _ in range(inputs):
        batch, rules = made.damaged(), pick.choice(RULES)
        steps, is_quick = pick.choice((10**8, 10**8, 10**8, 2000, 700, 500)), pick.random() < 0.5
        at = pick.choice((0, 0, 1, -1, len(batch)))
        found = same(check_one, batch, rules, steps, is_quick)
        taken["refused" if isinstance(found, tuple) and isinstance(found[0], type) else "taken"] += 1
        same(read_header, batch, at)
        payload, count = bytes(batch[HEADER_SIZE:]), int.from_bytes(batch[57:61] or b"\0", "big")
        same(lengths_followed, payload, count % 1000)
        same(fields_followed, payload, count % 1000)
        same(spans_of, payload, count % 1000)
        same(records_of, payload, header._replace(record_count=count % 1000))
    return taken


def test_the_twins_agree_about_produced_batches() -> None:
    taken = compare(1, DEFAULT_INPUTS)
    assert min(taken.values()) > DEFAULT_INPUTS / 10, "neither kind is rare"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_twins_agree_about_a_million_batches() -> None:
    assert min(compare(random.randrange(2**32), SOAK_INPUTS).values()) > SOAK_INPUTS / 10


def log_of(made: Batches, batches: int) -> bytearray:
    """Batches one after another, offsets rising, and now and then one that is damaged."""
    log, offset = bytearray(), 100
    for _ in range(batches):
        batch = made.sound()
        assign(batch, 0, offset, made.random.choice((3, 3, 4)))
        offset += read_header(batch).last_offset_delta + 1 + made.random.choice((0, 0, 0, 2))
        log += made.damaged() if made.random.random() < 0.02 else batch
    return log[: len(log) - made.random.choice((0, 0, 1, 30, 70))]


def scanned(file: int, size: int) -> list[tuple[int, BatchHeader]]:
    return list(scan.checked_batches(file, size))


def test_the_twins_agree_about_fetched_batches_and_files(tmp_path: Path) -> None:
    made, path, sound = Batches(2), tmp_path / "log", 0
    for _ in range(DEFAULT_INPUTS // 20):
        log = log_of(made, made.random.choice((1, 5, 20)))
        found = same(split_into_runs, memoryview(log), 100, 10_000)
        sound += isinstance(found, list)
        path.write_bytes(log)
        with path.open("rb") as file:
            same(scanned, file.fileno(), len(log))
    assert sound


def test_a_batch_within_the_rules_costs_no_python() -> None:
    """The usual batch is answered for by the compiled loop, not by its twin."""
    batch = memoryview(bytearray(build_batch([Record(n, NOW, None, b"value") for n in range(50)])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "count_records", None)
        patch.setattr(validation, "check_crc", None)
        rules = replace(BatchRules(), max_message_bytes=len(batch))
        assert len(check_records(batch, rules=rules, now_ms=NOW).batches) == 1
