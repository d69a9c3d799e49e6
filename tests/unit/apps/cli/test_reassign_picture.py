"""A plan's picture: everything in it, and in eighty columns."""

import pytest

from odradek.apps.cli.reassign_picture import print_forecast
from odradek.apps.reassign.core.forecast import foresee
from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.model.topology import TopicPartition

MB = 1 << 20


def test_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    tp = TopicPartition("orders", 0)
    view = ClusterView(
        {b: BrokerView(b, f"rack-{b}", 1000 * MB, 5 * MB) for b in range(3)},
        {tp: PartitionView((0, 1), 0, (0, 1), 300 * MB)},
    )
    print_forecast(foresee(Plan({tp: (2, 1)}), view, 10 * MB), 10 * MB)
    shown = capsys.readouterr().out
    lines = [line.rstrip() for line in shown.splitlines()]
    assert "1 partition changes, 1 replica is copied, 300 MB; at 10.0 MB/s for each broker at least 30 s" in lines
    assert "1 replica is removed, 300 MB freed at the end: 1 on broker 0 (300 MB)" in lines
    assert any(line.split() == ["orders-0", "-", "●", "+★", "0,1", "2,1", "300", "MB"] for line in lines)
    assert any("2 (rack-2)" in line and "█" in line and "0 B → 300 MB" in line for line in lines)
    assert "danger: broker 2 has no room: its disk will be full before the end" in lines
    assert all(len(line) <= 80 for line in lines if "█" in line or "─" in line)


def test_nothing_to_do_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_forecast(foresee(Plan({}), ClusterView({}, {}), None), None)
    assert capsys.readouterr().out == "nothing to move: the goal is reached already\n"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (
            (1, 0),
            [
                "1 partition changes, no replica is copied",
                "1 replica is removed, 3.0 MB freed at the end: 1 on broker 2 (3.0 MB)",
            ],
        ),
        ((1, 0, 2), ["1 partition changes, only in the order of replicas: nothing is copied or removed"]),
    ],
)
def test_a_plan_that_copies_nothing_says_what_it_does(
    after: tuple[int, ...], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    tp = TopicPartition("orders", 0)
    partitions = {tp: PartitionView((0, 1, 2), 0, (0, 1, 2), 3 * MB)}
    view = ClusterView({b: BrokerView(b) for b in range(3)}, partitions, {"orders": 2})
    print_forecast(foresee(Plan({tp: after}), view, MB), MB)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[: len(expected)] == expected
    assert any(line.startswith("warning: orders-0: no more replicas than min.insync.replicas=2") for line in lines) == (
        len(after) == 2
    )
    assert all(len(line) <= 80 for line in lines if "─" in line)
