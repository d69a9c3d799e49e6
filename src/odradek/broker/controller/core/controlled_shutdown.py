"""ControlledShutdown: the controller moves the leaders of a broker that stops, and removes it from the ISRs.

A broker may send the request several times; each request repeats the moves that have not succeeded. From the first
request on, the broker is not elected as leader until it has restarted.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState
from odradek.broker.controller.core.effects import Answer, Decision, Report
from odradek.broker.controller.core.election import ElectionStrategy
from odradek.broker.controller.core.events import ControlledShutdownAsked
from odradek.broker.controller.core.partition_state_machine import move_partitions
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.model.topology import UNKNOWN_BROKER_EPOCH, PartitionReplica, TopicPartition


def shutdown_asked(context: ControllerContext, event: ControlledShutdownAsked) -> Decision[None]:
    error = _refusal(context, event)
    if error is not None:
        yield Answer(event.answer, error)
        return
    leaving = event.broker_id
    yield Report(f"controlled shutdown of broker {leaving}", "info")
    context.shutting_down.add(leaving)
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for tp in _concerned(context, leaving):
        (led if context.states[tp].leader == leaving else followed).append(tp)
    yield from move_partitions(context, led, PartitionState.ONLINE, ElectionStrategy.CONTROLLED_SHUTDOWN)
    yield from move_replicas(context, [PartitionReplica(tp, leaving) for tp in followed], ReplicaState.OFFLINE)
    yield Answer(event.answer, {tp for tp in _concerned(context, leaving) if context.states[tp].leader == leaving})


def _refusal(context: ControllerContext, event: ControlledShutdownAsked) -> KafkaError | None:
    broker = context.brokers.get(event.broker_id)
    if broker is None:
        return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {event.broker_id} does not exist.")
    if event.broker_epoch != UNKNOWN_BROKER_EPOCH and event.broker_epoch < broker.epoch:
        return KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Received controlled shutdown request from an old broker epoch {event.broker_epoch} for broker "
            f"{event.broker_id}. Current broker epoch is {broker.epoch}.",
        )
    return None


def _concerned(context: ControllerContext, leaving: int) -> list[TopicPartition]:
    """Return the partitions to move; a partition with one replica has no other leader."""
    return [
        replica.partition
        for replica in context.replicas_on((leaving,))
        if len(context.assignment(replica.partition).replicas) > 1
        and replica.partition in context.states
        and not context.is_being_deleted(replica.partition.topic)
    ]
