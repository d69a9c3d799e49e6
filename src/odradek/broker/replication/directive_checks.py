"""Checks of the controller's directives about replicas. Pure but for the log lines.

Each directive contains a leader epoch. One with an older epoch than the partition's is outdated, one with the same
epoch was executed already; a restart of the request changes nothing in either case.
"""

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.replication.partition import Partition
from odradek.model.metadata_image import PartitionImage
from odradek.model.topology import EPOCH_DURING_DELETE, NO_EPOCH, PartitionDirective

log = get_logger(__name__)


def refuse_directive(directive: PartitionDirective, partition: Partition | None, broker_id: int) -> ErrorCode | None:
    """Return the error that refuses the order; None if it is accepted."""
    epoch = directive.state.leader_epoch
    if partition is not None:
        known, named = partition.topic_id, directive.topic_id
        if named.int and known.int and named != known:
            _log_refusal(directive, f"its topic id is {known}")
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if epoch <= partition.leader_epoch:
            _log_refusal(directive, f"its leader epoch is {partition.leader_epoch}")
            return ErrorCode.STALE_CONTROLLER_EPOCH
    if broker_id not in directive.replicas:
        _log_refusal(directive, f"broker {broker_id} is none of its replicas {list(directive.replicas)}")
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def refuse_stop(partition: Partition | None, leader_epoch: int) -> ErrorCode | None:
    """Return the error that refuses the stop; None if it is accepted. What isn't hosted is stopped already, but may lie
    on disk."""
    if partition is None or leader_epoch in (NO_EPOCH, EPOCH_DURING_DELETE) or leader_epoch >= partition.leader_epoch:
        return None
    log.warning(
        "StopReplica with an old leader epoch refused",
        partition=str(partition.topic_partition),
        leader_epoch=leader_epoch,
        known=partition.leader_epoch,
    )
    return ErrorCode.FENCED_LEADER_EPOCH


def is_stray(known: PartitionImage | None, broker_id: int) -> bool:
    """Return whether the partition is known to be on other brokers only. One that is not known may be: then nothing is
    said of it."""
    return known is not None and broker_id not in known.replicas


def _log_refusal(directive: PartitionDirective, why: str) -> None:
    log.info(
        "LeaderAndIsr for a partition refused",
        partition=str(directive.partition),
        leader_epoch=directive.state.leader_epoch,
        why=why,
    )
