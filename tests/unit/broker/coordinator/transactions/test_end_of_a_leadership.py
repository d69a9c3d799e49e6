"""What a coordinator does in the moments when another one takes over, and before it knows its cluster."""

import threading
from collections.abc import Iterator

import pytest
from transaction_stage import KEPT_IN, ORDERS, PAYMENTS, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import TransactionState
from odradek.model.metadata_image import MetadataImage
from odradek.model.topology import Broker

WAIT_S = 60


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.stop()


def open_transaction(stage: Stage) -> Producer:
    error, producer = stage.init()
    assert (error, stage.add(producer, ORDERS, PAYMENTS)) == (ErrorCode.NONE, ErrorCode.NONE)
    return producer


def test_a_decision_that_is_replicated_when_its_leadership_is_over_is_the_next_leaders(stage: Stage) -> None:
    """Its markers would have the next leader's epoch: one that comes late, when that leader has ended the transaction,
    would not be refused, and end the producer's next one."""
    producer = open_transaction(stage)
    stage.log.at_once = False
    answers: list[ErrorCode] = []
    stage.coordinator.end("t", producer, lambda error, _: answers.append(error), commit=True)
    others_are_given_up = threading.Event()
    stage.coordinator._table._unloader.submit(others_are_given_up.wait, WAIT_S)
    stage.coordinator.resign(KEPT_IN, 5)
    stage.log.settle()
    assert answers == [ErrorCode.NONE]
    assert stage.markers.asked == []
    others_are_given_up.set()
    stage.log.at_once = True
    stage.lead(6)
    assert {each.marker.coordinator_epoch for each in stage.markers.asked} == {6}
    assert stage.state() is TransactionState.COMPLETE_COMMIT


def test_leaderships_that_are_over_are_not_loaded_15468(stage: Stage) -> None:
    """The present one would wait for the loads of all before, which take seconds each where a partition is large."""
    open_transaction(stage)
    table, may_load = stage.coordinator._table, threading.Event()
    table._loader.submit(may_load.wait, WAIT_S)
    before = stage.log.replays
    for epoch in range(1, 40, 2):
        stage.coordinator.resign(KEPT_IN, epoch)
        stage.coordinator.lead(KEPT_IN, epoch + 1)
    may_load.set()
    stage.lead(40)
    assert stage.log.replays == before + 1
    assert stage.state() is TransactionState.ONGOING


def test_ends_begin_again_in_an_epoch_before_which_another_coordinator_may_have_sent_markers(stage: Stage) -> None:
    """This broker was not told of the other one, whose epoch the partitions know now."""
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.markers.settle(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    stage.markers.at_once = True
    stage.lead(2)
    assert {each.marker.coordinator_epoch for each in stage.markers.asked} == {0, 2}
    assert stage.state() is TransactionState.COMPLETE_COMMIT


def test_topics_are_not_taken_for_deleted_before_any_is_known(stage: Stage) -> None:
    """A new controller of Apache Kafka first tells who lives, without a topic."""
    producer = open_transaction(stage)
    stage.metadata.publish(MetadataImage(controller_id=0, brokers={0: Broker(0, ())}, topics={}))
    stage.end(producer)
    stage.passes(500)
    assert stage.state() is TransactionState.PREPARE_COMMIT
    stage.publish(leader=0)
    stage.passes(200)
    assert stage.state() is TransactionState.COMPLETE_COMMIT
    assert {each.partition for each in stage.markers.asked} == {ORDERS, PAYMENTS}
