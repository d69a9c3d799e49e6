"""The coordinator over a real log: what it remembers is what it wrote."""

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from no_verification import NO_VERIFIER
from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.scheduler import Scheduler
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset, decode_key
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining, SyncAnswer, Syncing
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_entry import GroupEntry
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.follower.fetcher_manager import ReplicaFetcherManager
from odradek.broker.replication.leader.fetch_reader import FetchTarget, FetchTerms
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.protocol.record_batch import batches
from odradek.protocol.records import read_records

KEPT_IN = TopicPartition(OFFSETS_TOPIC, 0)
ORDERS = TopicPartition("orders", 0)
DAY_MS = 86_400_000
WAIT_S = 60


class Stage:
    """One broker's coordinator, its time moved by hand; all groups are kept in one partition."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        properties = {
            "broker.id": "0",
            "zookeeper.connect": "unused:1",
            "log.dirs": str(directory),
            "offsets.topic.num.partitions": "1",
            "offsets.load.buffer.size": "300",  # so that replays are made of pieces that end inside of batches
        }
        config = BrokerConfig.from_properties(properties)
        self.topic_config = TopicConfig.of(config, {"cleanup.policy": "compact"})
        self.logs = LogDirs([directory], config, Scheduler(self.clock), self.clock, pytest.fail)
        self.logs.lock()
        self.logs.load()
        self.reaper = ExpirationReaper(self.clock)
        metadata = MetadataCache()
        self.replicas = PartitionTable(0, config, metadata, self.reaper, self.clock, lambda change: None, NO_VERIFIER)
        group_log = GroupLog(config, self.replicas, metadata, self.clock)
        self.groups = GroupCoordinator(config, group_log, self.reaper, self.clock)
        self.roles = ReplicaManager(
            0,
            config,
            self.replicas,
            self.logs,
            metadata,
            self.reaper,
            self.clock,
            fetchers=ReplicaFetcherManager(
                0,
                config,
                self.replicas.partitions.get,
                self.clock,
                self.replicas.wake,
                broker_epoch=lambda: -1,
                quotas=self.replicas.quotas,
            ),
            listeners=(self.groups,),
        )
        self.epoch = -1
        self.topic_id = uuid4()

    def lead(self, *, isr: tuple[int, ...] = (0,), wait: bool = True) -> None:
        self.epoch += 1
        directive = PartitionDirective(KEPT_IN, self.topic_id, LeaderAndIsr(0, self.epoch, isr, 1), isr)
        self.roles.become([directive], lambda _: self.topic_config, controller_id=0, controller_epoch=1)
        if wait:
            self.await_loaded()

    def lead_with_a_record_of_its_own(self, committed: tuple[str, int]) -> None:
        """Lead again after a leadership whose last record is on no follower."""
        self.lead(isr=(0, 1))
        assert self.begin_commit(*committed) == []
        self.roles.stop([KEPT_IN], delete=False)
        self.lead(isr=(0, 1))

    def follower_has_all(self, follower: int) -> None:
        end = self.replicas.partitions[KEPT_IN].log.log_end_offset
        target, terms = FetchTarget(KEPT_IN, self.topic_id, end, 1_000), FetchTerms(0, 1, 1_000, 0, replica_id=follower)
        self.replicas.fetch([target], terms, lambda outcomes: None)

    def fail_over(self) -> None:
        """Another broker led in between."""
        self.roles.stop([KEPT_IN], delete=False)
        self.lead()

    def await_loaded(self) -> None:
        table = self.groups._table.states
        table._loader.submit(lambda: table._unloader.submit(int).result()).result(WAIT_S)

    def passes(self, ms: int) -> None:
        for _ in range(ms // 1_000):
            self.clock.advance(1_000)
            self.reaper.expire_due()

    def stop(self) -> None:
        self.groups.stop()
        self.logs.close()
        self.logs.unlock()

    # ---- a member

    def join(self, group_id: str, member_id: str = "") -> list[JoinAnswer]:
        answers: list[JoinAnswer] = []
        joining = Joining(member_id, "m", None, "client", "/h", 10_000, 60_000, "consumer", (("range", b""),))
        self.groups.join(group_id, joining, answers.append)
        return answers

    def become_stable(self, group_id: str) -> None:
        joined = self.join(group_id)
        self.passes(3_000)
        assert joined[0].error is ErrorCode.NONE
        synced: list[SyncAnswer] = []
        self.groups.sync(group_id, Syncing("m", None, 1, {"m": b"all of it"}), synced.append)
        assert synced[0].error is ErrorCode.NONE

    def commit(self, group_id: str, offset: int, member_id: str = "", generation: int = -1) -> ErrorCode:
        (answer,) = self.begin_commit(group_id, offset, member_id, generation)
        return answer[ORDERS]

    def begin_commit(
        self, group_id: str, offset: int, member_id: str = "", generation: int = -1
    ) -> list[dict[TopicPartition, ErrorCode]]:
        """The answers: one in the end."""
        committed = CommittedOffset(offset, -1, "", self.clock.now_ms())
        answers: list[dict[TopicPartition, ErrorCode]] = []
        self.groups.offsets.commit(
            group_id, Committer(member_id, None, generation), {ORDERS: committed}, answers.append
        )
        return answers

    def delete(self, group_id: str) -> ErrorCode:
        answers: list[dict[str, ErrorCode]] = []
        self.groups.offsets.delete_groups([group_id], answers.append)
        (answer,) = answers
        return answer[group_id]

    def delete_offsets(self, group_id: str, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        answers: list[dict[TopicPartition, ErrorCode]] = []
        self.groups.offsets.delete(group_id, partitions, answers.append)
        (answer,) = answers
        return answer

    def committed(self, group_id: str) -> int | None:
        committed = self.groups.offsets.committed(group_id, [ORDERS])[ORDERS]
        return None if committed is None else committed.offset

    def written(self) -> list[tuple[object, bool]]:
        """The keys of all records, and whether they have a value."""
        log = self.replicas.partitions[KEPT_IN].log
        raw = log.read(0, 1 << 20, upper_bound=log.log_end_offset).records.read()
        records = [record for pos, header in batches(raw) for record in read_records(raw, pos, header)]
        return [(decode_key(record.key or b""), record.value is not None) for record in records]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    stage.lead()
    yield stage
    stage.stop()


def error_of(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def test_a_group_and_its_offsets_survive_a_failover(stage: Stage) -> None:
    stage.become_stable("g")
    assert stage.commit("g", 42, "m", 1) is ErrorCode.NONE
    assert stage.commit("simple", 7) is ErrorCode.NONE
    stage.fail_over()
    assert (stage.committed("g"), stage.committed("simple")) == (42, 7)
    description = stage.groups.describe("g")
    assert (description.state, description.protocol) == ("Stable", "range")
    assert [(member.id, member.assignment) for member in description.members] == [("m", b"all of it")]
    assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE


def test_many_commits_are_replayed_in_order(stage: Stage) -> None:
    for offset in range(100):
        stage.commit(f"g{offset % 3}", offset)
    stage.fail_over()
    assert [stage.committed(f"g{index}") for index in range(3)] == [99, 97, 98]


def test_a_member_that_does_not_survive_the_failover_is_missed(stage: Stage) -> None:
    stage.become_stable("g")
    stage.fail_over()
    stage.passes(9_000)
    assert stage.groups.describe("g").state == "Stable"
    stage.passes(2_000)
    assert stage.groups.describe("g").state == "Empty"


def test_heartbeats_keep_a_member_and_their_absence_loses_it(stage: Stage) -> None:
    stage.become_stable("g")
    for _ in range(10):
        stage.passes(9_000)
        assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE
    stage.passes(11_000)
    assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_that_cannot_be_written_never_was(stage: Stage) -> None:
    stage.commit("g", 1)
    partition = stage.replicas.partitions.pop(KEPT_IN)
    assert stage.commit("g", 2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.committed("g") == 1
    stage.replicas.partitions[KEPT_IN] = partition


def test_whoever_waits_is_told_when_the_group_goes_elsewhere(stage: Stage) -> None:
    answers = stage.join("g")
    stage.roles.stop([KEPT_IN], delete=False)
    stage.await_loaded()
    assert [answer.error for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    with pytest.raises(KafkaError) as error:
        stage.join("g")
    assert error_of(error) is ErrorCode.NOT_COORDINATOR


def test_while_loading_clients_are_told_to_ask_again(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.roles.stop([KEPT_IN], delete=False)
    go_on = threading.Event()
    stage.groups._table.states._loader.submit(go_on.wait, WAIT_S)
    stage.lead(wait=False)
    with pytest.raises(KafkaError) as error:
        stage.committed("g")
    assert error_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE
    with pytest.raises(KafkaError) as error:
        stage.groups.list_groups()
    assert error_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    go_on.set()


def test_no_answer_depends_on_records_that_are_not_committed(stage: Stage) -> None:
    """If this coordinator died now, the next one would not have them."""
    stage.lead_with_a_record_of_its_own(("g", 7))
    with pytest.raises(KafkaError) as error:
        stage.committed("g")
    assert error_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.passes(10_000)  # the time for an append: it asks again
    with pytest.raises(KafkaError) as error:
        stage.committed("g")
    assert error_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.follower_has_all(1)
    stage.await_loaded()
    assert stage.committed("g") == 7


def test_a_leader_that_resigns_before_its_records_are_committed_serves_nothing(stage: Stage) -> None:
    stage.lead_with_a_record_of_its_own(("g", 7))
    stage.roles.stop([KEPT_IN], delete=False)
    stage.await_loaded()
    with pytest.raises(KafkaError) as error:
        stage.committed("g")
    assert error_of(error) is ErrorCode.NOT_COORDINATOR
    stage.lead()
    assert stage.committed("g") == 7


def test_who_asks_while_a_load_ends_is_not_told_that_nothing_was_committed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.commit("g", 7)
    stage.roles.stop([KEPT_IN], delete=False)
    table, go_on = stage.groups._table.states, threading.Event()
    table._loader.submit(go_on.wait, WAIT_S)
    stage.lead(wait=False)

    class LoadedMeanwhile(dict[str, GroupEntry]):
        """The load ends as soon as somebody has looked and found nothing."""

        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
            found = super().get(key)
            if not go_on.is_set():
                go_on.set()
                stage.await_loaded()
            return found

    monkeypatch.setattr(table, "_entries", LoadedMeanwhile())
    assert stage.committed("g") == 7


def test_deleting_a_group_writes_tombstones_and_nothing_comes_back(stage: Stage) -> None:
    stage.become_stable("g")
    stage.commit("g", 42, "m", 1)
    assert stage.delete("g") is ErrorCode.NON_EMPTY_GROUP
    assert stage.groups.leave("g", "m", None) is ErrorCode.NONE
    assert stage.delete("g") is ErrorCode.NONE
    assert [has_value for _, has_value in stage.written()[-2:]] == [False, False]
    stage.fail_over()
    assert stage.groups.list_groups() == []
    assert stage.delete("g") is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_expire_and_the_group_with_them(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.clock.advance(7 * DAY_MS - 1)
    stage.groups.expire_offsets()
    assert stage.committed("g") == 1
    stage.clock.advance(1)
    stage.groups.expire_offsets()
    assert stage.committed("g") is None
    assert stage.groups.list_groups() == []
    stage.fail_over()
    assert stage.committed("g") is None


def test_a_deleted_topic_takes_its_offsets_along(stage: Stage) -> None:
    stage.commit("g", 1)
    stage.groups.forget_topic("other")
    assert stage.committed("g") == 1
    stage.groups.forget_topic("orders")
    assert stage.committed("g") is None


def test_offsets_of_a_topic_that_is_read_stay(stage: Stage) -> None:
    with pytest.raises(KafkaError) as error:
        stage.delete_offsets("g", [ORDERS])
    assert error_of(error) is ErrorCode.GROUP_ID_NOT_FOUND
    stage.become_stable("g")
    stage.commit("g", 1, "m", 1)
    # The member's subscription can't be read, so it may be anything.
    assert stage.delete_offsets("g", [ORDERS]) == {ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    stage.groups.leave("g", "m", None)
    assert stage.delete_offsets("g", [ORDERS]) == {ORDERS: ErrorCode.NONE}
    assert stage.committed("g") is None


def test_what_is_refused(stage: Stage) -> None:
    with pytest.raises(KafkaError) as error:
        stage.join("")
    assert error_of(error) is ErrorCode.INVALID_GROUP_ID
    with pytest.raises(KafkaError) as error:
        stage.join("g", "unknown")
    assert error_of(error) is ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError) as error:
        stage.commit("g", 1, "unknown", 1)
    assert error_of(error) is ErrorCode.ILLEGAL_GENERATION
    brief = Joining("", "m", None, "client", "/h", 5_999, 60_000, "consumer", (("range", b""),))
    with pytest.raises(KafkaError) as error:
        stage.groups.join("g", brief, lambda answer: None)
    assert error_of(error) is ErrorCode.INVALID_SESSION_TIMEOUT
    answers: list[dict[TopicPartition, ErrorCode]] = []
    wordy = {ORDERS: CommittedOffset(1, -1, "x" * 4097, 0)}
    stage.groups.offsets.commit("g", Committer(), wordy, answers.append)
    assert answers == [{ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE}]
    assert stage.groups.describe("nobody").state == "Dead"
