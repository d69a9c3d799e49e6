"""Costs of the compiled inner loop and of its Python twins, in turns: `python tools/bench_inner_loop.py`.

Per call the least of many short rounds, in microseconds: the machine may be busy. The figures of
docs/decisions/0025-compiled-inner-loop.md come from here.
"""

import sys
from collections.abc import Callable
from time import perf_counter

from odradek.broker.log.core import batch_filter, validation
from odradek.broker.log.core.check_budget import CheckBudget
from odradek.broker.log.core.validation import BatchRules, assign_offsets, check_records
from odradek.native.load import compiled, description
from odradek.protocol import record_batch, record_walk, records
from odradek.protocol.codec import python_decoder
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import build_batch, read_header
from odradek.protocol.records import Record, read_plain_records

NOW = 1_700_000_000_000
ROUNDS, CALLS = 200, 20
CALLERS = (record_batch, record_walk, records, validation, batch_filter)
SHAPES = {"1 x 100 B": (1, 100), "15 x 1 KB": (15, 1024), "145 x 100 B": (145, 100)}


def least(call: Callable[[], object]) -> float:
    started = perf_counter()
    for _ in range(CALLS):
        call()
    return (perf_counter() - started) / CALLS * 1e6


def duel(name: str, python: Callable[[], object], native: Callable[[], object]) -> None:
    slow, fast = [], []
    for _ in range(ROUNDS):
        for module in CALLERS:
            module.compiled = None  # type: ignore[attr-defined]
        slow.append(least(python))
        for module in CALLERS:
            module.compiled = compiled  # type: ignore[attr-defined]
        fast.append(least(native))
    print(f"{name:42} {min(slow):8.2f} {min(fast):8.2f}  {min(fast) / min(slow):.2f}")


def main() -> None:
    if compiled is None:
        sys.exit(description())
    print(f"{'µs':42} {'python':>8} {'compiled':>8}")
    rules, budget = BatchRules(), CheckBudget(is_quick=True)
    for shape, (count, size) in SHAPES.items():
        made = [Record(n, NOW, b"key", bytes(size)) for n in range(count)]
        batch = memoryview(bytearray(build_batch(made, producer_id=7, producer_epoch=0, base_sequence=0)))
        budget.left = 1 << 60
        checked, header = check_records(batch, rules=rules, now_ms=NOW), read_header(batch)
        payload = bytes(batch[61:])

        def check(batch: memoryview = batch) -> object:
            return check_records(batch, rules=rules, now_ms=NOW, budget=budget)

        def read(payload: bytes = payload, header: record_batch.BatchHeader = header) -> object:
            return list(read_plain_records(payload, header))

        def filtered(payload: bytes = payload, count: int = count) -> object:
            return list(batch_filter.spans(payload, count))

        def place(checked: validation.CheckedRecords = checked) -> object:
            return assign_offsets(checked, next_offset=0, leader_epoch=0)

        duel(f"checks of a batch, {shape}", check, check)
        duel(f"its offsets, {shape}", place, place)
        duel(f"its records read, {shape}", read, read)
        duel(f"its records for compaction, {shape}", filtered, filtered)
    for partitions in (1, 5):
        data = [PartitionProduceData(index=n, records=bytes(16_000)) for n in range(partitions)]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
        body = memoryview(request.encode(9))
        slow, fast = python_decoder(ProduceRequest, 9), ProduceRequest.decoder(9)
        duel(f"Produce v9 decoded, {partitions} partitions", lambda: slow(body, 0), lambda: fast(body, 0))


if __name__ == "__main__":
    main()
