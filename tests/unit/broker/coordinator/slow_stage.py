"""A coordinator over a log that takes its time, and what clients say to it."""

import threading
from collections.abc import Callable, Iterable

from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining, SyncAnswer, Syncing
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.groups.group_replay import GroupReplay
from odradek.broker.coordinator.state.state_log import EncodedRecord
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch, read_header
from odradek.protocol.records import Record

KEPT_IN = TopicPartition(OFFSETS_TOPIC, 0)
ORDERS = TopicPartition("orders", 0)
WAIT_S = 60


class SlowLog(GroupLog):
    """One partition in memory. What is appended is replicated when the test says so, oldest first or not."""

    def __init__(self) -> None:
        self.topic = OFFSETS_TOPIC
        self._lock = threading.Lock()
        self.written: list[list[EncodedRecord]] = []
        self.waiting: list[Callable[[ErrorCode], None]] = []
        self.at_once = False
        self.bytes_max: int | None = None  # that one append may have
        self.sweeps = False  # an append completes whatever waited, as one that moves the high watermark does
        self.before_replay: Callable[[], object] = int

    def partition_for(self, group_id: str) -> int:
        return 0

    def append(self, partition: int, records: Iterable[EncodedRecord], done: Callable[[ErrorCode], None]) -> None:
        records = list(records)
        if self.bytes_max is not None and sum(len(key) + len(value or b"") for key, value in records) > self.bytes_max:
            done(ErrorCode.MESSAGE_TOO_LARGE)
            return
        with self._lock:
            self.written.append(records)
            finished = self.waiting.copy() if self.sweeps else []
            del self.waiting[: len(finished)]
            if self.at_once:
                finished.append(done)
            else:
                self.waiting.append(done)
        for each in finished:
            each(ErrorCode.NONE)

    def is_new(self, partition: int) -> bool:
        return not self.written

    def when_committed(self, partition: int, done: Callable[[ErrorCode], None]) -> None:
        done(ErrorCode.NONE)

    def replay(self, partition: int) -> GroupReplay:
        self.before_replay()
        replayed = GroupReplay()
        for records in self.written:
            raw = build_batch([Record(index, 0, key, value) for index, (key, value) in enumerate(records)])
            replayed.apply(raw, 0, read_header(raw))
        return replayed

    def settle(self, error: ErrorCode = ErrorCode.NONE, *, index: int = 0) -> None:
        self.waiting.pop(index)(error)


class Stage:
    def __init__(self) -> None:
        config = BrokerConfig.from_properties({"broker.id": "0", "zookeeper.connect": "unused:1"})
        self.clock = ManualClock(1_700_000_000_000)
        self.log = SlowLog()
        self.reaper = ExpirationReaper(self.clock)
        self.groups = GroupCoordinator(config, self.log, self.reaper, self.clock)

    def lead(self, epoch: int) -> None:
        self.groups.lead(KEPT_IN, epoch)

    def resign(self, epoch: int) -> None:
        self.groups.resign(KEPT_IN, epoch)

    def settle_tenures(self) -> None:
        """All that was to be loaded or given up is."""
        table = self.groups._table.states
        table._loader.submit(int).result(WAIT_S)
        table._unloader.submit(int).result(WAIT_S)

    def commit(
        self, group_id: str, offset: int, member_id: str = "", generation: int = -1, metadata: str = ""
    ) -> list[ErrorCode]:
        answers: list[ErrorCode] = []
        commits = {ORDERS: CommittedOffset(offset, -1, metadata, self.clock.now_ms())}
        self.groups.offsets.commit(
            group_id, Committer(member_id, None, generation), commits, lambda errors: answers.append(errors[ORDERS])
        )
        return answers

    def committed(self, group_id: str) -> int | None:
        committed = self.groups.offsets.committed(group_id, [ORDERS])[ORDERS]
        return None if committed is None else committed.offset

    def delete(self, group_id: str) -> list[ErrorCode]:
        answers: list[ErrorCode] = []
        self.groups.offsets.delete_groups([group_id], lambda errors: answers.append(errors[group_id]))
        return answers

    def join(self, group_id: str, fresh_id: str) -> list[JoinAnswer]:
        answers: list[JoinAnswer] = []
        joining = Joining("", fresh_id, None, "client", "/h", 10_000, 60_000, "consumer", (("range", b""),))
        self.groups.join(group_id, joining, answers.append)
        return answers

    def sync(self, group_id: str, member_id: str, generation: int) -> list[SyncAnswer]:
        answers: list[SyncAnswer] = []
        syncing = Syncing(member_id, None, generation, {member_id: b"all of it"})
        self.groups.sync(group_id, syncing, answers.append)
        return answers

    def passes(self, ms: int) -> None:
        for _ in range(ms // 1_000):
            self.clock.advance(1_000)
            self.reaper.expire_due()
