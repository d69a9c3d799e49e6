"""Cost and risk of a plan, and plans in files: read and written as Kafka's tool does, checked as a whole."""

import json

import pytest
from planned_clusters import MB, a_view

from odradek.apps.reassign.core.checks import problems_of
from odradek.apps.reassign.core.forecast import foresee
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.apps.reassign.risks import Severity
from odradek.model.topology import TopicPartition

ORDERS = [TopicPartition("orders", number) for number in range(4)]


def test_leaders_send_newcomers_receive_and_the_busiest_decides() -> None:
    view = a_view((0, 1), (1, 0), brokers=3, sizes=(30 * MB, 10 * MB))
    forecast = foresee(Plan({ORDERS[0]: (0, 2), ORDERS[1]: (2, 1)}), view, 10 * MB)
    assert {b.broker: (b.bytes_in, b.bytes_out) for b in forecast.brokers} == {
        0: (0, 30 * MB),
        1: (0, 10 * MB),
        2: (40 * MB, 0),
    }
    assert (forecast.copied_bytes, forecast.seconds) == (40 * MB, 4.0)
    assert {b.broker: (b.held_before, b.held_after) for b in forecast.brokers}[0] == (40 * MB, 30 * MB)


def test_a_change_of_order_copies_nothing() -> None:
    forecast = foresee(Plan({ORDERS[0]: (1, 0)}), a_view((0, 1)), MB)
    assert (forecast.copied_bytes, forecast.seconds, len(forecast.moves)) == (0, 0.0, 1)


def test_what_is_so_already_is_no_move() -> None:
    assert foresee(Plan({ORDERS[0]: (0, 1)}), a_view((0, 1)), None).moves == ()


def risks(view: ClusterView, **targets: tuple[int, ...]) -> dict[Severity, str]:
    plan = Plan({TopicPartition("orders", int(name[1:])): replicas for name, replicas in targets.items()})
    return {risk.severity: risk.text for risk in foresee(plan, view, None).risks}


def test_a_disk_without_room_is_a_danger_and_a_full_one_a_warning() -> None:
    partitions = {ORDERS[0]: PartitionView((0,), 0, (0,), 50 * MB)}
    for usable, severity in ((40, Severity.DANGER), (60, Severity.WARNING)):
        brokers = {0: BrokerView(0), 1: BrokerView(1, None, 100 * MB, usable * MB)}
        assert "disk" in risks(ClusterView(brokers, partitions), p0=(0, 1))[severity]
    brokers = {0: BrokerView(0), 1: BrokerView(1, None, 1000 * MB, 900 * MB)}
    assert risks(ClusterView(brokers, partitions), p0=(0, 1)) == {}


def all_risks(before: tuple[int, ...], after: tuple[int, ...], min_isr: int) -> list[str]:
    view = a_view(before)
    view = ClusterView(view.brokers, view.partitions, {"orders": min_isr})
    return [f"{risk.severity}: {risk.text}" for risk in foresee(Plan({ORDERS[0]: after}), view, None).risks]


FEWER_COPIES = "warning: orders-0: {} instead of {}, fewer copies of each record"
ONE_REPLICA = (
    "warning: orders-0: one replica; while its broker is down the partition is offline, and if its disk is lost the "
    "records are"
)
AT_MINIMUM = (
    "warning: orders-0: no more replicas than min.insync.replicas=2; while one of their brokers is down, in a rolling "
    "restart too, writes with acks=all are refused"
)
BELOW_MINIMUM = (
    "danger: orders-0: fewer replicas than min.insync.replicas=2, writes with acks=all are refused from then on"
)


@pytest.mark.parametrize(
    ("before", "after", "min_isr", "expected"),
    [
        ((0, 1, 2), (0, 1), 1, [FEWER_COPIES.format("2 replicas", 3)]),
        ((0, 1, 2), (0, 1), 2, [AT_MINIMUM, FEWER_COPIES.format("2 replicas", 3)]),
        ((0, 1, 2), (0,), 1, [FEWER_COPIES.format("1 replica", 3), ONE_REPLICA]),
        ((0, 1, 2), (0,), 2, [BELOW_MINIMUM, FEWER_COPIES.format("1 replica", 3), ONE_REPLICA]),
        ((0, 1), (1, 0), 2, []),
        ((0,), (0, 1), 2, [AT_MINIMUM]),
        ((0,), (0, 1), 1, []),
    ],
)
def test_risks_of_fewer_replicas(
    before: tuple[int, ...], after: tuple[int, ...], min_isr: int, expected: list[str]
) -> None:
    assert all_risks(before, after, min_isr) == expected


