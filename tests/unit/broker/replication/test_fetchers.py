"""Followers copy a leader's log, whatever state theirs is in, and whatever the leader answers."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_leader import ScriptedLeader, bytes_of, make_log, topic_id, write

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.follower import replica_fetcher_thread as fetch_loop
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment
from odradek.broker.replication.follower.fetcher_manager import ReplicaFetcherManager, loop_number
from odradek.broker.replication.follower.replica_fetcher_thread import ReplicaFetcherThread
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from waiting import eventually

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
LEADER, FOLLOWER = 1, 2


class Copy:
    """A partition as far as its follower's side goes."""

    def __init__(self, log: PartitionLog, epoch: int) -> None:
        self.log = log
        self.epoch = epoch
        self.high_watermark = log.log_start_offset
        self.cuts: list[int] = []

    def append_fetched(
        self, records: memoryview, *, leader_epoch: int, high_watermark: int, log_start_offset: int
    ) -> None:
        self._check(leader_epoch)
        self.log.append_as_follower(records)
        self.high_watermark = min(high_watermark, self.log.log_end_offset)
        if log_start_offset <= self.high_watermark:
            self.log.maybe_advance_log_start(log_start_offset)

    def truncate_to(self, offset: int, *, leader_epoch: int) -> None:
        self._check(leader_epoch)
        self.cuts.append(offset)
        self.log.truncate_to(offset)

    def start_over_at(self, offset: int, *, leader_epoch: int) -> None:
        self._check(leader_epoch)
        self.log.truncate_fully_and_start_at(offset)

    def _check(self, leader_epoch: int) -> None:
        if leader_epoch != self.epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


class Stage:
    """One leader, one follower, and the partitions on both."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.leader = ScriptedLeader(epoch=5)
        self.copies: dict[TopicPartition, Copy] = {}
        self.advanced: list[TopicPartition] = []
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        config = BrokerConfig.from_properties({"zookeeper.connect": "zk"} | properties)
        self.quotas = ReplicationQuotas(FOLLOWER, config, SYSTEM_CLOCK)
        self.fetchers = ReplicaFetcherManager(
            FOLLOWER,
            config,
            lambda tp: self.copies.get(tp),
            SYSTEM_CLOCK,
            self.advanced.append,
            broker_epoch=lambda: 77,
            quotas=self.quotas,
        )

    def lead(self, tp: TopicPartition, *epochs: tuple[int, int]) -> PartitionLog:
        log = make_log(self.directory / "leader", tp, *epochs)
        log.begin_epoch(self.leader.epoch)
        self.leader.logs[tp] = log
        return log

    def follow(self, tp: TopicPartition, *epochs: tuple[int, int], order: bool = True) -> Copy:
        self.copies[tp] = Copy(make_log(self.directory / "follower", tp, *epochs), self.leader.epoch)
        if order:
            self.fetchers.follow({tp: self.order(tp)})
        return self.copies[tp]

    def order(self, tp: TopicPartition) -> FetchAssignment:
        return FetchAssignment(self.leader.endpoint, LEADER, self.copies[tp].epoch, topic_id(tp.topic))

    def until_equal(self, tp: TopicPartition) -> None:
        ours, theirs = self.copies[tp].log, self.leader.logs[tp]
        eventually(lambda: ours.log_end_offset == theirs.log_end_offset and self.copies[tp].high_watermark > 0)
        assert bytes_of(ours) == bytes_of(theirs)

    def last_asked_for(self) -> list[int]:
        return [wanted.partition for topic in self.leader.fetches()[-1].topics for wanted in topic.partitions]

    def stop(self) -> None:
        self.fetchers.stop()
        self.leader.stop()


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(**settings: str) -> Stage:
        stages.append(Stage(tmp_path, **settings))
        return stages[-1]

    yield make
    for stage in stages:
        stage.stop()


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(replica_fetch_backoff_ms="50")


def test_the_copy_is_the_leaders_log_byte_for_byte(stage: Stage) -> None:
    theirs = stage.lead(TP, (0, 30), (3, 31))
    copy = stage.follow(TP)
    stage.until_equal(TP)
    write(theirs, 5, 40)
    stage.until_equal(TP)

    eventually(lambda: copy.high_watermark == theirs.log_end_offset)
    assert copy.log.epochs.entries == theirs.epochs.entries
    assert set(stage.advanced) == {TP}


def test_a_fetcher_that_can_not_be_started_takes_no_orders(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are too many threads. The next order starts another one."""

    def fail(thread: ReplicaFetcherThread) -> None:
        raise RuntimeError("can't start new thread")

    stage.lead(TP, (5, 3))
    stage.follow(TP, order=False)
    with monkeypatch.context() as full:
        full.setattr(ReplicaFetcherThread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            stage.fetchers.follow({TP: stage.order(TP)})
    stage.fetchers.follow({TP: stage.order(TP)})
    stage.until_equal(TP)


def test_the_leader_learns_who_asks_and_where_the_copy_begins(stage: Stage) -> None:
    stage.lead(TP, (0, 30)).maybe_advance_log_start(10)
    copy = stage.follow(TP, (0, 20))
    eventually(lambda: copy.log.log_end_offset == 30)
    eventually(lambda: stage.leader.fetches()[-1].topics[0].partitions[0].log_start_offset == 10)

    last = stage.leader.fetches()[-1]
    assert last.replica_state is not None
    assert (last.replica_state.replica_id, last.replica_state.replica_epoch) == (FOLLOWER, 77)


def test_an_order_does_not_wait_for_a_fetch_that_waits_for_news(make_stage: Callable[..., Stage]) -> None:
    """The test's limit is shorter than the wait."""
    stage = make_stage(
        replica_fetch_wait_max_ms="110000", replica_socket_timeout_ms="115000", replica_lag_time_max_ms="120000"
    )
    stage.lead(TP, (0, 4))
    stage.lead(OTHER, (0, 4))
    stage.follow(TP)
    stage.until_equal(TP)
    stage.follow(OTHER)
    stage.until_equal(OTHER)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param([(0, 4), (2, 6)], [(0, 4), (1, 4)], id="an epoch that the leader never saw"),
        pytest.param([(0, 4), (2, 6)], [(0, 10)], id="a tail of an epoch that ended earlier"),
        pytest.param([(0, 2), (2, 2), (4, 8)], [(0, 2), (1, 2), (3, 4)], id="two fast failovers (KIP-279)"),
        pytest.param([(0, 4), (2, 6)], [(0, 4), (1, 0)], id="it led for an epoch and wrote nothing"),
        pytest.param([(2, 6)], [(0, 4), (1, 4)], id="nothing in common"),
        pytest.param([(0, 20), (2, 6)], [(0, 8)], id="only behind"),
    ],
)
@pytest.mark.parametrize("fetch_version", [17, 12, 11])
def test_a_log_that_parted_from_the_leaders_is_cut_where_they_part(
    stage: Stage, theirs: list[tuple[int, int]], ours: list[tuple[int, int]], fetch_version: int
) -> None:
    stage.leader._fetch_version = fetch_version
    stage.lead(TP, *theirs)
    copy = stage.follow(TP, *ours)
    stage.until_equal(TP)

    assert [entry.epoch for entry in copy.log.epochs.entries] == [epoch for epoch, _ in theirs]
    asked_first = any(isinstance(request, OffsetForLeaderEpochRequest) for request in stage.leader.asked)
    assert asked_first == (fetch_version < 12)


