"""Transactions in a log: what is open, what was aborted, and that no stop, crash or cut makes it forget either."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_building import SMALL
from transacting import TransactionalLog

from odradek.base.errors import KafkaError
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.transaction_index import TransactionIndex
from odradek.format.transaction_index import AbortedTransaction
from odradek.protocol.record_batch import read_header

TINY = LogConfig(segment_bytes=250, index_interval_bytes=60)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the process loses nothing that was written, synced or not."""
    monkeypatch.setattr("os.fsync", lambda fd: None)


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 4)),
    st.tuples(st.just("commit"), st.integers(1, 4)),
    st.tuples(st.just("abort"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["roll", "flush", "crash", "restart"]), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_open_and_aborted_transactions_survive_everything(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    written = TransactionalLog(directory / "t-0", TINY)
    for name, number in steps:
        match name:
            case "put":
                written.put(number)
            case "commit" | "abort":
                written.end(number, committed=name == "commit")
            case "truncate":
                written.truncate(max(0, written.log.log_end_offset - number))
            case "roll":
                written.log.roll()
            case "flush":
                written.log.flush()
            case "crash":
                written.crash()
            case "restart":
                written.restart()
        written.check()
    written.log.close(clean=False)
    shutil.rmtree(directory)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["put", "commit", "abort", "copy"]), st.integers(1, 3)), max_size=30))
def test_a_follower_that_copies_many_batches_at_once_knows_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    leader, follower = TransactionalLog(directory / "t-0"), TransactionalLog(directory / "t-1")
    for name, number in [*steps, ("copy", 0)]:
        match name:
            case "put":
                leader.put(number)
            case "commit" | "abort":
                leader.end(number, committed=name == "commit")
            case "copy":
                follower.copy(leader)
                follower.check()
    for log in (leader.log, follower.log):
        log.close(clean=False)
    shutil.rmtree(directory)


def test_a_transaction_that_began_between_two_of_another_producer_is_not_shown_by_a_follower(tmp_path: Path) -> None:
    """All of it came in one fetch, in which the other producer was there first."""
    leader, follower = TransactionalLog(tmp_path / "t-0"), TransactionalLog(tmp_path / "t-1")
    leader.put(1)
    leader.end(1, committed=True)
    leader.put(2)
    leader.put(1)
    follower.copy(leader)
    follower.check()
    assert follower.log.producers.transactions.first_unstable_offset == 2


def test_a_crash_at_any_byte_keeps_every_whole_marker(tmp_path: Path) -> None:
    """Cut anywhere in the last batches: the transaction is open again exactly where its marker is gone."""
    written = TransactionalLog(tmp_path / "t-0", replace(SMALL, segment_bytes=10_000))
    written.put(1)
    written.put(2)
    written.end(1, committed=False)
    written.put(1)
    written.end(2, committed=False)
    written.log.close(clean=False)
    segment = tmp_path / "t-0" / f"{0:020}.log"
    data = segment.read_bytes()
    ends, position = [], 0
    while position < len(data):
        position += read_header(data, position).size
        ends.append(position)
    for size in range(ends[1], len(data) + 1):
        copy = tmp_path / f"cut-{size}"
        shutil.copytree(tmp_path / "t-0", copy)
        (copy / segment.name).write_bytes(data[:size])
        cut = TransactionalLog(copy)
        whole = sum(1 for end in ends if end <= size)
        cut.written = written.written[:whole]
        cut.check()
        cut.log.close(clean=False)


def test_kafka_7866_a_failed_index_write_fails_the_append_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = TransactionalLog(tmp_path / "t-0")
    written.put(1)
    before = dict(written.log.producers.entries), written.log.log_end_offset, written.log.segments[-1].size

    def full(self: TransactionIndex, aborted: AbortedTransaction) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(TransactionIndex, "append", full)
        with pytest.raises(KafkaError):
            written.end(1, committed=False)
    after = dict(written.log.producers.entries), written.log.log_end_offset, written.log.segments[-1].size
    assert after == before
    written.crash()
    written.check()


