"""Deletion of a topic: marked under /admin/delete_topics, its replicas delete their logs, its znodes are deleted last.

A topic waits (`ineligible_for_deletion`) while one of its replicas is down; `resume_for` is called when it is back. The
mark in ZooKeeper is deleted together with the last node, so a new controller finds a deletion that its predecessor
didn't finish and sends the requests again; deleting a replica twice succeeds. Only the event thread makes these
decisions.
"""

from collections.abc import Iterable, Set

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState
from odradek.broker.controller.core.effects import (
    Decision,
    DeleteTopicNodes,
    DropDeletionMarks,
    ReadTopics,
    ReadTopicsToDelete,
    Report,
    Schedule,
    Watch,
)
from odradek.broker.controller.core.events import StopReplicaAnswered, TopicDeletionAsked
from odradek.broker.controller.core.partition_state_machine import move_partitions
from odradek.broker.controller.core.reassignment_node import remove_from_node
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.broker.zk.znodes import DeletedTopic
from odradek.model.topology import PartitionReplica

LOOK_AGAIN_MS = 200


def deletion_asked(context: ControllerContext, event: TopicDeletionAsked) -> Decision[None]:
    yield Watch(children=(DeletedTopic.parent,))
    marked: set[str] = yield ReadTopicsToDelete()
    unknown = marked - context.topics.keys()
    if unknown:
        yield from _drop_marks_of_nothing(unknown)
    known = marked - unknown
    if not context.delete_topic_enabled:
        if known:
            yield Report(f"topics {_names(known)} stay: delete.topic.enable is false")
            yield DropDeletionMarks(tuple(sorted(known)))
        return
    yield from enqueue_deletions(context, known - context.to_delete)


def _drop_marks_of_nothing(unknown: Set[str]) -> Decision[None]:
    """If a topic was created so recently that its own event is still queued, its mark is read again later."""
    created: dict[str, object] = yield ReadTopics(frozenset(unknown))
    nothing = sorted(unknown - created.keys())
    if nothing:
        yield Report(f"asked to delete topics that don't exist: {_names(nothing)}")
        yield DropDeletionMarks(tuple(nothing))
    if created:
        yield Schedule(TopicDeletionAsked(), LOOK_AGAIN_MS)


def enqueue_deletions(context: ControllerContext, topics: Iterable[str]) -> Decision[None]:
    """Start the deletion of topics. Their reassignments are dropped: old and new replicas are deleted."""
    context.to_delete.update(topics)
    moving = [tp for tp in sorted(context.reassigning) if context.is_being_deleted(tp.topic)]
    context.reassigning.difference_update(moving)
    yield from remove_from_node(context, dict.fromkeys(moving))
    yield from resume_deletions(context)


def resume_for(context: ControllerContext, topics: Iterable[str]) -> Decision[None]:
    """Resume the deletion of these topics: brokers are back."""
    waited = context.to_delete.intersection(topics)
    if waited:
        context.ineligible_for_deletion -= waited
        yield from resume_deletions(context)


def mark_ineligible(context: ControllerContext, topics: Iterable[str], why: str) -> Decision[None]:
    """Mark those of the topics that are being deleted as waiting."""
    halted = context.to_delete.intersection(topics) - context.ineligible_for_deletion
    if halted:
        context.ineligible_for_deletion |= halted
        yield Report(f"deletion of {_names(halted)} waits: {why}", "info")


def fail_deletions(context: ControllerContext, replicas: Iterable[PartitionReplica]) -> Decision[None]:
    """Suspend the deletion: the broker or directory of these replicas has failed, or the broker answered an error."""
    failed = [
        replica
        for replica in replicas
        if context.is_being_deleted(replica.partition.topic)
        and context.replica_state(replica) not in _HAVE_NOTHING_TO_FAIL
    ]
    if not failed:
        return
    not_asked_yet = [replica for replica in failed if context.replica_state(replica) in _NOT_ASKED_YET]
    if not_asked_yet:
        yield from move_replicas(context, not_asked_yet, ReplicaState.OFFLINE)
    yield from move_replicas(context, failed, ReplicaState.DELETION_INELIGIBLE)
    yield from mark_ineligible(context, {r.partition.topic for r in failed}, "replicas can't be deleted now")


_NOT_ASKED_YET = frozenset({ReplicaState.NEW, ReplicaState.ONLINE})
_HAVE_NOTHING_TO_FAIL = frozenset(
    {ReplicaState.NON_EXISTENT, ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_INELIGIBLE}
)


def replicas_answered(context: ControllerContext, event: StopReplicaAnswered) -> Decision[None]:
    """Handle the answers of deleted replicas; replicas that a reassignment removed come here too and change nothing."""
    failed: list[PartitionReplica] = []
    deleted: list[PartitionReplica] = []
    for tp, error in event.errors.items():
        replica = PartitionReplica(tp, event.broker_id)
        if context.replica_state(replica) is ReplicaState.DELETION_STARTED:
            (deleted if error == ErrorCode.NONE else failed).append(replica)
    yield from fail_deletions(context, failed)
    if deleted:
        yield from move_replicas(context, deleted, ReplicaState.DELETION_SUCCESSFUL)
        yield from resume_deletions(context)


def resume_deletions(context: ControllerContext) -> Decision[None]:
    """Finish topics whose replicas are all deleted, and start the deletion of the ones that may go now."""
    if not context.delete_topic_enabled:
        return
    begin = []
    for topic in sorted(context.to_delete & context.topics.keys()):
        states = {context.replica_state(replica) for replica in _replicas(context, topic)}
        if states <= {ReplicaState.DELETION_SUCCESSFUL}:
            yield from _forget(context, topic)
        elif topic not in context.ineligible_for_deletion and ReplicaState.DELETION_STARTED not in states:
            begin.append(topic)
    if begin:
        yield from _delete_replicas(context, begin)


def _forget(context: ControllerContext, topic: str) -> Decision[None]:
    yield from move_replicas(context, _replicas(context, topic), ReplicaState.NON_EXISTENT)
    yield DeleteTopicNodes(topic)
    context.forget_topic(topic)


def _delete_replicas(context: ControllerContext, topics: list[str]) -> Decision[None]:
    yield from _take_leaders_away(context, [topic for topic in topics if topic not in context.deletion_begun])
    batch = RequestBatch(context)
    batch.add_update_metadata(context.brokers, [tp for topic in topics for tp in context.partitions_of(topic)])
    yield from batch.flush()

    alive: list[PartitionReplica] = []
    dead: list[PartitionReplica] = []
    for replica in (replica for topic in topics for replica in _replicas(context, topic)):
        if context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
            (alive if context.is_online(replica) else dead).append(replica)
    yield from fail_deletions(context, dead)
    yield from mark_ineligible(context, {r.partition.topic for r in dead}, "replicas are offline")
    if alive:
        yield from move_replicas(context, alive, ReplicaState.OFFLINE)
        yield from move_replicas(context, alive, ReplicaState.DELETION_STARTED)


def _take_leaders_away(context: ControllerContext, topics: list[str]) -> Decision[None]:
    partitions = [tp for topic in topics for tp in context.partitions_of(topic)]
    if partitions:
        yield from move_partitions(context, partitions, PartitionState.OFFLINE)
        yield from move_partitions(context, partitions, PartitionState.NON_EXISTENT)
    context.deletion_begun.update(topics)


def _replicas(context: ControllerContext, topic: str) -> list[PartitionReplica]:
    return context.replicas_of(context.partitions_of(topic))


def _names(topics: Iterable[str]) -> str:
    return ", ".join(sorted(topics))
