"""Changes of a partition's ISR: the leader proposes them, the controller answers. Called under the partition's lock.

One change at a time is pending. Until it is answered, `followers.maximal` holds the members of both sets.
"""

from typing import NamedTuple
from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.replication.core.followers import Followers
from odradek.broker.replication.core.isr import REFUSED, TAKEN_BACK, IsrChange
from odradek.broker.replication.core.replica import RemoteReplica
from odradek.model.topology import LeaderAndIsr, TopicPartition

log = get_logger(__name__)


class Fence(NamedTuple):
    """State that the leader knows; the controller refuses a change under an older one."""

    topic_id: UUID
    leader_epoch: int
    partition_epoch: int
    controller_epoch: int


class IsrProposals:
    __slots__ = ("_broker_id", "_followers", "_partition")

    def __init__(self, partition: TopicPartition, broker_id: int, followers: Followers) -> None:
        self._partition = partition
        self._broker_id = broker_id
        self._followers = followers

    def expand(
        self, follower: RemoteReplica, fence: Fence, *, high_watermark: int, epoch_start: int
    ) -> IsrChange | None:
        """Propose to add a follower that may join."""
        isr = self._followers.expanded(follower, high_watermark=high_watermark, epoch_start=epoch_start)
        return None if isr is None else self._propose(isr, fence)

    def shrink(self, fence: Fence, *, leader_end: int, now_ms: int) -> IsrChange | None:
        """Propose to drop followers that have not kept up."""
        isr = self._followers.shrunk(leader_end=leader_end, now_ms=now_ms)
        return None if isr is None else self._propose(isr, fence)

    def answered(
        self, change: IsrChange, answer: LeaderAndIsr | ErrorCode, fence: Fence
    ) -> LeaderAndIsr | IsrChange | None:
        """Return the state that the answer confirms, or the change if it is to be asked for again."""
        followers, name = self._followers, str(self._partition)
        if followers.pending is not change:
            return None
        if isinstance(answer, ErrorCode):
            log.info("ISR change refused", partition=name, isr=change.isr, error=answer.name)
            if answer in TAKEN_BACK:
                followers.confirm(followers.isr)
            return None if answer in REFUSED else change
        if answer.leader_epoch != fence.leader_epoch or answer.zk_version < fence.partition_epoch:
            return None
        log.info("ISR changed", partition=name, isr=answer.isr, was=followers.isr)
        followers.confirm(answer.isr)
        return answer

    def _propose(self, isr: tuple[int, ...], fence: Fence) -> IsrChange:
        followers = self._followers
        log.info("ISR change proposed", partition=str(self._partition), isr=isr, was=followers.isr)
        epochs = fence.leader_epoch, fence.partition_epoch, fence.controller_epoch
        broker_epochs = followers.broker_epochs(isr)
        return followers.propose(
            IsrChange(self._partition, fence.topic_id, self._broker_id, *epochs, isr, broker_epochs)
        )