def test_kafka_6683_state_changes_after_the_append_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = TransactionalLog(tmp_path / "t-0")
    written.put(1)

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("odradek.broker.log.files.segment.pwrite", broken)
        with pytest.raises(KafkaError):
            written.end(1, committed=False)
    assert written.log.producers.transactions.first_unstable_offset == 0
    written.crash()
    written.check()


def test_kafka_12153_a_cut_into_a_transaction_opens_it_again(tmp_path: Path) -> None:
    written = TransactionalLog(tmp_path / "t-0", TINY)
    for _ in range(6):
        written.put(1)
    written.end(1, committed=False)
    written.put(1)
    written.truncate(7)
    written.check()
    written.truncate(6)
    written.check()
    assert written.open_transactions() == {1: 0}
    written.end(1, committed=True)
    written.crash()
    written.check()


def test_kafka_9892_a_snapshot_is_never_ahead_of_the_log(tmp_path: Path) -> None:
    written = TransactionalLog(tmp_path / "t-0", TINY)
    for _ in range(5):
        written.put(1)
    written.restart()
    written.truncate(3)
    newest = max(int(path.stem) for path in (tmp_path / "t-0").glob("*.snapshot"))
    assert newest <= written.log.log_end_offset
    written.crash()
    written.check()


def test_kafka_9144_an_open_transaction_does_not_expire(tmp_path: Path) -> None:
    written = TransactionalLog(tmp_path / "t-0")
    written.put(1)
    assert written.log.producers.remove_expired(now_ms=2**62) == 0
    written.end(1, committed=True)
    assert written.log.producers.remove_expired(now_ms=2**62) == 1


def test_the_aborted_list_covers_what_is_read_and_no_more(tmp_path: Path) -> None:
    """A long history of aborts must not travel with each small read."""
    written = TransactionalLog(tmp_path / "t-0", LogConfig(segment_bytes=3_000, index_interval_bytes=200))
    for producer_id in range(1, 60):
        written.put(producer_id)
        written.end(producer_id, committed=False)
    end = written.log.log_end_offset
    assert len(written.log.segments) > 2
    for offset in (0, 31, 70, end - 4):
        found, aborted = written.log.read_committed(offset, 200, upper_bound=end, min_one_batch=True)
        data = found.records.read()
        last = read_header(data).last_offset
        needed = {each.first_offset for each in written.aborted() if each.last_offset >= offset > each.first_offset - 1}
        assert needed <= {each.first_offset for each in aborted}
        assert all(each.last_offset >= offset for each in aborted)
        assert all(each.first_offset <= last + 10 for each in aborted)


def test_redpanda_10671_aborted_transactions_of_several_segments_are_sorted(tmp_path: Path) -> None:
    written = TransactionalLog(tmp_path / "t-0", TINY)
    for producer_id in (3, 1, 2):
        written.put(producer_id)
    for producer_id in (2, 3, 1):
        written.log.roll()
        written.end(producer_id, committed=False)
    found, aborted = written.log.read_committed(0, 1000, upper_bound=6, min_one_batch=True)
    assert found.records.size > 0
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(3, 0), (1, 1), (2, 2)]


def test_a_large_index_is_searched(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "x.txnindex")
    entries = [AbortedTransaction(7, 10 * n, 10 * n + 5, 10 * n + 6) for n in range(1000)]
    for entry in entries:
        index.append(entry)
    assert len(index) == 1000
    for offset in (0, 5, 6, 4_321, 9_995, 9_996, 20_000):
        expected = [e for e in entries if e.last_offset >= offset and e.first_offset < offset + 300]
        assert index.overlapping(offset, offset + 300)[0] == expected
    reopened = TransactionIndex(index.path)
    reopened.append(entries[-1])
    assert len(reopened) == 1000, "it is there already"
    reopened.truncate_to(505)
    assert reopened.entries() == entries[:50]


def test_an_entry_cut_short_is_written_again(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "x.txnindex")
    index.append(AbortedTransaction(1, 0, 5, 6))
    with index.path.open("ab") as file:
        file.write(b"half an entry")
    reopened = TransactionIndex(index.path)
    reopened.append(AbortedTransaction(2, 6, 9, 10))
    assert [each.producer_id for each in reopened.entries()] == [1, 2]
    assert not TransactionIndex(index.path).is_sane(base_offset=7), "an entry of before the segment"