def test_a_stale_high_watermark_cuts_nothing(stage: Stage) -> None:
    """KIP-101: a follower that came back cut its log there, was elected, and what was committed was gone."""
    theirs = stage.lead(TP, (0, 10))
    copy = stage.follow(TP, (0, 10))
    assert copy.high_watermark == 0
    write(theirs, 5, 2)
    stage.until_equal(TP)
    assert copy.cuts == []


def test_the_same_leader_in_a_new_epoch_is_compared_with_again(stage: Stage) -> None:
    """KAFKA-7164: it may have lost its tail, and a follower that only went on would have kept that."""
    theirs = stage.lead(TP, (0, 10))
    copy = stage.follow(TP)
    stage.until_equal(TP)
    copy.epoch = 6
    theirs.truncate_to(6)
    stage.leader.epoch = 6
    theirs.begin_epoch(6)
    write(theirs, 6, 8)
    stage.fetchers.follow({TP: stage.order(TP)})
    eventually(lambda: copy.log.epochs.latest_epoch == 6)
    stage.until_equal(TP)
    assert copy.cuts == [6]


def test_a_copy_that_ends_before_the_leaders_log_begins_starts_over(stage: Stage) -> None:
    theirs = stage.lead(TP, (0, 100))
    theirs.maybe_advance_log_start(60)
    theirs.delete_expired(1, theirs.log_end_offset)
    copy = stage.follow(TP, (0, 10))
    eventually(lambda: copy.log.log_end_offset == 100)

    assert copy.log.log_start_offset == 60
    assert bytes_of(theirs).endswith(bytes_of(copy.log))


