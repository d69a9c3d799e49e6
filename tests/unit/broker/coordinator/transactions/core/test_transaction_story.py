"""Events of transactions for the flight recorder: what is told of trouble, of the usual, and of a busy id."""

from collections.abc import Iterator

import pytest
from transaction_stage import GONE_MS, ORDERS, PAYMENTS, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction_story import SAMPLE_MS, SLOW_MS, TransactionEvent
from odradek.broker.recording import describe_transaction


@pytest.fixture
def told() -> list[TransactionEvent]:
    return []


@pytest.fixture
def stage(told: list[TransactionEvent]) -> Iterator[Stage]:
    made = Stage(record=told.append)
    yield made
    made.stop()


def names(told: list[TransactionEvent]) -> list[str]:
    found = [event.what for event in told]
    told.clear()
    return found


def transact(stage: Stage, producer: Producer) -> None:
    assert stage.add(producer, ORDERS, PAYMENTS) is ErrorCode.NONE
    assert stage.end(producer)[0] is ErrorCode.NONE


def test_a_commit_is_told_from_its_beginning_to_its_completion(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    stage.add(producer, ORDERS)
    stage.add(producer, PAYMENTS)
    stage.end(producer)
    markers = next(event for event in told if event.what == "MarkersWritten")
    assert (set(markers.partitions), markers.peer) == ({ORDERS, PAYMENTS}, 0)
    assert [event.why for event in told if event.what == "PrepareCommit"] == ["EndTxn"]
    moves = ["Begun", "PartitionsAdded", "PrepareCommit", "MarkersWritten", "CompleteCommit"]
    assert names(told) == ["Initialized", *moves]


def test_of_a_busy_id_one_transaction_a_minute_is_told_and_the_others_counted(
    stage: Stage, told: list[TransactionEvent]
) -> None:
    _, producer = stage.init()
    transact(stage, producer)
    told.clear()
    for _ in range(7):
        transact(stage, producer)
    assert names(told) == []
    stage.clock.advance(SAMPLE_MS)
    transact(stage, producer)
    assert told[0].left_out == 7
    assert names(told) == ["Begun", "PrepareCommit", "MarkersWritten", "CompleteCommit"]


def test_a_transaction_that_times_out_is_told_from_its_beginning(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    transact(stage, producer)
    told.clear()
    stage.add(producer, ORDERS)
    assert names(told) == []  # not known yet that it will be of interest
    stage.clock.advance(60_001)
    stage.coordinator.abort_timed_out()
    abort = next(event for event in told if event.what == "PrepareAbort")
    assert abort.text == f"transaction timed out; epoch {producer.epoch + 1} fences epoch {producer.epoch}"
    assert told[0].time_ms < abort.time_ms - 60_000
    assert names(told) == ["Begun", "TimedOut", "PrepareAbort", "MarkersWritten", "CompleteAbort"]
    assert stage.end(producer)[0] is ErrorCode.PRODUCER_FENCED
    assert told[-1].text == "EndTxn of producer 1000, epoch 0 refused: producer 1000 has epoch 1"


def test_a_transaction_that_stays_open_is_told_before_it_ends(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    transact(stage, producer)
    told.clear()
    stage.add(producer, ORDERS)
    stage.clock.advance(SLOW_MS)
    stage.coordinator.abort_timed_out()
    assert names(told) == ["Begun"]
    stage.coordinator.abort_timed_out()
    assert names(told) == []


def test_refused_markers_and_a_deleted_topic_are_told(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    stage.add(producer, ORDERS)
    stage.markers.at_once = False
    stage.end(producer)
    told.clear()
    stage.markers.settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    stage.publish(leader=0, topics=("payments",))
    stage.passes(GONE_MS)
    assert [event.why for event in told] == ["NOT_LEADER_OR_FOLLOWER", "topic deleted", ""]
    assert names(told) == ["MarkersRefused", "MarkersDropped", "CompleteCommit"]


def test_the_next_coordinator_tells_in_which_state_it_found_it(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    stage.add(producer, ORDERS)
    stage.markers.at_once = False
    stage.end(producer)
    told.clear()
    stage.resign(1)
    stage.lead(2)
    assert told[0].text == "replayed by the next coordinator in state PrepareCommit"
    assert names(told)[0] == "Loaded"


def test_an_event_as_a_line_of_the_journal(stage: Stage, told: list[TransactionEvent]) -> None:
    _, producer = stage.init()
    stage.add(producer, ORDERS)
    (line,) = describe_transaction(told[-1])
    assert line["transactional_id"] == "t"
    assert (line["partitions"], line["count"], line["time_ms"]) == (("orders-0",), 1, told[-1].time_ms)
