"""Markers that another broker writes: requests, and the completions that its answers make possible."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from transaction_stage import ORDERS, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.transaction import TransactionState
from odradek.client.broker_client import ConnectionFailed
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from waiting import PATIENCE_S, eventually

OTHER = 1


class OtherBroker:
    """Writes markers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()
        self.is_aborted = False

    def send(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.asked.append(len(request.markers))
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE_S)
        if self.is_aborted:
            raise ConnectionFailed("the connection was closed")
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def abort(self) -> None:
        self.is_aborted = True
        self.may_answer.set()

    def close(self) -> None:
        """Nothing is kept."""


@pytest.fixture
def other() -> OtherBroker:
    return OtherBroker()


@pytest.fixture
def stage(other: OtherBroker) -> Iterator[Stage]:
    connections: dict[int, Any] = {OTHER: other}
    made = Stage(connect=lambda broker, connected: connections[broker])
    made.publish(leader=OTHER, brokers=(0, OTHER))
    yield made
    made.stop()


def test_ends_whose_markers_come_back_in_one_answer_are_completed_by_one_batch(
    stage: Stage, other: OtherBroker
) -> None:
    names = ["first", "a", "b", "c"]
    producers = {name: stage.init(name)[1] for name in names}
    assert [stage.add(producers[name], ORDERS, name=name) for name in names] == [ErrorCode.NONE] * 4
    assert stage.end(producers["first"], name="first")[0] is ErrorCode.NONE
    assert other.is_asked.wait(PATIENCE_S), "the markers of the others have to wait for the next request"
    for name in names[1:]:
        assert stage.end(producers[name], name=name)[0] is ErrorCode.NONE
    before = len(stage.log.batches)
    other.may_answer.set()
    eventually(lambda: sum(stage.log.batches[before:]) == 4)
    assert other.asked == [1, 3]
    assert stage.log.batches[before:] == [1, 3]
    eventually(lambda: {stage.state(name) for name in names} == {TransactionState.COMPLETE_COMMIT})


def test_a_frozen_leader_is_waited_for_as_long_as_it_lives(stage: Stage, other: OtherBroker) -> None:
    """Its session is over, and another broker leads the partition: the marker goes there, although the time of the
    request to the frozen one is not up."""
    producer = stage.init()[1]
    assert stage.add(producer, ORDERS) is ErrorCode.NONE
    assert stage.end(producer)[0] is ErrorCode.NONE
    assert other.is_asked.wait(PATIENCE_S)
    stage.publish(leader=OTHER, brokers=(0, OTHER))
    assert not other.is_aborted
    stage.publish(leader=0, brokers=(0,))
    assert other.is_aborted

    def is_complete() -> bool:
        stage.passes(100)
        return stage.state() is TransactionState.COMPLETE_COMMIT

    eventually(is_complete)
    assert [each.partition for each in stage.markers.asked] == [ORDERS]
