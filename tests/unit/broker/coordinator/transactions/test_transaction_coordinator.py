"""The coordinator over its log: what is decided, written, completed, and taken up by the next leader.

Numbers in names are Kafka's bugs.
"""

from collections.abc import Iterator

import pytest
from transaction_stage import GONE_MS, KEPT_IN, ORDERS, PAYMENTS, Stage

from odradek.base import logs
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_MAX, Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_records import encode_key, encode_transaction
from odradek.broker.coordinator.transactions.end_waiters import WAIT_MS, WAITING_MAX
from odradek.protocol.primitives import EncodeError

E = ErrorCode
S = TransactionState
DAY_MS = 86_400_000
MARKER_SENDER = "broker.coordinator.transactions.marker_sender"


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.stop()


def open_transaction(stage: Stage, name: str = "t") -> Producer:
    error, producer = stage.init(name)
    assert (error, stage.add(producer, ORDERS, PAYMENTS, name=name)) == (E.NONE, E.NONE)
    return producer


def test_a_transaction_from_its_first_partition_to_its_completion(stage: Stage) -> None:
    producer = open_transaction(stage)
    assert stage.end(producer) == (E.NONE, producer)
    assert stage.log.states == [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT]
    assert {each.partition for each in stage.markers.asked} == {ORDERS, PAYMENTS}
    assert {each.marker.is_committed for each in stage.markers.asked} == {True}


