"""Markers that another broker writes: requests, and the completions that its answers make possible."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from transaction_stage import ORDERS, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.transaction import TransactionState
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

    def send(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.asked.append(len(request.markers))
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE_S)
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
        self.may_answer.set()

    def close(self) -> None:
        """Nothing is kept."""


@pytest.fixture
def other() -> OtherBroker:
    return OtherBroker()


@pytest.fixture
def stage(other: OtherBroker) -> Iterator[Stage]:
    connections: dict[int, Any] = {OTHER: other}
    made = Stage(connect=connections.__getitem__)
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
