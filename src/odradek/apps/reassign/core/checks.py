"""Checks of a plan before anything is changed. Pure."""

from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.view import ClusterView


def problems_of(plan: Plan, view: ClusterView) -> list[str]:
    """Return every fault of the plan, for people; an empty list lets it begin."""
    problems: list[str] = []
    if not plan.targets:
        problems.append("the plan moves nothing")
    for tp, replicas in plan.targets.items():
        partition = view.partitions.get(tp)
        if partition is None:
            problems.append(f"{tp} does not exist")
            continue
        dead = [broker for broker in replicas if broker not in view.brokers and broker not in partition.replicas]
        if dead:
            problems.append(f"{tp} is planned for broker {', '.join(map(str, dead))}, which is not in the cluster")
        if partition.is_moving:
            problems.append(f"{tp} is being moved already; see odradek reassign status")
        if partition.leader < 0 and set(replicas) != set(partition.replicas):
            problems.append(f"{tp} has no leader to copy from")
    others = sorted(tp for tp, partition in view.partitions.items() if partition.is_moving and tp not in plan.targets)
    if others:  # their throttles and ours would be mixed up, and one of the two left behind
        shown = ", ".join(map(str, others[:3]))
        problems.append(f"{shown} is under another reassignment: wait for it, or see odradek reassign list")
    return problems
