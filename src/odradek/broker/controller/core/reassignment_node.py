"""/admin/reassign_partitions, through which older tools ask for reassignments; shortened as they end.

Decisions of the event thread, used by the reassignment's own modules only.
"""

from collections.abc import Mapping
from typing import TypeAlias

from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Decision, ReadReassignmentNode, Watch, WriteReassignmentNode
from odradek.broker.zk.znodes import Reassignments
from odradek.model.topology import TopicPartition

Targets: TypeAlias = Mapping[TopicPartition, tuple[int, ...]]


def read_node(context: ControllerContext) -> Decision[Targets]:
    yield Watch(nodes=(Reassignments.path,))
    targets: Targets = yield ReadReassignmentNode()
    context.reassignments_from_node = set(targets)
    return targets


def strike(context: ControllerContext, struck: Mapping[TopicPartition, tuple[int, ...] | None]) -> Decision[None]:
    """Takes these partitions out. One that the node by now wants elsewhere than `struck` says stays; None: wherever."""
    if context.reassignments_from_node.isdisjoint(struck):
        return
    targets: Targets = yield ReadReassignmentNode()
    remaining = {tp: target for tp, target in targets.items() if tp not in struck or struck[tp] not in (None, target)}
    if len(remaining) < len(targets):
        yield WriteReassignmentNode(remaining)
    context.reassignments_from_node = set(remaining)
