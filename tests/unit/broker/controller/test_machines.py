"""The two state machines refuse what their tables don't allow: nothing changes, and a person is told."""

from collections.abc import Iterator
from itertools import product

import pytest

from odradek.broker.controller.core import partition_state_machine as partition_machine
from odradek.broker.controller.core import replica_state_machine as replica_machine
from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState
from odradek.broker.controller.core.effects import (
    CreatePartitionStates,
    Decision,
    Effect,
    Moved,
    Report,
    Send,
    UpdatePartitionStates,
)
from odradek.model.topology import (
    Broker,
    ControllerTerm,
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)

TP = TopicPartition("orders", 0)
REPLICA = PartitionReplica(TP, 1)


def cluster() -> ControllerContext:
    context = ControllerContext(0, "PLAINTEXT", term=ControllerTerm(1, 1))
    context.brokers = {broker: Broker(broker, (), epoch=10 + broker) for broker in (0, 1)}
    context.set_assignment(TP, ReplicaAssignment((0, 1)))
    context.states[TP] = LeaderAndIsr(0, 3, (0, 1), 1)
    return context


def effects_of(decision: Decision[object]) -> Iterator[Effect]:
    """Every write succeeds."""
    brought: object = None
    try:
        while True:
            effect = decision.send(brought)
            yield effect
            is_write = isinstance(effect, CreatePartitionStates | UpdatePartitionStates)
            brought = dict(effect.states) if is_write else None  # type: ignore[union-attr]
    except StopIteration:
        return


@pytest.mark.parametrize(("before", "target"), list(product(PartitionState, repeat=2)))
def test_moves_of_partitions(before: PartitionState, target: PartitionState) -> None:
    context = cluster()
    context.partition_states[TP] = before
    effects = list(effects_of(partition_machine.move_partitions(context, [TP], target)))
    if before in partition_machine.LEGAL_FROM[target]:
        assert context.partition_state(TP) is target
        assert any(isinstance(effect, Moved) for effect in effects)
    else:
        assert effects == [Report(f"partition {TP} can't go from {before.name} to {target.name}", "error")]
        assert context.partition_state(TP) is before


@pytest.mark.parametrize(("before", "target"), list(product(ReplicaState, repeat=2)))
def test_moves_of_replicas(before: ReplicaState, target: ReplicaState) -> None:
    context = cluster()
    context.replica_states[REPLICA] = before
    effects = list(effects_of(replica_machine.move_replicas(context, [REPLICA], target)))
    if before in replica_machine.LEGAL_FROM[target]:
        assert context.replica_state(REPLICA) is target
        assert any(isinstance(effect, Moved) for effect in effects)
    else:
        assert effects == [Report(f"replica {REPLICA} can't go from {before.name} to {target.name}", "error")]
        assert context.replica_state(REPLICA) is before


def test_a_state_that_others_change_without_end_is_given_up() -> None:
    """The controller must go on, whoever it is that races with it."""
    context = cluster()
    context.partition_states[TP] = PartitionState.OFFLINE
    decision = partition_machine.move_partitions(context, [TP], PartitionState.ONLINE)
    performed = list(_losing_every_race(decision, context))
    assert not any(isinstance(effect, Send | Moved) for effect in performed)
    assert any(isinstance(effect, Report) for effect in performed)
    assert context.partition_state(TP) is PartitionState.OFFLINE


def _losing_every_race(decision: Decision[object], context: ControllerContext) -> Iterator[Effect]:
    brought: object = None
    try:
        while True:
            effect = decision.send(brought)
            yield effect
            brought = {} if isinstance(effect, UpdatePartitionStates) else {TP: context.states[TP]}
    except StopIteration:
        return
