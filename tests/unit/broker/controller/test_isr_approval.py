"""The decision about AlterPartition, driven by hand: each effect is answered by the test."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.alter_partition import isr_change_asked
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Answer, Effect, ReadPartitionStates, Send, UpdatePartitionStates
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.model.topology import (
    Broker,
    ControllerTerm,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicAssignment,
    TopicPartition,
)

TP = TopicPartition("orders", 0)
HELD = LeaderAndIsr(leader=0, leader_epoch=3, isr=(0, 1), controller_epoch=1, zk_version=5)
WANTED = replace(HELD, isr=(0, 1, 2))


def cluster() -> ControllerContext:
    context = ControllerContext(broker_id=0, inter_broker_listener="PLAINTEXT", term=ControllerTerm(2, 0))
    context.brokers = {broker: Broker(broker, (), epoch=broker + 10) for broker in range(4)}
    context.add_topic(TopicAssignment("orders", UUID(int=7), {0: ReplicaAssignment((0, 1, 2))}))
    context.states[TP] = HELD
    return context


def ask(
    context: ControllerContext,
    wanted: LeaderAndIsr = WANTED,
    *,
    tp: TopicPartition = TP,
    broker: tuple[int, int] = (0, 10),
    seen: Mapping[int, int] | None = None,
    zookeeper_holds: LeaderAndIsr = HELD,
) -> tuple[Any, list[Effect]]:
    """→ the answer and all effects. A write succeeds when it was decided on what ZooKeeper holds."""
    event = IsrChangeAsked(broker[0], broker[1], {tp: wanted}, print, isr_epochs={tp: seen or {}})
    decision = isr_change_asked(context, event)
    effects: list[Effect] = []
    reply: object = None
    while True:
        try:
            effect = decision.send(reply)
        except StopIteration:
            break
        effects.append(effect)
        reply = None
        if isinstance(effect, UpdatePartitionStates):
            current = {
                tp: state for tp, state in effect.states.items() if state.zk_version == zookeeper_holds.zk_version
            }
            reply = {tp: replace(state, zk_version=state.zk_version + 1) for tp, state in current.items()}
        elif isinstance(effect, ReadPartitionStates):
            reply = {TP: zookeeper_holds}
    answers = [effect.value for effect in effects if isinstance(effect, Answer)]
    assert len(answers) == 1
    return answers[0], effects


def test_a_change_is_written_answered_and_told_to_all_live_brokers() -> None:
    context = cluster()
    answer, effects = ask(context)
    written = replace(WANTED, controller_epoch=2, zk_version=6)
    assert answer == {TP: written}
    assert context.states[TP] == written
    assert [effect.broker_id for effect in effects if isinstance(effect, Send)] == [0, 1, 2, 3]


def test_a_change_that_is_made_already_is_answered_without_a_write() -> None:
    context = cluster()
    context.states[TP] = replace(WANTED, zk_version=6)
    answer, effects = ask(context, WANTED)
    assert answer == {TP: replace(WANTED, zk_version=6)}
    assert len(effects) == 1


@pytest.mark.parametrize("broker", [(0, 9), (7, 10)])
def test_another_incarnation_of_the_broker_or_an_unknown_one_is_fenced(broker: tuple[int, int]) -> None:
    answer, _ = ask(cluster(), broker=broker)
    assert isinstance(answer, KafkaError)
    assert answer.code is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (replace(WANTED, leader_epoch=4), ErrorCode.NOT_CONTROLLER),
        (replace(WANTED, zk_version=6), ErrorCode.NOT_CONTROLLER),
        (replace(WANTED, leader_epoch=2), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(WANTED, zk_version=4), ErrorCode.INVALID_UPDATE_VERSION),
        (replace(WANTED, isr=(0, 1, 3)), ErrorCode.INVALID_REQUEST),  # 3 isn't assigned
        (replace(WANTED, isr=(1, 2)), ErrorCode.INVALID_REQUEST),  # without the leader
        (replace(WANTED, isr=()), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, isr=(0, 2, 2)), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, recovering=True), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wish_that_is_fenced_or_wrong_changes_nothing(wanted: LeaderAndIsr, code: ErrorCode) -> None:
    context = cluster()
    answer, effects = ask(context, wanted)
    assert answer[TP].code is code
    assert len(effects) == 1
    assert context.states[TP] == HELD


def test_only_the_leader_may_ask() -> None:
    answer, _ = ask(cluster(), replace(WANTED, leader=1), broker=(1, 11))
    assert answer[TP].code is ErrorCode.INVALID_REQUEST


def test_an_unknown_partition_has_no_isr() -> None:
    elsewhere = TopicPartition("orders", 9)
    answer, _ = ask(cluster(), tp=elsewhere)
    assert answer[elsewhere].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_replica_that_is_dead_or_leaving_does_not_join() -> None:
    dead, leaving = cluster(), cluster()
    del dead.brokers[2]
    leaving.shutting_down.add(2)
    for context in (dead, leaving):
        answer, _ = ask(context)
        assert answer[TP].code is ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_that_has_restarted_since_the_leader_saw_it_does_not_join() -> None:
    """KIP-903: it may have come back with an empty log."""
    answer, _ = ask(cluster(), seen={0: 10, 1: 11, 2: 11})
    assert answer[TP].code is ErrorCode.INELIGIBLE_REPLICA
    answer, _ = ask(cluster(), seen={0: 10, 1: 11, 2: 12})
    assert answer[TP].isr == (0, 1, 2)
    answer, _ = ask(cluster(), seen={0: -1, 1: -1, 2: -1})  # a follower of an older version tells none
    assert answer[TP].isr == (0, 1, 2)


def test_a_lost_race_is_answered_and_what_won_it_is_known_afterwards() -> None:
    context = cluster()
    winner = replace(HELD, isr=(0,), zk_version=6)
    answer, effects = ask(context, zookeeper_holds=winner)
    assert answer[TP].code is ErrorCode.INVALID_UPDATE_VERSION
    assert context.states[TP] == winner
    assert not any(isinstance(effect, Send) for effect in effects)


def test_a_leader_that_was_elected_uncleanly_says_when_it_has_recovered() -> None:
    context = cluster()
    context.states[TP] = replace(HELD, isr=(0,), recovering=True)
    answer, _ = ask(context, replace(HELD, isr=(0,), recovering=False))
    assert answer[TP].recovering is False
