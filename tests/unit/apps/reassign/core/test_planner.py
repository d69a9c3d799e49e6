"""From goals to plans: what holds for every plan, and what single goals bring."""

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from planned_clusters import MB, a_view, views, views_and_goals

from odradek.apps.reassign.core.checks import problems_of
from odradek.apps.reassign.core.goal import Balance, Goal
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.planner import make_plan
from odradek.apps.reassign.core.view import ClusterView
from odradek.model.topology import TopicPartition

Assignment = dict[TopicPartition, tuple[int, ...]]


def after(view: ClusterView, plan: Plan) -> Assignment:
    return {tp: plan.targets.get(tp, partition.replicas) for tp, partition in view.partitions.items()}


def planned(view: ClusterView, goal: Goal) -> Assignment:
    return after(view, make_plan(view, goal))


def held(assignment: Assignment) -> Counter[int]:
    return Counter(broker for replicas in assignment.values() for broker in replicas)


def copies(view: ClusterView, plan: Plan) -> int:
    return sum(len(set(replicas) - set(view.partitions[tp].replicas)) for tp, replicas in plan.targets.items())


# --- whatever the goal -------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(views_and_goals())
def test_every_plan_reaches_its_goal_and_can_be_begun(case: tuple[ClusterView, Goal]) -> None:
    view, goal = case
    try:
        plan = make_plan(view, goal)
    except PlanError:
        assume(False)
    for tp, replicas in after(view, plan).items():
        before = view.partitions[tp].replicas
        assert replicas
        assert len(set(replicas)) == len(replicas)
        if goal.topics is not None and tp.topic not in goal.topics:
            assert replicas == before
            continue
        assert not goal.drain & set(replicas)
        assert goal.brokers is None or set(replicas) <= goal.brokers
        assert len(replicas) == (goal.replication_factor or len(before))
    assert not plan.targets or problems_of(plan, view) == []
    assert all(replicas != view.partitions[tp].replicas for tp, replicas in plan.targets.items())


@settings(max_examples=60)
@given(views_and_goals())
def test_a_goal_is_refused_only_where_too_few_brokers_are_left(case: tuple[ClusterView, Goal]) -> None:
    view, goal = case
    allowed = (view.brokers.keys() if goal.brokers is None else goal.brokers) - goal.drain
    selected = [p for tp, p in view.partitions.items() if goal.topics is None or tp.topic in goal.topics]
    needed = max(goal.replication_factor or len(partition.replicas) for partition in selected)
    if needed <= len(allowed):
        make_plan(view, goal)
    else:
        with pytest.raises(PlanError, match="may hold them"):
            make_plan(view, goal)


@settings(max_examples=60)
@given(views_and_goals())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(case: tuple[ClusterView, Goal]) -> None:
    view, goal = case
    assume(Balance.DISKS not in goal.balance or Balance.REPLICAS not in goal.balance)  # those two may disagree
    try:
        done = planned(view, goal)
    except PlanError:
        assume(False)
    reached = ClusterView(
        view.brokers,
        {
            tp: type(partition)(done[tp], done[tp][0], done[tp], partition.size_bytes)
            for tp, partition in view.partitions.items()
        },
    )
    assert copies(reached, make_plan(reached, goal)) == 0


@settings(max_examples=60)
@given(views_and_goals())
def test_no_newcomer_shares_a_rack_while_another_is_free(case: tuple[ClusterView, Goal]) -> None:
    view, goal = case
    assume(view.racks)
    try:
        plan = make_plan(view, goal)
    except PlanError:
        assume(False)
    racks = view.racks
    allowed = (view.brokers.keys() if goal.brokers is None else goal.brokers) - goal.drain
    for tp, replicas in plan.targets.items():
        before = view.partitions[tp].replicas
        stay = {racks[b] for b in before if b in allowed}
        used = {racks[b] for b in replicas}
        reachable = len({racks[b] for b in allowed})
        assert len(used) >= min(len(replicas), len(stay), reachable)
        if set(before).isdisjoint(allowed):
            assert len(used) == min(len(replicas), reachable)


@given(views())
def test_draining_copies_what_was_there_and_nothing_else(view: ClusterView) -> None:
    assume(len(view.brokers) > max(len(p.replicas) for p in view.partitions.values()))
    plan = make_plan(view, Goal(drain=frozenset({0})))
    assert held(after(view, plan))[0] == 0
    assert copies(view, plan) == held({tp: p.replicas for tp, p in view.partitions.items()})[0]


