"""Automatic preferred leader election, for brokers that have lost too many of their preferred leaders.

A decision of the event thread alone.
"""

from collections.abc import Iterator

from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Decision, Schedule
from odradek.broker.controller.core.events import RebalanceDue
from odradek.broker.controller.core.leader_elections import elect_preferred
from odradek.model.topology import PartitionReplica, TopicPartition


def rebalance_due(context: ControllerContext, event: RebalanceDue) -> Decision[None]:
    if not context.auto_leader_rebalance:
        return
    yield from elect_preferred(context, sorted(_strayed_too_far(context)))
    yield Schedule(RebalanceDue(), context.imbalance_check_interval_ms)


def _strayed_too_far(context: ControllerContext) -> Iterator[TopicPartition]:
    """Yield the partitions that can return to their preferred leader now, of each broker that has lost more than
    `leader.imbalance.per.broker.percentage` of its preferred leaders.
    """
    preferred: dict[int, list[TopicPartition]] = {}
    for tp in context.all_partitions():
        replicas = context.assignment(tp).replicas
        if replicas and not context.is_being_deleted(tp.topic):
            preferred.setdefault(replicas[0], []).append(tp)
    for broker, tps in preferred.items():
        strayed = [tp for tp in tps if tp in context.states and context.states[tp].leader != broker]
        if len(strayed) * 100 > context.imbalance_percentage_max * len(tps):
            yield from (tp for tp in strayed if _can_come_back(context, tp, broker))


def _can_come_back(context: ControllerContext, tp: TopicPartition, broker: int) -> bool:
    return broker in context.states[tp].isr and context.is_online(PartitionReplica(tp, broker))
