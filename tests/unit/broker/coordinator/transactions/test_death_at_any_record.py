"""A coordinator dies after any record of its log: the next one ends what was decided, as it was decided, and no more.

A life of a transactional id is written by one coordinator. Of each beginning of its records, another coordinator makes
its state. The producer repeats what it was not answered.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from transaction_stage import ORDERS, PAYMENTS, Stage

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.state.state_log import EncodedRecord
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import (
    EPOCH_MAX,
    PREPARED,
    Transaction,
    TransactionState,
)
from odradek.broker.coordinator.transactions.core.transaction_records import (
    decode_transaction,
    encode_key,
    encode_transaction,
)

E = ErrorCode
S = TransactionState
TIMEOUT_MS = 60_000
DAY_MS = 86_400_000


class Death(NamedTuple):
    """What the next coordinator finds."""

    records: list[EncodedRecord]
    last: Transaction | None
    next_producer: Producer | None = None
    """As EndTxn was answered, if the last record is its decision or the completion of it."""


def write_life(stage: Stage, version: int) -> dict[int, Producer]:
    """Commit, abort, abort by a successor, abort after the timeout, a transaction that the end of the epochs follows,
    expiry. Return the answers to EndTxn, by the number of records with its decision, and with its completion."""
    answers: dict[int, Producer] = {}

    def end(producer: Producer, *, commit: bool) -> Producer:
        decided = len(stage.log.written) + 1
        error, next_producer = stage.end(producer, commit=commit, version=version)
        assert error is E.NONE
        answers[decided] = answers[decided + 1] = next_producer
        return next_producer

    _, producer = stage.init()
    for commit in (True, False):
        stage.add(producer, ORDERS)
        stage.add(producer, PAYMENTS)
        producer = end(producer, commit=commit)
    stage.add(producer, ORDERS, PAYMENTS)
    assert stage.init()[0] is E.CONCURRENT_TRANSACTIONS
    _, producer = stage.init()
    stage.add(producer, PAYMENTS)
    stage.clock.advance(TIMEOUT_MS + 1)
    stage.coordinator.abort_timed_out()
    _, producer = stage.init()
    use_up_epochs(stage)
    producer = Producer(producer.id, EPOCH_MAX - 1)
    stage.add(producer, ORDERS)
    end(producer, commit=True)
    stage.init()
    stage.clock.advance(8 * DAY_MS)
    stage.coordinator.expire_ids()
    return answers


def use_up_epochs(stage: Stage) -> None:
    at_end = stage.coordinator.describe("t")._replace(producer_epoch=EPOCH_MAX - 1)
    stage.resign(1)
    stage.log.written.append((encode_key("t"), encode_transaction(at_end, 0)))
    stage.lead(2)


def deaths(version: int) -> list[Death]:
    stage = Stage()
    answers = write_life(stage, version)
    stage.stop()
    records = stage.log.written
    values = [value for _, value in records]
    assert values[-1] is None
    found = [Death([], None)]
    for count, value in enumerate(values, start=1):
        last = None if value is None else decode_transaction("t", value)
        found.append(Death(records[:count], last, answers.get(count)))
    return found


def name(death: Death) -> str:
    last = death.last
    return f"{len(death.records)}-{'nothing' if last is None else last.state.label}"


DEATHS = [
    pytest.param(death, version, id=f"v{version}-{name(death)}") for version in (0, 2) for death in deaths(version)
]


@pytest.fixture
def successor() -> Iterator[Callable[[Death], Stage]]:
    made: list[Stage] = []

    def take_over(death: Death) -> Stage:
        stage = Stage()
        made.append(stage)
        stage.resign(1)
        stage.log.written = list(death.records)
        stage.producer_ids = iter(range(5_000, 6_000))  # ZooKeeper gives none twice
        if death.last is not None:
            stage.clock.advance(max(0, death.last.last_update_ms - stage.clock.now_ms()))
        stage.lead(2)
        return stage

    yield take_over
    for each in made:
        each.stop()


@pytest.mark.parametrize(("death", "version"), DEATHS)
def test_what_was_decided_is_ended_and_what_was_open_stays_open(
    death: Death, version: int, successor: Callable[[Death], Stage]
) -> None:
    stage, last = successor(death), death.last
    asked = stage.markers.asked
    if last is None:
        assert (stage.coordinator.list_transactions(), asked) == ([], [])
        return
    if last.state not in PREPARED:
        assert asked == []
        assert stage.coordinator.describe("t") == last
        return
    assert {each.partition for each in asked} == last.partitions
    assert {each.marker.is_committed for each in asked} <= {last.state is S.PREPARE_COMMIT}
    assert {(each.marker.producer_id, each.marker.producer_epoch) for each in asked} <= {
        (last.producer_id, last.producer_epoch)
    }
    assert {each.marker.coordinator_epoch for each in asked} <= {2}
    assert stage.state() is (S.COMPLETE_COMMIT if last.state is S.PREPARE_COMMIT else S.COMPLETE_ABORT)
    if death.next_producer is not None:
        completed = stage.coordinator.describe("t")
        assert (completed.producer_id, completed.producer_epoch) == (death.next_producer.id, death.next_producer.epoch)
    before = [each.state for each in history(death)]
    assert stage.log.states.count(stage.state()) == before.count(stage.state()) + 1, "completed once"


def history(death: Death) -> list[Transaction]:
    return [decode_transaction("t", value) for _, value in death.records if value is not None]


@pytest.mark.parametrize(("death", "version"), DEATHS)
def test_a_transaction_that_nobody_ends_is_aborted_after_its_timeout(
    death: Death, version: int, successor: Callable[[Death], Stage]
) -> None:
    stage, last = successor(death), death.last
    is_open = last is not None and last.state is S.ONGOING
    before = len(stage.markers.asked)
    stage.clock.advance(TIMEOUT_MS + 1)
    stage.coordinator.abort_timed_out()
    asked = stage.markers.asked[before:]
    if last is None or not is_open:
        assert asked == []
        return
    assert stage.state() is S.COMPLETE_ABORT
    assert {each.partition for each in asked} == last.partitions
    assert {(each.marker.producer_epoch, each.marker.is_committed) for each in asked} == {
        (last.producer_epoch + 1, False)
    }
    assert stage.end(Producer(last.producer_id, last.producer_epoch), version=version)[0] is E.PRODUCER_FENCED


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("death", "version"), DEATHS)
def test_a_producer_that_repeats_its_end_learns_the_one_outcome(
    death: Death, version: int, commit: bool, successor: Callable[[Death], Stage]
) -> None:
    """The coordinator died with the answer on its way, or with the request."""
    stage, last = successor(death), death.last
    if last is None or last.state not in {S.ONGOING, *PREPARED}:
        return
    opened = next(each for each in reversed(history(death)) if each.state is S.ONGOING)
    is_fenced = last.producer_epoch > opened.producer_epoch and not last.bumps_epochs
    error, _ = stage.end(Producer(opened.producer_id, opened.producer_epoch), commit=commit, version=version)
    if is_fenced:
        assert error is E.PRODUCER_FENCED
    elif last.state is S.ONGOING:
        assert error is E.NONE
    else:
        assert error is (E.NONE if commit == (last.state is S.PREPARE_COMMIT) else E.INVALID_TXN_STATE)
    is_committed = commit if last.state is S.ONGOING else last.state is S.PREPARE_COMMIT
    assert {each.marker.is_committed for each in stage.markers.asked} == {is_committed}


@pytest.mark.parametrize(("death", "version"), DEATHS)
def test_an_end_whose_answer_was_lost_is_answered_again_in_the_same_way(
    death: Death, version: int, successor: Callable[[Death], Stage]
) -> None:
    stage, last = successor(death), death.last
    if last is None or death.next_producer is None:
        return
    opened = next(each for each in reversed(history(death)) if each.state is S.ONGOING)
    commit = last.state in {S.PREPARE_COMMIT, S.COMPLETE_COMMIT}
    answer = stage.end(Producer(opened.producer_id, opened.producer_epoch), commit=commit, version=version)
    assert answer == (E.NONE, death.next_producer)


@pytest.mark.parametrize(("death", "version"), DEATHS)
def test_the_next_producer_has_an_epoch_that_nobody_had(
    death: Death, version: int, successor: Callable[[Death], Stage]
) -> None:
    stage = successor(death)
    given = {Producer(each.producer_id, each.producer_epoch) for each in history(death)}
    error, producer = stage.init()
    if error is E.CONCURRENT_TRANSACTIONS:  # the open one had to be aborted first
        error, producer = stage.init()
    assert error is E.NONE
    assert producer.epoch < EPOCH_MAX
    assert producer.epoch > max((each.epoch for each in given if each.id == producer.id), default=-1)
    assert (stage.add(producer), stage.end(producer, version=version)[0]) == (E.NONE, E.NONE)
    for former in given:
        assert stage.end(former)[0] in {E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING}
