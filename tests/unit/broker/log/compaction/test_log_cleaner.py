"""Cleaner threads: the log that they take, their checkpoint, and logs that change under them."""

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compacting import COMPACTED, Hosted, clean, entries_of
from log_building import NEVER, START_MS, TP, append
from log_site import Site

from odradek.base.clock import SYSTEM_CLOCK, ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.log.compaction.cleaned_offsets import CleanedOffsets
from odradek.broker.log.compaction.log_cleaner import IoThrottle, LogCleaner
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.checkpoint import read_offsets, write_offsets
from odradek.broker.log.files.log_environment import LogEnvironment
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.checkpoints import CLEANER_FILE
from odradek.model.topology import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Broker:
    """A directory with logs, as a cleaner sees them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hosts: dict[TopicPartition, Hosted] = {}
        self.failures: list[OSError] = []
        self.cleaned = CleanedOffsets()
        config = BrokerConfig.from_properties(
            {"zookeeper.connect": "nowhere:1", "log.dirs": str(directory), "log.cleaner.backoff.ms": "10"}
        )
        self.cleaner = LogCleaner(config, self.hosts, self.cleaned, SYSTEM_CLOCK)

    def host(self, tp: TopicPartition, config: LogConfig = COMPACTED) -> Hosted:
        environment = LogEnvironment(
            clock=ManualClock(START_MS),
            background=NEVER,
            on_failure=lambda directory, error: self.failures.append(error),
            on_truncate=self.cleaned.lower,
        )
        log = PartitionLog.open(self.directory / str(tp), tp, config, environment=environment)
        self.hosts[tp] = Hosted(log)
        return self.hosts[tp]

    def clean_once(self) -> bool:
        return self.cleaner.clean_filthiest(self.cleaner.new_cleaner())

    @property
    def checkpoint(self) -> dict[TopicPartition, int]:
        return read_offsets(self.directory / CLEANER_FILE)


def _fill(host: Hosted, records: int) -> None:
    for number in range(records):
        host.put(("key", str(number)))
    host.log.roll()


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_the_filthiest_log_comes_first_and_its_end_is_written_down(broker: Broker) -> None:
    _fill(broker.host(A), 5)
    _fill(broker.host(B), 5)
    assert broker.clean_once()
    assert broker.clean_once()
    assert not broker.clean_once()
    assert broker.checkpoint == {A: 5, B: 5}
    _fill(broker.hosts[B], 9)
    assert broker.clean_once()
    assert broker.checkpoint == {A: 5, B: 14}
    assert [offset for offset, _, _ in entries_of(broker.hosts[B].log)] == [13]


def test_a_log_that_only_deletes_is_left_alone(broker: Broker) -> None:
    _fill(broker.host(A, LogConfig(segment_bytes=400)), 5)
    assert not broker.clean_once()
    assert len(entries_of(broker.hosts[A].log)) == 5


def test_a_truncation_lowers_the_checkpoint_before_it_cuts(broker: Broker) -> None:
    host = broker.host(A)
    _fill(host, 5)
    _fill(host, 5)
    assert broker.clean_once()
    assert broker.checkpoint == {A: 10}
    host.log.truncate_to(7)
    assert broker.checkpoint == {A: 7}
    host.log.truncate_fully_and_start_at(3)
    assert broker.checkpoint == {A: 3}


def test_a_truncation_while_it_is_cleaned_gives_the_cleaning_up(broker: Broker) -> None:
    host = broker.host(A)
    _fill(host, 8)
    write_offsets(broker.directory / CLEANER_FILE, {A: 0})
    lock, cuts = host.lock, list[bool]()

    class CutsBeforeTheFirstSwap:
        def __enter__(self) -> None:
            if not cuts:
                cuts.append(host.log.truncate_to(5))
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    host.lock = CutsBeforeTheFirstSwap()  # type: ignore[assignment]
    assert not broker.clean_once()
    assert cuts == [True]
    assert broker.checkpoint == {A: 0}
    assert len(entries_of(host.log)) == 5
    assert not broker.cleaner.uncleanable


def test_a_log_that_is_deleted_while_it_is_cleaned_is_given_up(broker: Broker) -> None:
    host = broker.host(A)
    _fill(host, 5)
    lock = host.lock

    class DeletedMeanwhile:
        def __enter__(self) -> None:
            if broker.hosts.pop(A, None):
                host.log.rename(broker.directory / "a-0.0-delete")
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    host.lock = DeletedMeanwhile()  # type: ignore[assignment]
    assert not broker.clean_once()
    assert broker.checkpoint == {}
    assert not broker.failures
    assert not broker.cleaner.uncleanable


def test_what_the_file_says_is_believed_only_of_logs_that_reach_so_far(broker: Broker) -> None:
    _fill(broker.host(A), 5)
    _fill(broker.host(B), 5)
    gone = TopicPartition("gone", 3)
    write_offsets(broker.directory / CLEANER_FILE, {A: 6, B: 5, gone: 1})
    broker.cleaned.load(broker.directory, [host.log for host in broker.hosts.values()])
    assert broker.checkpoint == {B: 5}
    assert (broker.cleaned.of(broker.hosts[A].log), broker.cleaned.of(broker.hosts[B].log)) == (None, 5)
    broker.cleaned.forget(broker.directory, B)
    assert broker.cleaned.of(broker.hosts[B].log) is None
    broker.cleaned.begin(broker.directory, B)
    assert broker.checkpoint == {}


def test_log_directories_keep_it_over_a_restart_and_lower_and_forget_it(tmp_path: Path) -> None:
    site = Site(tmp_path, cleanup_policy="compact")
    log = site.create()
    for value in "abc":
        append(log, value)
    site.dirs.cleaned.put(log, 3)
    site.stop()
    site = Site(tmp_path, cleanup_policy="compact")
    log = site.create()
    assert site.dirs.cleaned.of(log) == 3
    log.truncate_to(1)
    assert read_offsets(tmp_path / CLEANER_FILE) == {TP: 1}
    site.dirs.delete(TP)
    assert site.dirs.cleaned.of(site.create()) is None
    assert read_offsets(tmp_path / CLEANER_FILE) == {}
    site.stop()


def test_bytes_that_make_no_sense_are_reported_once_and_left_alone(broker: Broker) -> None:
    _fill(broker.host(A), 5)
    path = broker.hosts[A].log.segments[0].path
    damaged = path.read_bytes()[:-3] + b"\xff\xff\xff"
    path.write_bytes(damaged)
    assert not broker.clean_once()
    assert broker.cleaner.uncleanable == {A: broker.hosts[A].log}
    assert not broker.clean_once()
    assert path.read_bytes() == damaged
    assert not broker.failures
    broker.hosts.pop(A).log.delete()
    _fill(broker.host(A), 5)  # another log of the same name
    assert broker.clean_once()


def test_a_log_that_cannot_even_be_assessed_does_not_stop_the_others(broker: Broker) -> None:
    _fill(broker.host(A, replace(COMPACTED, max_compaction_lag_ms=1)), 5)
    _fill(broker.host(B), 5)
    segment = broker.hosts[A].log.segments[0]
    segment.path.write_bytes(bytes(segment.size))
    segment.close()
    segment.known_first_timestamp = None
    assert broker.clean_once()
    assert broker.checkpoint == {B: 5}
    assert broker.cleaner.uncleanable.keys() == {A}


def test_a_disk_that_fails_takes_the_directory_with_it(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(broker.host(A), 5)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("odradek.broker.log.files.segment.pwrite", full)
    assert not broker.clean_once()
    assert [error.errno for error in broker.failures] == [errno.ENOSPC]
    assert not list((broker.directory / str(A)).glob("*.cleaned"))


def test_threads_clean_what_comes_and_stop_when_told(broker: Broker) -> None:
    _fill(broker.host(A), 5)
    broker.cleaner.start()
    try:
        _until(lambda: broker.checkpoint == {A: 5})
        with broker.hosts[A].lock:
            _fill(broker.hosts[A], 5)
        _until(lambda: broker.checkpoint == {A: 10})
    finally:
        broker.cleaner.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("log-cleaner")]
    assert clean(broker.hosts[A]).records_read == 1


def test_the_throttle_waits_for_as_long_as_the_bytes_should_have_taken() -> None:
    clock, waits = ManualClock(), list[float]()
    throttle = IoThrottle(1000, clock, waits.append)
    throttle.used(5000)
    assert waits == []  # too soon to tell
    clock.advance(400)
    throttle.used(600)
    assert waits == [5.2]
    clock.advance(400)
    throttle.used(300)
    assert waits == [5.2]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