def test_two_transactions_in_quick_succession_ydb_21310(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    assert stage.end(producer)[0] is E.NONE
    assert stage.add(producer) is E.CONCURRENT_TRANSACTIONS
    stage.markers.settle()
    assert stage.add(producer) is E.NONE
    assert stage.state() is S.ONGOING


def test_the_next_transaction_begins_with_the_completion_of_the_former(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    first, again = stage.submit_add(producer), stage.submit_add(producer)
    assert (first, again) == ([], [])
    stage.markers.settle()
    assert (first, again) == ([E.NONE], [E.NONE])
    assert stage.state() is S.ONGOING
    stage.passes(500)
    assert (first, again) == ([E.NONE], [E.NONE])


def test_requests_that_wait_for_an_end_are_bounded(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    waiting = [stage.submit_add(producer) for _ in range(WAITING_MAX)]
    assert not any(waiting)
    assert stage.submit_add(producer) == [E.CONCURRENT_TRANSACTIONS]
    stage.passes(WAIT_MS)
    assert waiting == [[E.CONCURRENT_TRANSACTIONS]] * WAITING_MAX


def test_a_request_that_waits_for_an_end_learns_that_the_coordinator_has_moved(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    waiting = stage.submit_add(producer)
    stage.resign(1)
    assert waiting == [E.NOT_COORDINATOR]


def test_a_fenced_producer_does_not_wait(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    assert stage.init()[0] is E.CONCURRENT_TRANSACTIONS  # its transaction is being aborted
    assert stage.submit_add(producer) == [E.PRODUCER_FENCED]


def test_partitions_without_a_record_may_be_committed_ydb_51053(stage: Stage) -> None:
    """The coordinator doesn't know whether anything was produced."""
    producer = open_transaction(stage)
    assert stage.end(producer, commit=True)[0] is E.NONE


def test_a_failed_append_leaves_nothing_pending_7519_5351(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    assert stage.end(producer)[0] is E.COORDINATOR_NOT_AVAILABLE
    assert stage.init()[0] is E.COORDINATOR_NOT_AVAILABLE
    stage.clock.advance(DAY_MS)
    stage.coordinator.abort_timed_out()
    stage.log.error = E.NONE
    assert stage.end(producer)[0] is E.NONE
    assert stage.state() is S.COMPLETE_COMMIT


def test_a_failed_expiry_leaves_nothing_pending_7519(stage: Stage) -> None:
    _, producer = stage.init()
    stage.clock.advance(8 * DAY_MS)
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    stage.coordinator.expire_ids()
    stage.log.error = E.NONE
    assert stage.add(producer) is E.NONE


def test_a_record_that_can_not_be_encoded_leaves_nothing_pending_5351(stage: Stage) -> None:
    too_long = "t" * 40_000  # no request has a longer name than a record can have
    for _ in range(2):
        with pytest.raises(EncodeError):
            stage.init(too_long)


def test_a_first_epoch_that_was_not_written_leaves_no_id_14880(stage: Stage) -> None:
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    assert stage.init()[0] is E.COORDINATOR_NOT_AVAILABLE
    assert stage.coordinator.list_transactions() == []
    stage.log.error = E.NONE
    assert stage.init() == (E.NONE, Producer(1001, 0))


def test_init_of_an_open_transaction_aborts_it_and_bumps_once_per_write(stage: Stage) -> None:
    first = open_transaction(stage)
    assert stage.init()[0] is E.CONCURRENT_TRANSACTIONS
    assert stage.log.states[-2:] == [S.PREPARE_ABORT, S.COMPLETE_ABORT]
    assert [each.marker.producer_epoch for each in stage.markers.asked] == [1, 1]
    assert stage.init() == (E.NONE, Producer(first.id, 2))
    assert stage.end(first)[0] is E.PRODUCER_FENCED


def test_fences_that_fail_use_up_no_epochs_9666(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    for _ in range(5):
        assert stage.init()[0] is E.COORDINATOR_NOT_AVAILABLE
    stage.log.error = E.NONE
    assert stage.init()[0] is E.CONCURRENT_TRANSACTIONS
    assert stage.markers.asked[0].marker.producer_epoch == producer.epoch + 1


def test_a_timed_out_transaction_is_aborted_and_its_producer_fenced_6119_9600_redpanda_8236(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.clock.advance(60_000)
    stage.coordinator.abort_timed_out()
    assert stage.state() is S.ONGOING
    stage.clock.advance(1)
    stage.coordinator.abort_timed_out()
    assert stage.state() is S.COMPLETE_ABORT
    assert stage.end(producer)[0] is E.PRODUCER_FENCED
    assert stage.add(producer) is E.PRODUCER_FENCED


def test_a_late_marker_of_one_end_does_not_complete_the_next_16352(stage: Stage) -> None:
    """The answer to the first marker comes twice, the second time during the next transaction's end."""
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    _, late = stage.markers.waiting[0]
    stage.markers.settle()
    assert stage.state() is S.COMPLETE_COMMIT
    stage.add(producer, ORDERS, PAYMENTS)
    stage.end(producer)
    late(0, E.NONE)
    late(1, E.NONE)
    assert stage.state() is S.PREPARE_COMMIT
    stage.markers.settle()
    assert stage.state() is S.COMPLETE_COMMIT


def test_completion_is_written_once_10080_9777_6042(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once, stage.log.at_once = False, True
    stage.end(producer)
    _, settle = stage.markers.waiting.pop()
    stage.log.at_once = False
    for slot in (0, 1, 1, 0):
        settle(slot, E.NONE)
    stage.log.settle()
    settle(1, E.NONE)
    assert stage.log.states.count(S.COMPLETE_COMMIT) == 1


@pytest.mark.parametrize(
    "error", [E.NOT_LEADER_OR_FOLLOWER, E.KAFKA_STORAGE_ERROR, E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_ENOUGH_REPLICAS]
)
def test_refused_markers_are_retried_until_written_5202_9749(stage: Stage, error: E) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.markers.settle(error)
    assert not stage.markers.waiting
    stage.passes(200)
    stage.markers.settle()
    assert stage.state() is S.COMPLETE_COMMIT


def test_markers_that_are_refused_for_hours_are_no_storm_6052(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    producer = open_transaction(stage)
    logs.set_threshold(MARKER_SENDER, "INFO")
    stage.markers.error = E.NOT_ENOUGH_REPLICAS
    stage.end(producer)
    stage.passes(60_000)
    assert 30 < len(stage.markers.writes) < 100
    stage.passes(3_600_000)
    logs.set_threshold(MARKER_SENDER, None)
    assert len(stage.markers.writes) < 3_700
    assert 1 <= capsys.readouterr().err.count("markers refused") < 70
    stage.markers.error = E.NONE
    stage.passes(2_000)
    assert stage.state() is S.COMPLETE_COMMIT


def test_a_completion_that_is_refused_for_hours_is_no_storm(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    stage.markers.settle()
    stage.passes(3_600_000)
    assert 1 <= capsys.readouterr().err.count("can't be written") < 70
    stage.log.error = E.NONE
    stage.passes(2_000)
    assert (stage.state(), stage.coordinator.ends.append_retries) == (S.COMPLETE_COMMIT, 0)


def test_markers_whose_write_fails_unexpectedly_are_written_again(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.fault = MemoryError()
    assert stage.end(producer)[0] is E.NONE
    assert stage.state() is S.PREPARE_COMMIT
    stage.passes(200)
    assert stage.state() is S.COMPLETE_COMMIT


def test_markers_of_a_deleted_topic_are_dropped_6052_5610(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.publish(leader=0, topics=["orders"])
    stage.markers.settle(E.UNKNOWN_TOPIC_OR_PARTITION)
    stage.passes(200)
    (markers, _) = stage.markers.waiting[0]
    assert [each.partition for each in markers] == [ORDERS]
    stage.markers.settle()
    assert stage.state() is S.PREPARE_COMMIT
    stage.passes(GONE_MS)
    assert stage.state() is S.COMPLETE_COMMIT


def test_a_partition_of_which_the_metadata_is_late_gets_its_marker(stage: Stage) -> None:
    """Its leader told its producer, before the controller could tell this broker."""
    producer = open_transaction(stage)
    stage.publish(leader=0, topics=["orders"])
    stage.end(producer)
    stage.passes(GONE_MS // 2)
    assert stage.state() is S.PREPARE_COMMIT
    stage.publish(leader=0)
    stage.passes(200)
    assert stage.state() is S.COMPLETE_COMMIT
    assert {each.partition for each in stage.markers.asked} == {ORDERS, PAYMENTS}


def test_partitions_without_a_leader_are_waited_for(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.publish(leader=-1)
    stage.end(producer)
    stage.passes(500)
    assert stage.coordinator.ends.markers.unknown_destinations == 2
    stage.publish(leader=0)
    stage.passes(200)
    assert stage.state() is S.COMPLETE_COMMIT
    assert stage.coordinator.ends.markers.unknown_destinations == 0


def test_a_completion_that_cannot_be_written_is_tried_again(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.log.error = E.NOT_ENOUGH_REPLICAS
    stage.markers.settle()
    assert (stage.state(), stage.coordinator.ends.append_retries) == (S.PREPARE_COMMIT, 1)
    stage.log.error = E.NONE
    stage.passes(200)
    assert (stage.state(), stage.coordinator.ends.append_retries) == (S.COMPLETE_COMMIT, 0)


@pytest.mark.parametrize("commit", [True, False])
def test_the_next_leader_completes_what_was_decided(stage: Stage, commit: bool) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer, commit=commit)
    stage.resign(1)
    stage.lead(2)
    assert [each.marker.coordinator_epoch for each in stage.markers.asked] == [0, 0, 2, 2]
    stage.markers.settle()  # of the former leadership: too late
    assert stage.state() is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
    stage.markers.settle()
    assert stage.state() is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)


def test_the_next_leader_goes_on_with_an_open_transaction(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.resign(1)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        stage.add(producer)
    stage.lead(2)
    assert stage.add(producer) is E.NONE
    assert stage.end(producer)[0] is E.NONE


def test_a_storm_of_leader_changes_9235_9307_15468(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    for epoch in range(1, 40, 2):
        stage.resign(epoch)
        stage.lead(epoch + 1)
    stage.coordinator.lead(KEPT_IN, 41)  # a new epoch of the same leader: nothing is loaded again
    assert len({each.marker.coordinator_epoch for each in stage.markers.asked}) == 21
    while stage.markers.waiting:
        stage.markers.settle()
    assert stage.state() is S.COMPLETE_COMMIT
    assert stage.log.states.count(S.COMPLETE_COMMIT) == 1


def test_a_fenced_coordinator_leaves_its_markers_to_the_next(stage: Stage) -> None:
    producer = open_transaction(stage)
    stage.markers.at_once = False
    stage.end(producer)
    stage.markers.settle(E.TRANSACTION_COORDINATOR_FENCED)
    stage.passes(500)
    assert not stage.markers.waiting
    assert stage.state() is S.PREPARE_COMMIT


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_ids_expire_in_bounded_batches_13099(stage: Stage, count: int) -> None:
    value = encode_transaction(_unused(stage), 0)
    stage.resign(1)
    stage.log.written = [(encode_key(f"id-{number}"), value) for number in range(count)]
    stage.lead(2)
    assert len(stage.coordinator.list_transactions()) == count
    stage.clock.advance(8 * DAY_MS)
    stage.log.batches.clear()
    stage.coordinator.expire_ids()
    assert stage.coordinator.list_transactions() == []
    assert max(stage.log.batches) <= 1_000
    assert sum(value is None for _, value in stage.log.written) == count


def _unused(stage: Stage) -> Transaction:
    stage.init("unused")
    return stage.coordinator.describe("unused")


def test_ids_in_use_do_not_expire(stage: Stage) -> None:
    open_transaction(stage, "open")
    stage.clock.advance(8 * DAY_MS)
    stage.coordinator.expire_ids()
    assert [each.transactional_id for each in stage.coordinator.list_transactions()] == ["open"]


def test_epochs_at_their_end_18660_20090(stage: Stage) -> None:
    _, producer = stage.init()
    at_end = stage.coordinator.describe("t").move_to(S.EMPTY, producer_epoch=EPOCH_MAX - 2)
    stage.resign(1)
    stage.log.written = [(encode_key("t"), encode_transaction(at_end, 0))]
    stage.lead(2)
    assert stage.init() == (E.NONE, Producer(producer.id, EPOCH_MAX - 1))
    stage.add(Producer(producer.id, EPOCH_MAX - 1))
    assert stage.init()[0] is E.CONCURRENT_TRANSACTIONS
    assert stage.coordinator.describe("t").producer_epoch == EPOCH_MAX
    error, fresh = stage.init()
    assert (error, fresh.epoch) == (E.NONE, 0)
    assert fresh.id != producer.id


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_maximum_is_refused(stage: Stage, timeout_ms: int) -> None:
    with pytest.raises(KafkaError, match="INVALID_TRANSACTION_TIMEOUT"):
        stage.coordinator.init_producer_id("t", timeout_ms, None, lambda error, producer: None)


def test_an_unknown_id_and_an_empty_one(stage: Stage) -> None:
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_ID_MAPPING"):
        stage.add(Producer(1, 0), name="unknown")
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        stage.add(Producer(1, 0), name="")
    with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        stage.coordinator.describe("unknown")


def test_a_begin_counts_when_it_is_replicated_redpanda_6018(stage: Stage) -> None:
    """A begin that is in memory alone is gone with an election, and records confirmed under it with it."""
    _, producer = stage.init()
    stage.log.at_once = False
    answers: list[ErrorCode] = []
    stage.coordinator.add_partitions("t", producer, (ORDERS,), answers.append)
    assert answers == [], "not before all replicas have it"
    assert stage.coordinator.verify("t", producer, (ORDERS,)) == {ORDERS: E.TRANSACTION_ABORTABLE}
    stage.log.written.pop()  # the next leader doesn't have it
    stage.log.settle(E.NOT_LEADER_OR_FOLLOWER)
    assert answers == [E.NOT_COORDINATOR]
    stage.resign(1)
    stage.log.at_once = True
    stage.lead(2)
    assert stage.coordinator.verify("t", producer, (ORDERS,)) == {ORDERS: E.TRANSACTION_ABORTABLE}
    assert (stage.add(producer), stage.end(producer)[0]) == (E.NONE, E.NONE)


def test_a_marker_for_a_group_follows_its_coordinator_redpanda_10669(stage: Stage) -> None:
    """The group's partition has another leader by now: the abort goes there, and is not over before."""
    producer = open_transaction(stage)
    stage.markers.at_once = False
    assert stage.end(producer, commit=False)[0] is E.NONE
    stage.publish(leader=1)
    stage.markers.settle(E.NOT_LEADER_OR_FOLLOWER)
    stage.passes(300)
    assert (stage.state(), stage.markers.waiting) == (S.PREPARE_ABORT, [])
    stage.publish(leader=0)
    stage.passes(300)
    stage.markers.settle()
    assert stage.state() is S.COMPLETE_ABORT


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_decided_is_never_answered_with_an_unknown_error_franz_go_1348(
    stage: Stage, commit: bool
) -> None:
    """Clients take −1 as the end of the transaction; what was decided is told when they ask again."""
    producer = open_transaction(stage)
    stage.markers.at_once = False
    assert stage.end(producer, commit=commit)[0] is E.NONE
    for error in (E.UNKNOWN_SERVER_ERROR, E.NOT_LEADER_OR_FOLLOWER):
        assert stage.end(producer, commit=commit)[0] is E.CONCURRENT_TRANSACTIONS
        stage.markers.settle(error)
        stage.passes(100)
    stage.markers.settle()
    assert stage.end(producer, commit=commit)[0] is E.NONE
    assert stage.end(producer, commit=not commit)[0] is E.INVALID_TXN_STATE


def test_markers_of_ends_that_were_decided_together_are_one_write(stage: Stage) -> None:
    producers = {name: open_transaction(stage, name) for name in ("a", "b", "c")}
    before = len(stage.log.batches)
    with stage.coordinator._writer.deferred():
        answers: list[E] = []
        for name, producer in producers.items():
            stage.coordinator.end(name, producer, lambda error, _: answers.append(error), commit=True)
    assert answers == [E.NONE] * 3
    assert stage.markers.writes == [6]
    assert stage.log.batches[before:] == [3, 3], "decisions, completions"
    assert {stage.state(name) for name in producers} == {S.COMPLETE_COMMIT}


def test_ends_whose_batch_is_replicated_later_have_their_markers_in_one_write(stage: Stage) -> None:
    """By a thread that flushes after each turn, as that which hears of a smaller ISR."""
    producers = {name: open_transaction(stage, name) for name in ("a", "b", "c")}
    before = len(stage.log.batches)
    stage.log.at_once = False
    with stage.coordinator._writer.deferred():
        answers: list[E] = []
        for name, producer in producers.items():
            stage.coordinator.end(name, producer, lambda error, _: answers.append(error), commit=True)
    assert answers == []
    stage.log.settle()
    assert answers == [E.NONE] * 3
    assert stage.markers.writes == [6]
    stage.log.settle()
    assert stage.log.batches[before:] == [3, 3], "decisions, completions"
    assert {stage.state(name) for name in producers} == {S.COMPLETE_COMMIT}


def test_a_slow_partition_holds_up_only_its_own_transactions(stage: Stage) -> None:
    producers = {name: open_transaction(stage, name) for name in ("a", "b")}
    stage.markers.at_once = False
    with stage.coordinator._writer.deferred():
        for name, producer in producers.items():
            stage.coordinator.end(name, producer, lambda error, _: None, commit=True)
    ((_, settle),) = stage.markers.waiting
    for slot in (0, 1, 2):
        settle(slot, E.NONE)
    assert (stage.state("a"), stage.state("b")) == (S.COMPLETE_COMMIT, S.PREPARE_COMMIT)
    settle(3, E.NONE)
    assert stage.state("b") is S.COMPLETE_COMMIT