def test_removed_replicas_are_counted_with_the_bytes_that_they_free() -> None:
    view = a_view((0, 1, 2), (1, 2, 0), brokers=3, sizes=(30 * MB, 10 * MB))
    forecast = foresee(Plan({ORDERS[0]: (0, 1), ORDERS[1]: (1, 0)}), view, 10 * MB)
    assert (forecast.copied_replicas, forecast.copied_bytes, forecast.seconds) == (0, 0, 0.0)
    assert (forecast.removed_replicas, forecast.freed_bytes) == (2, 40 * MB)
    assert {b.broker: (b.replicas_removed, b.bytes_freed) for b in forecast.brokers} == {
        0: (0, 0),
        1: (0, 0),
        2: (2, 40 * MB),
    }


def test_who_is_out_of_sync_or_without_a_leader_is_told() -> None:
    brokers = {b: BrokerView(b) for b in range(3)}
    lagging = ClusterView(brokers, {ORDERS[0]: PartitionView((0, 1), 0, (0,))})
    assert "not fully in sync" in risks(lagging, p0=(0, 2))[Severity.WARNING]
    leaderless = ClusterView(brokers, {ORDERS[0]: PartitionView((0, 1), -1, (0,))})
    assert "no leader" in risks(leaderless, p0=(0, 2))[Severity.DANGER]


def test_a_shared_rack_is_noted() -> None:
    assert "one rack" in risks(a_view((0, 2), brokers=4, racks="xxyy"), p0=(0, 1))[Severity.NOTE]


# --- plans in files ----------------------------------------------------------------------------------------------


def test_a_plan_is_kafkas_json() -> None:
    plan = Plan({ORDERS[1]: (2, 0), ORDERS[0]: (0, 1)})
    assert plan.as_json() == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [0, 1]},
            {"topic": "orders", "partition": 1, "replicas": [2, 0]},
        ],
    }
    assert Plan.from_text(json.dumps(plan.as_json())) == plan


def test_directories_that_anybody_may_choose_are_taken() -> None:
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    assert Plan.from_text(json.dumps({"version": 1, "partitions": [entry]})).targets == {ORDERS[0]: (1, 2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "version 1"),
        ('{"version": 2, "partitions": []}', "version 1"),
        ('{"version": 1}', "no list"),
        ('{"version": 1, "partitions": [7]}', 'no "topic"'),
        ('{"partitions": [{"topic": "a", "partition": -1, "replicas": [1]}]}', 'no "topic"'),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "no list of replicas"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [true]}]}', "no list of replicas"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}', "two replicas on one broker"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/x"]}]}', "log directories"),
    ],
)
def test_what_is_no_plan_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.from_text(text)


def test_every_problem_is_found_before_anything_begins() -> None:
    view = a_view((0, 1), (1, 2), brokers=3)
    moving = PartitionView((0, 1), 0, (0, 1), is_moving=True)
    view = ClusterView(view.brokers, {**view.partitions, ORDERS[2]: moving, ORDERS[3]: PartitionView((0,), -1, ())})
    plan = Plan({ORDERS[0]: (0, 9), ORDERS[2]: (0, 2), ORDERS[3]: (1,), TopicPartition("nope", 0): (0,)})
    assert [problem.partition(" ")[0] for problem in problems_of(plan, view)] == [
        "orders-0",
        "orders-2",
        "orders-3",
        "nope-0",
    ]
    assert "the plan moves nothing" in problems_of(Plan({}), view)
    (problem,) = problems_of(Plan({ORDERS[1]: (2, 1)}), view)
    assert problem.startswith("orders-2 is under another reassignment")
    assert problems_of(Plan({ORDERS[1]: (2, 1)}), a_view((0, 1), (1, 2))) == []