@given(views())
def test_balanced_replicas_differ_by_one_where_racks_allow(view: ClusterView) -> None:
    assume(not view.racks)
    counts = held(planned(view, Goal(balance=frozenset({Balance.REPLICAS}))))
    in_each = [counts[broker] for broker in view.brokers]
    assert max(in_each) - min(in_each) <= 1


@given(views())
def test_balancing_moves_no_more_than_is_too_much(view: ClusterView) -> None:
    assume(not view.racks)
    plan = make_plan(view, Goal(balance=frozenset({Balance.REPLICAS})))
    before = held({tp: p.replicas for tp, p in view.partitions.items()})
    mean = sum(before.values()) / len(view.brokers)
    assert copies(view, plan) <= sum(max(0, before[b] - int(mean)) for b in view.brokers)


@given(views())
def test_disks_never_get_less_equal(view: ClusterView) -> None:
    def gap(assignment: Assignment) -> int:
        sizes = Counter(dict.fromkeys(view.brokers, 0))
        for tp, replicas in assignment.items():
            sizes.update(dict.fromkeys(replicas, view.partitions[tp].size_bytes))
        return max(sizes.values()) - min(sizes.values())

    before = {tp: partition.replicas for tp, partition in view.partitions.items()}
    assert gap(planned(view, Goal(balance=frozenset({Balance.DISKS})))) <= gap(before)


@given(views())
def test_balancing_leaders_copies_nothing(view: ClusterView) -> None:
    plan = make_plan(view, Goal(balance=frozenset({Balance.LEADERS})))
    assert copies(view, plan) == 0
    assert all(set(r) == set(view.partitions[tp].replicas) for tp, r in plan.targets.items())


# --- single goals ------------------------------------------------------------------------------------------------


def test_a_new_broker_gets_its_share_and_nothing_moves_between_the_others() -> None:
    view = a_view((0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1), (0, 1), (1, 2), brokers=4)
    plan = make_plan(view, Goal(balance=frozenset({Balance.REPLICAS})))
    newcomers = [b for tp, r in plan.targets.items() for b in set(r) - set(view.partitions[tp].replicas)]
    assert newcomers == [3, 3, 3, 3]


def test_a_higher_replication_factor_keeps_leaders_and_fills_racks() -> None:
    view = a_view((0, 1), (1, 0), brokers=4, racks="xxyy")
    for tp, replicas in planned(view, Goal(replication_factor=3)).items():
        assert replicas[:2] == view.partitions[tp].replicas
        assert replicas[2] in (2, 3)


def test_a_lower_replication_factor_keeps_the_leader_and_the_racks() -> None:
    view = a_view((0, 1, 2), brokers=3, racks="xxy")
    assert planned(view, Goal(replication_factor=2)) == {TopicPartition("orders", 0): (0, 2)}


def test_racks_are_filled_where_wanted() -> None:
    view = a_view((0, 1), (2, 3), brokers=4, racks="xxyy")
    done = planned(view, Goal(balance=frozenset({Balance.RACKS})))
    assert all({view.racks[b] for b in replicas} == {"x", "y"} for replicas in done.values())
    assert [replicas[0] for replicas in done.values()] == [0, 2]


def test_leaders_go_round_about_where_there_is_no_straight_way() -> None:
    view = a_view((0, 1), (0, 1), (0, 1), (1, 2), brokers=3)
    done = planned(view, Goal(balance=frozenset({Balance.LEADERS})))
    assert sorted(Counter(replicas[0] for replicas in done.values()).values()) == [1, 1, 2]


def test_one_large_partition_is_worth_several_small_ones() -> None:
    view = a_view((0,), (0,), (0,), (0,), brokers=2, sizes=(30 * MB, 10 * MB, 10 * MB, 10 * MB))
    plan = make_plan(view, Goal(balance=frozenset({Balance.DISKS})))
    assert plan.targets == {TopicPartition("orders", 0): (1,)}


def test_a_dead_broker_keeps_what_it_has_unless_it_is_drained() -> None:
    view = a_view((0, 3), (1, 2), brokers=3)  # 3 is not there
    assert make_plan(view, Goal()).targets == {}
    assert planned(view, Goal(drain=frozenset({3})))[TopicPartition("orders", 0)][0] == 0


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal(topics=frozenset({"nope"})), "no topic nope"),
        (Goal(brokers=frozenset({0, 9})), "broker 9 is not in the cluster"),
        (Goal(drain=frozenset({9})), "broker 9 is not in the cluster and holds nothing"),
        (Goal(replication_factor=0), "1 or more"),
        (Goal(replication_factor=4), "orders-0 needs 4 replicas"),
        (Goal(drain=frozenset({0, 1, 2})), "may hold them"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_change(goal: Goal, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(a_view((0, 1)), goal)