def test_a_copy_without_epochs_that_is_longer_than_the_leaders_log_is_cut(stage: Stage) -> None:
    theirs = stage.lead(TP, (0, 10))
    copy = stage.follow(TP, (0, 20), order=False)
    copy.log.epochs.clear()
    stage.fetchers.follow({TP: stage.order(TP)})
    eventually(lambda: copy.log.log_end_offset == 10)
    write(theirs, 5, 4)
    stage.until_equal(TP)


def test_what_is_corrupt_holds_up_its_own_partition_alone(stage: Stage) -> None:
    stage.lead(TP, (0, 10))
    stage.lead(OTHER, (0, 10))
    stage.leader.spoil.add(TP)
    copy = stage.follow(TP)
    stage.follow(OTHER)
    stage.until_equal(OTHER)
    assert copy.log.log_end_offset == 0

    stage.leader.spoil.clear()
    stage.until_equal(TP)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR]
)
def test_a_leader_that_refuses_is_asked_again(stage: Stage, code: ErrorCode) -> None:
    stage.lead(TP, (0, 10))
    stage.leader.refuse[TP] = code
    stage.follow(TP)
    eventually(lambda: len(stage.leader.fetches()) > 2)
    stage.leader.refuse.clear()
    stage.until_equal(TP)


def test_a_leader_of_a_newer_epoch_is_asked_again_with_the_next_order(stage: Stage) -> None:
    stage.lead(TP, (0, 10))
    stage.lead(OTHER, (0, 10))
    copy = stage.follow(TP, order=False)
    copy.epoch = 4
    stage.fetchers.follow({TP: stage.order(TP)})
    eventually(lambda: len(stage.leader.fetches()) > 0)
    stage.follow(OTHER)
    stage.until_equal(OTHER)
    eventually(lambda: stage.last_asked_for() == [1])

    copy.epoch = 5
    stage.fetchers.follow({TP: stage.order(TP)})
    stage.until_equal(TP)


def test_a_lost_connection_is_made_again(stage: Stage) -> None:
    theirs = stage.lead(TP, (0, 10))
    stage.follow(TP)
    stage.until_equal(TP)
    stage.leader.drop_connections()
    write(theirs, 5, 10)
    stage.until_equal(TP)
    assert stage.leader.connections > 1


def test_what_is_followed_no_longer_is_not_asked_for(stage: Stage) -> None:
    theirs = stage.lead(TP, (0, 10))
    others = stage.lead(OTHER, (0, 10))
    stage.follow(TP)
    stage.follow(OTHER)
    stage.until_equal(TP)
    stage.until_equal(OTHER)
    stage.fetchers.unfollow([TP])
    eventually(lambda: stage.last_asked_for() == [1])
    write(theirs, 5, 2)
    write(others, 5, 2)
    stage.until_equal(OTHER)
    assert stage.copies[TP].log.log_end_offset == 10


def test_a_throttled_partition_waits_while_the_others_go_on(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(replication_quota_window_num="100000")  # what was copied is remembered for longer than the test
    stage.quotas.set_topic("orders", [], [f"0:{FOLLOWER}"])
    stage.quotas.set_rates(None, 0)
    stage.lead(TP, (0, 2))
    theirs = stage.lead(OTHER, (0, 2))
    copy = stage.follow(TP)
    stage.until_equal(TP)
    copy.high_watermark = 0
    stage.fetchers.unfollow([TP])
    copy.epoch = stage.leader.epoch = 6
    write(stage.leader.logs[TP], 6, 2)
    stage.fetchers.follow({TP: stage.order(TP)})  # what it has to catch up with isn't known: it counts as behind
    stage.follow(OTHER)
    write(theirs, 6, 20)
    stage.until_equal(OTHER)
    assert copy.log.log_end_offset == 2

    stage.quotas.set_rates(None, None)
    stage.until_equal(TP)


def test_a_loop_without_partitions_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_loop, "_IDLE_MS", 1)
    stage.lead(TP, (0, 10))
    stage.follow(TP)
    stage.until_equal(TP)
    stage.fetchers.unfollow([TP])
    eventually(lambda: not [t for t in threading.enumerate() if t.name == f"fetcher-{LEADER}-0"])
    stage.fetchers.follow({TP: stage.order(TP)})
    write(stage.leader.logs[TP], 5, 2)
    stage.until_equal(TP)


def test_partitions_go_to_the_loops_that_apache_kafka_gives_them_to() -> None:
    """By its getFetcherId: abs(31 * "orders".hashCode() + partition) % loops; the hash code is -1008770331."""
    assert [loop_number(TopicPartition("orders", n), 3) for n in range(4)] == [
        abs((31 * -1008770331 + n + 2**31) % 2**32 - 2**31) % 3 for n in range(4)
    ]
