"""Elections on request: ElectLeaders, and the node that older tools write.

Decisions of the event thread alone.
"""

from collections.abc import Iterable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext, PartitionState
from odradek.broker.controller.core.effects import (
    Answer,
    Decision,
    DropPreferredElectionNode,
    ReadPreferredElectionNode,
    Report,
    Watch,
)
from odradek.broker.controller.core.election import ElectionStrategy
from odradek.broker.controller.core.events import ElectionAsked, PreferredElectionNodeWritten
from odradek.broker.controller.core.partition_state_machine import move_partitions
from odradek.broker.zk.znodes import PreferredElection
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.messages.elect_leaders import ElectionType

_ERROR_WITHOUT_CANDIDATE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
_STRATEGIES = {
    ElectionType.PREFERRED: ElectionStrategy.PREFERRED,
    ElectionType.UNCLEAN: ElectionStrategy.OFFLINE_UNCLEAN,
}


def asked(context: ControllerContext, event: ElectionAsked) -> Decision[None]:
    """Answer an election request; one about all partitions gets no results for partitions that need no election."""
    results: dict[TopicPartition, KafkaError | None] = {}
    electable = []
    for tp in sorted(context.all_partitions() if event.partitions is None else event.partitions):
        results[tp] = _refusal(context, tp, event.election_type)
        if results[tp] is None:
            electable.append(tp)
    if electable:
        errors = yield from move_partitions(context, electable, PartitionState.ONLINE, _STRATEGIES[event.election_type])
        for tp, error in errors.items():
            results[tp] = KafkaError(_ERROR_WITHOUT_CANDIDATE[event.election_type], error.message)
    if event.partitions is None:
        results = {tp: error for tp, error in results.items() if not _is_needless(error)}
    yield Answer(event.answer, results)


def node_written(context: ControllerContext, event: PreferredElectionNodeWritten) -> Decision[None]:
    """Elect the preferred leaders that the node names, also at failover, and delete the node. Its deletion fires the
    watch once more, which is then set for the next node."""
    yield Watch(nodes=(PreferredElection.path,))
    wanted: set[TopicPartition] = yield ReadPreferredElectionNode()
    if not wanted:
        return
    electable = []
    for tp in sorted(wanted):
        refusal = _refusal(context, tp, ElectionType.PREFERRED)
        if refusal is None:
            electable.append(tp)
        elif not _is_needless(refusal):
            yield Report(f"{PreferredElection.path}: no election for {tp}: {refusal.message}")
    yield from elect_preferred(context, electable)
    yield DropPreferredElectionNode()


def elect_preferred(context: ControllerContext, tps: Iterable[TopicPartition]) -> Decision[None]:
    """Elect preferred leaders; partitions whose preferred replica can't lead keep their leader, and are reported."""
    partitions = list(tps)
    if partitions:
        yield from move_partitions(context, partitions, PartitionState.ONLINE, ElectionStrategy.PREFERRED)


def _refusal(context: ControllerContext, tp: TopicPartition, election_type: int) -> KafkaError | None:
    if not context.assignment(tp).replicas:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if context.is_being_deleted(tp.topic):
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    state = context.states.get(tp)
    leader = NO_LEADER if state is None else state.leader
    if election_type == ElectionType.PREFERRED:
        needless = leader == context.assignment(tp).replicas[0]
    else:
        needless = leader in context.brokers
    if not needless:
        return None
    return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def _is_needless(error: KafkaError | None) -> bool:
    return error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED
