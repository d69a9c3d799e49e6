"""The frames that cost the most CPU, searched for and measured. Started by `make soak`: it prints what it found.

What must hold on every machine is counted elsewhere (`test_decoding_budget`, `test_check_budget`). Here it is compared
with a plain request that is measured beside: a step may not cost much more in one frame than in another.
"""

import gc
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
from cost_search import FRAME_BYTES_MAX, Cost, CostSearch, Yardstick, body_of, decode_ns, scaled, steps_of
from record_adversary import NOW, costly_batches

from odradek.base.errors import KafkaError
from odradek.broker.log.core.check_budget import CHECK_STEPS_MAX, CheckBudget
from odradek.broker.log.core.validation import BatchRules, check_records
from odradek.broker.main import COLLECTOR_THRESHOLDS
from odradek.protocol.decoding_steps import STEPS_MAX

DEARER_MAX = 2
# What a produce request can name within its steps.
PARTITIONS_MAX = 23_000

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture(autouse=True)
def _as_in_the_broker() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    yield
    gc.set_threshold(*before)


def test_frames(capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.randrange(1 << 30)
    worst = CostSearch(seed).run(rounds=1000, kept=20)
    yardstick = Yardstick()
    lines = [_frame_line(cost, yardstick) for cost in worst]
    with capsys.disabled():
        print(f"\nseed {seed}; a plain step takes {yardstick.undisturbed_step_ns:.1f} ns")  # noqa: T201
        print("CPU s   ns/byte  steps       bytes        frame", *sorted(lines, reverse=True), sep="\n")  # noqa: T201
    for cost in worst:
        assert cost.per_step < DEARER_MAX, cost


def _frame_line(cost: Cost, yardstick: Yardstick) -> str:
    shape = scaled(cost)
    body, steps = body_of(shape), steps_of(shape)
    assert len(body) <= FRAME_BYTES_MAX
    assert steps <= STEPS_MAX
    spent = min(yardstick.undisturbed_s(partial(decode_ns, shape, body)) for _ in range(3))
    return f"{spent:5.3f}  {spent * 1e9 / len(body):8.1f}  {steps:10,}  {len(body):11,}  {shape}"


def test_records(capsys: pytest.CaptureFixture[str]) -> None:
    """A request full of each kind of batch."""
    yardstick = Yardstick()
    lines = [_batch_line(name, batch, rules, yardstick) for name, batch, rules in costly_batches()]
    with capsys.disabled():
        print("\nCPU s   ns/byte  steps       batches      batch", *sorted(lines, reverse=True), sep="\n")  # noqa: T201


def _batch_line(name: str, batch: bytes, rules: BatchRules, yardstick: Yardstick) -> str:
    times = min(FRAME_BYTES_MAX // len(batch), PARTITIONS_MAX)
    budget = CheckBudget(is_quick=False)
    records = memoryview(bytearray(batch))
    codes: Counter[str] = Counter()

    def check_all() -> None:
        for _ in range(times):
            try:
                check_records(records, rules=rules, now_ms=NOW, budget=budget)
                codes["NONE"] += 1
            except KafkaError as error:
                codes[error.code.name] += 1

    spent = yardstick.undisturbed_s(check_all)
    steps = CHECK_STEPS_MAX - max(budget.left, 0)
    per_byte = spent * 1e9 / (times * len(batch))
    return f"{spent:5.3f}  {per_byte:8.1f}  {steps:10,}  {times:11,}  {name} of {len(batch):,} bytes: {dict(codes)}"
