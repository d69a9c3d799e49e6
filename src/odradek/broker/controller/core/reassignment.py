"""Requests for reassignments, and their answers; `reassignment_steps` carries them out.

AlterPartitionReassignments, and the node that older tools write, request them; a new controller, and the start of a
broker, resume them; ISR changes complete them. Only the event thread makes these decisions.
"""

from collections.abc import Iterable

from odradek.base.errors import KafkaError
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Answer, Decision, ReadPartitionStates, Report
from odradek.broker.controller.core.events import ReassignmentNodeWritten, ReassignmentsAsked, ReassignmentsListed
from odradek.broker.controller.core.reassignment_checks import (
    loses_records,
    malformed,
    reassigned_to,
    refusal,
    unknown_partition,
)
from odradek.broker.controller.core.reassignment_node import read_node, remove_from_node
from odradek.broker.controller.core.reassignment_steps import advance, begin, complete_ready
from odradek.broker.zk.znodes import Reassignments
from odradek.model.topology import ReplicaAssignment, TopicPartition


def asked(context: ControllerContext, event: ReassignmentsAsked) -> Decision[None]:
    """Handle a request. The latest one counts: it also removes the partition from the node that older tools write."""
    replaced = tuple(tp for tp in event.wanted if tp in context.reassigning)
    if replaced:  # whether its new replicas may be dropped depends on the present ISR
        context.states.update((yield ReadPartitionStates(replaced)))
    results: dict[TopicPartition, KafkaError | None] = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, target in event.wanted.items():
        error = results[tp] = refusal(context, tp, target)
        if error is None:
            current = context.assignment(tp)
            wanted[tp] = reassigned_to(current, current.original if target is None else target)
    yield from remove_from_node(context, dict.fromkeys(wanted))
    results.update((yield from begin(context, wanted)))
    yield Answer(event.answer, results)


def listed(context: ControllerContext, event: ReassignmentsListed) -> Decision[None]:
    among = context.reassigning if event.partitions is None else context.reassigning & event.partitions
    found = {tp: context.assignment(tp) for tp in sorted(among)}
    yield Answer(event.answer, {tp: assignment for tp, assignment in found.items() if assignment.is_reassigning})


def node_written(context: ControllerContext, event: ReassignmentNodeWritten) -> Decision[None]:
    yield from _apply_node(context)


def resume(context: ControllerContext) -> Decision[None]:
    """Resume after a failover: start the moves written to the node in the meantime, and continue the others."""
    begun = yield from _apply_node(context)
    yield from advance(context, sorted(context.reassigning - begun))


def restart_for(context: ControllerContext, brokers: Iterable[int]) -> Decision[None]:
    """Continue the reassignments to brokers that have started."""
    came = frozenset(brokers)
    concerned = [tp for tp in sorted(context.reassigning) if not came.isdisjoint(context.assignment(tp).target)]
    yield from advance(context, concerned)


def maybe_complete(context: ControllerContext, tps: Iterable[TopicPartition]) -> Decision[None]:
    """Complete the reassignments that waited for a change of the ISR."""
    yield from complete_ready(context, sorted(context.reassigning.intersection(tps)))


def _apply_node(context: ControllerContext) -> Decision[set[TopicPartition]]:
    """→ the partitions whose reassignment began just now. The node wakes us also when we have shortened it."""
    targets = yield from read_node(context)
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    refused: dict[TopicPartition, None] = {}
    for tp, target in sorted(targets.items()):
        assignment = reassigned_to(context.assignment(tp), target)
        error = malformed(target) or unknown_partition(context, tp) or loses_records(context, tp, assignment)
        if error is not None:
            yield Report(f"{Reassignments.path}: {tp} isn't moved: {error.message}")
            refused[tp] = None
        elif tp not in context.reassigning or assignment != context.assignment(tp):
            wanted[tp] = assignment
    yield from remove_from_node(context, refused)
    errors = yield from begin(context, wanted)
    yield from remove_from_node(context, dict.fromkeys(errors))
    return wanted.keys() - errors.keys()
