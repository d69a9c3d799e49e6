"""Planner: makes a plan for a goal. Pure.

1. Replicas leave forbidden brokers, and missing replicas are added: on the least loaded broker, if possible in a new
rack for the partition. 2. Where balance is wanted, replicas move from the fullest broker to the emptiest, one at a
time, as long as that makes
   them more equal (`balancing`).
3. Leaders: replicas that stay keep their order, so that a preferred leader that stays is preferred still; the others
   are ordered so that preferred leaders spread. With the goal `leaders`, all are.

Never two replicas of a partition on one broker. A partition never loses a rack that it could keep. Other replicas stay.
"""

from collections.abc import Collection, Iterable

from odradek.apps.reassign.core.balancing import balance_disks, balance_leaders, balance_replicas
from odradek.apps.reassign.core.goal import Balance, Goal
from odradek.apps.reassign.core.layout import Layout
from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.view import ClusterView, PartitionView
from odradek.model.topology import TopicPartition


def make_plan(view: ClusterView, goal: Goal) -> Plan:
    """Plan of the changes; empty if the goal is reached already. PlanError: it can't be reached."""
    selected = _selected(view, goal)
    _check_brokers(view, goal)
    layout = Layout(view, _may_stay(view, goal), _may_receive(view, goal), selected)
    for tp, partition in selected.items():
        _meet_needs(layout, tp, partition, goal)
    if Balance.RACKS in goal.balance:
        for tp in selected:
            layout.spread_over_racks(tp)
    if Balance.REPLICAS in goal.balance:
        balance_replicas(layout)
    if Balance.DISKS in goal.balance:
        balance_disks(layout)
    layout.settle_leaders()
    if Balance.LEADERS in goal.balance:
        balance_leaders(layout)
    return Plan({tp: after for tp, after in layout.replicas.items() if after != selected[tp].replicas})


def _selected(view: ClusterView, goal: Goal) -> dict[TopicPartition, PartitionView]:
    known = {tp.topic for tp in view.partitions}
    unknown = (goal.topics or frozenset()) - known
    if unknown:
        raise PlanError(f"there is no topic {_listed(unknown)}; see which there are with: odradek topics list")
    selected = {
        tp: partition
        for tp, partition in sorted(view.partitions.items())
        if goal.topics is None or tp.topic in goal.topics
    }
    moving = [tp for tp, partition in selected.items() if partition.is_moving]
    if moving:
        raise PlanError(
            f"{_listed(moving)} is being moved already: wait for it, or stop it with: odradek reassign cancel"
        )
    return selected


def _check_brokers(view: ClusterView, goal: Goal) -> None:
    dead = (goal.brokers or frozenset()) - goal.drain - view.brokers.keys()
    if dead:
        raise PlanError(f"broker {_listed(dead)} is not in the cluster; live are {_listed(view.brokers)}")
    holders = {broker for partition in view.partitions.values() for broker in partition.replicas}
    unknown = goal.drain - view.brokers.keys() - holders
    if unknown:
        raise PlanError(f"broker {_listed(unknown)} is not in the cluster and holds nothing")
    if goal.replication_factor is not None and goal.replication_factor < 1:
        raise PlanError("a replication factor is 1 or more")


def _may_stay(view: ClusterView, goal: Goal) -> frozenset[int]:
    """A dead broker keeps its replicas unless it is to be removed: it may come back."""
    holders = {broker for partition in view.partitions.values() for broker in partition.replicas}
    return (goal.brokers if goal.brokers is not None else frozenset(holders | view.brokers.keys())) - goal.drain


def _may_receive(view: ClusterView, goal: Goal) -> frozenset[int]:
    return _may_stay(view, goal) & view.brokers.keys()


def _meet_needs(layout: Layout, tp: TopicPartition, partition: PartitionView, goal: Goal) -> None:
    wanted = goal.replication_factor or len(partition.replicas)
    for broker in partition.replicas:
        if broker not in layout.may_stay:
            layout.remove(tp, broker)
    while len(layout.replicas[tp]) > wanted:
        layout.remove(tp, layout.most_dispensable(tp, keep=partition.leader))
    while len(layout.replicas[tp]) < wanted:
        newcomer = layout.best_newcomer(tp)
        if newcomer is None:
            raise PlanError(
                f"{tp} needs {wanted} replicas, but only {_brokers(layout.may_receive)} may hold them: "
                "allow more brokers, or give a lower --replication-factor"
            )
        layout.add(tp, newcomer)


def _brokers(ids: Collection[int]) -> str:
    return f"broker{'s' * (len(ids) != 1)} {_listed(ids)}"


def _listed(things: Iterable[object]) -> str:
    shown = [str(thing) for thing in sorted(things, key=str)]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
