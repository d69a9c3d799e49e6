"""Bugs of fencing on purpose: of brokers, controllers, leaders, groups. The simulator must find them."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.controller.core import alter_partition
from odradek.broker.coordinator.groups import group_offsets
from odradek.broker.coordinator.groups.core.group import GroupState
from odradek.broker.coordinator.groups.group_offsets import GroupOffsets
from odradek.broker.replication import replica_manager
from odradek.broker.replication.committed_log import CommittedLog
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataImage
from odradek.model.topology import UNKNOWN_BROKER_EPOCH
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest

Plant = Callable[[pytest.MonkeyPatch], None]


def fetches_in_any_epoch(patch: pytest.MonkeyPatch) -> None:
    def only_leaders(self: Any, current_leader_epoch: int, *, only_leader: bool) -> None:
        if only_leader and not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    patch.setattr(Partition, "check_epoch", only_leaders)


def registrations_are_not_told_apart(patch: pytest.MonkeyPatch) -> None:
    """Only epochs of controllers count, as in Apache Kafka before KIP-380."""
    admit = ControlGate._admit

    def admitted(self: Any, request: Any, correlation_id: int) -> ErrorCode:
        named = SimpleNamespace(
            controller_id=request.controller_id,
            controller_epoch=request.controller_epoch,
            broker_epoch=UNKNOWN_BROKER_EPOCH,
        )
        return admit(self, named, correlation_id)

    patch.setattr(ControlGate, "_admit", admitted)


def _late_ones_obeyed(patch: pytest.MonkeyPatch, kind: type) -> None:
    """Obey late requests of a kind, as Apache Kafka does: it compares no correlation ids."""
    admit = ControlGate._admit

    def admitted(self: Any, request: Any, correlation_id: int) -> ErrorCode:
        if not isinstance(request, kind):
            return admit(self, request, correlation_id)
        latest = self._latest
        refused = admit(self, request, 1 << 31)
        self._latest = max(latest, (request.controller_epoch, request.broker_epoch, correlation_id))
        return refused

    patch.setattr(ControlGate, "_admit", admitted)


def late_stop_replica(patch: pytest.MonkeyPatch) -> None:
    _late_ones_obeyed(patch, StopReplicaRequest)
    patch.setattr(replica_manager, "refuse_stop", lambda *_: None)


def leader_epochs_may_repeat(patch: pytest.MonkeyPatch) -> None:
    _late_ones_obeyed(patch, LeaderAndIsrRequest)
    refuse = replica_manager.refuse_directive

    def refused(directive: Any, partition: Any, broker_id: int) -> ErrorCode | None:
        if partition is not None and partition.leader_epoch == directive.state.leader_epoch:
            state = replace(directive.state, leader_epoch=directive.state.leader_epoch + 1)
            return refuse(replace(directive, state=state), partition, broker_id)
        return refuse(directive, partition, broker_id)

    patch.setattr(replica_manager, "refuse_directive", refused)


def replaced_controllers_are_obeyed(patch: pytest.MonkeyPatch) -> None:
    admit = ControlGate._admit

    def admitted(self: Any, request: Any, correlation_id: int) -> ErrorCode:
        if request.controller_epoch < self.controller_epoch and request.broker_epoch >= self.broker_epoch:
            return ErrorCode.NONE
        return admit(self, request, correlation_id)

    patch.setattr(ControlGate, "_admit", admitted)
    patch.setattr(ReplicaManager, "_check_controller", lambda *_: None)


def any_registration_joins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        alter_partition, "_is_eligible", lambda context, broker_id, epoch_seen: broker_id in context.live_brokers()
    )


def ends_are_always_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommittedLog, "end_is_known", property(lambda self: True))


def deleted_topics_stay_known(patch: pytest.MonkeyPatch) -> None:
    updated = MetadataImage.updated

    def partly(self: Any, controller_id: int, brokers: Any, news: Any, *, is_full: bool = False) -> Any:
        return updated(self, controller_id, brokers, news)

    patch.setattr(MetadataImage, "updated", partly)


def any_member_commits(patch: pytest.MonkeyPatch) -> None:
    def may_commit(group: Any, committer: Any, now: Any) -> ErrorCode:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if group.state is GroupState.DEAD else ErrorCode.NONE

    patch.setattr(group_offsets, "may_commit", may_commit)


def pending_offsets_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    committed = GroupOffsets.committed

    def unstable(self: Any, group_id: str, partitions: Any, *, stable: bool = False) -> Any:
        return committed(self, group_id, partitions)

    patch.setattr(GroupOffsets, "committed", unstable)


def coordinators_stay_after_a_stop(patch: pytest.MonkeyPatch) -> None:
    stop = ReplicaManager._stop

    def stopped(self: Any, tp: Any, effects: Any, remove: Any) -> None:
        stop(self, tp, effects, remove)
        effects.resigned[:] = [each for each in effects.resigned if each[0] != tp]
        effects.removed[:] = [each for each in effects.removed if each != tp]

    patch.setattr(ReplicaManager, "_stop", stopped)


CONTROL_MUTANTS: dict[str, Plant] = {
    "KIP-320: a fetch in another epoch is answered": fetches_in_any_epoch,
    "KIP-380: requests to a former registration of a broker are obeyed": registrations_are_not_told_apart,
    "KIP-570: a late StopReplica of a former leader epoch is obeyed": late_stop_replica,
    "KAFKA-13790: a directive of the present leader epoch is obeyed again": leader_epochs_may_repeat,
    "zombie controllers: requests of a controller that was replaced are obeyed": replaced_controllers_are_obeyed,
    "KIP-903: any registration of a broker joins the ISR": any_registration_joins,
    "KIP-207: a new leader tells an end before it knows it": ends_are_always_known,
    "a broker that comes back keeps deleted topics in its metadata": deleted_topics_stay_known,
    "a member of a former generation commits": any_member_commits,
    "KIP-447: an offset is answered while a transaction may change it": pending_offsets_are_not_waited_for,
    "KAFKA-9235: coordinators keep their state after StopReplica": coordinators_stay_after_a_stop,
}
