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


def remove_from_node(
    context: ControllerContext, removed: Mapping[TopicPartition, tuple[int, ...] | None]
) -> Decision[None]:
    """Remove these partitions, unless the node names another target by now than the one given; None: any target."""
    if context.reassignments_from_node.isdisjoint(removed):
        return
    targets: Targets = yield ReadReassignmentNode()
    remaining = {tp: target for tp, target in targets.items() if tp not in removed or removed[tp] not in (None, target)}
    if len(remaining) < len(targets):
        yield WriteReassignmentNode(remaining)
    context.reassignments_from_node = set(remaining)
