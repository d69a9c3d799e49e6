"""A transaction coordinator over a log and partitions in memory that take their time."""

import threading
from collections.abc import Callable, Iterable, Sequence

from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer
from odradek.broker.coordinator.state.state_log import EncodedRecord
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter
from odradek.broker.coordinator.transactions.batch_channel import Connect
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.broker.coordinator.transactions.core.transaction_records import decode_key, decode_transaction
from odradek.broker.coordinator.transactions.core.transaction_story import TransactionEvent
from odradek.broker.coordinator.transactions.end_waiters import WAIT_MS
from odradek.broker.coordinator.transactions.marker_sender import LOOKS_UNTIL_GONE, RETRY_BACKOFF_MS
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.broker.log.core.verification import VerificationGuard
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.leader.marker_writer import MarkerToWrite
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.metadata_image import MetadataCache, MetadataImage, PartitionImage, TopicImage
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import ZERO_UUID, Broker, TopicPartition

KEPT_IN = TopicPartition(TRANSACTIONS_TOPIC, 0)
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 0)
WAIT_S = 60
GONE_MS = (LOOKS_UNTIL_GONE + 2) * RETRY_BACKOFF_MS
"""Until a topic is taken for deleted of which the metadata says nothing."""

Answer = tuple[ErrorCode, Producer]


class MemoryLog(TransactionLog):
    """One partition. What is appended is replicated at once, or when the test says so."""

    def __init__(self) -> None:
        self.topic = TRANSACTIONS_TOPIC
        self.written: list[EncodedRecord] = []
        self.batches: list[int] = []
        self.replays = 0
        self.waiting: list[Callable[[ErrorCode], None]] = []
        self.at_once = True
        self.error = ErrorCode.NONE

    def partition_for(self, key: str) -> int:
        return 0

    def append(
        self,
        partition: int,
        records: Iterable[EncodedRecord],
        done: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        records = list(records)
        if self.error:
            done(self.error)
            return
        self.batches.append(len(records))
        self.written += records
        if self.at_once:
            done(ErrorCode.NONE)
        else:
            self.waiting.append(done)

    def is_new(self, partition: int) -> bool:
        return not self.written

    def when_committed(self, partition: int, done: Callable[[ErrorCode], None]) -> None:
        done(ErrorCode.NONE)

    def replay(self, partition: int) -> dict[str, Transaction]:
        self.replays += 1
        found: dict[str, Transaction] = {}
        for key, value in self.written:
            transactional_id = decode_key(key)
            assert transactional_id is not None
            found.pop(transactional_id, None)
            if value is not None:
                found[transactional_id] = decode_transaction(transactional_id, value)
        return found

    def settle(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.waiting.pop(0)(error)

    @property
    def states(self) -> list[TransactionState | None]:
        """States of the records, in order."""
        return [None if value is None else decode_transaction("", value).state for _, value in self.written]


class Markers:
    """Partitions of this broker, which take markers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[MarkerToWrite] = []
        self.writes: list[int] = []
        self.waiting: list[tuple[Sequence[MarkerToWrite], Callable[[int, ErrorCode], None]]] = []
        self.at_once = True
        self.error = ErrorCode.NONE  # of markers that are settled at once
        self.fault: Exception | None = None
        """Raised by the next write."""

    def write_each(self, markers: Sequence[MarkerToWrite], settle: Callable[[int, ErrorCode], None]) -> None:
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.asked += markers
        self.writes.append(len(markers))
        self.waiting.append((markers, settle))
        if self.at_once:
            self.settle(self.error, index=-1)

    def settle(self, error: ErrorCode = ErrorCode.NONE, index: int = 0) -> None:
        markers, settle = self.waiting.pop(index)
        for slot in range(len(markers)):
            settle(slot, error)


class Stage:
    def __init__(
        self,
        settings: dict[str, str] | None = None,
        record: Callable[[TransactionEvent], None] | None = None,
        connect: Connect | None = None,
    ) -> None:
        properties = {"broker.id": "0", "zookeeper.connect": "unused:1", **(settings or {})}
        self.clock = ManualClock(1_700_000_000_000)
        self.log = MemoryLog()
        self.markers = Markers()
        self.reaper = ExpirationReaper(self.clock)
        self.metadata = MetadataCache(_image(leader=0))
        self.producer_ids = iter(range(1000, 10_000_000))
        self.coordinator = TransactionCoordinator(
            0,
            BrokerConfig.from_properties(properties),
            self.log,
            self.metadata,
            self.reaper,
            self.clock,
            StateLogWriter(),
            lambda: next(self.producer_ids),
            connect or _unreachable,
            self.markers,  # type: ignore[arg-type]
            record,
        )
        self.lead(0)

    def stop(self) -> None:
        self.coordinator.stop()

    def lead(self, epoch: int) -> None:
        self.coordinator.lead(KEPT_IN, epoch)
        table = self.coordinator._table
        table._loader.submit(lambda: table._unloader.submit(int).result()).result(WAIT_S)

    def resign(self, epoch: int) -> None:
        self.coordinator.resign(KEPT_IN, epoch)
        self.coordinator._table._unloader.submit(int).result(WAIT_S)

    def publish(
        self, *, leader: int, topics: Sequence[str] = ("orders", "payments"), brokers: Sequence[int] = (0,)
    ) -> None:
        self.metadata.publish(_image(leader, topics, brokers))

    def passes(self, ms: int) -> None:
        for _ in range(max(ms // 100, 1)):
            self.clock.advance(min(ms, 100))
            self.reaper.expire_due()

    # ---- requests

    def init(self, name: str = "t", expected: Producer | None = None) -> Answer:
        return _one(lambda done: self.coordinator.init_producer_id(name, 60_000, expected, done))

    def add(self, producer: Producer, *partitions: TopicPartition, name: str = "t") -> ErrorCode:
        """The answer; if it waits for the end of the former transaction, the one that it gets when its time is up."""
        answers = self.submit_add(producer, *partitions, name=name)
        if not answers:
            self.passes(WAIT_MS)
        (answer,) = answers
        return answer

    def submit_add(self, producer: Producer, *partitions: TopicPartition, name: str = "t") -> list[ErrorCode]:
        answers: list[ErrorCode] = []
        self.coordinator.add_partitions(name, producer, partitions or (ORDERS,), answers.append)
        return answers

    def end(self, producer: Producer, *, commit: bool = True, name: str = "t", version: int = 0) -> Answer:
        return _one(lambda done: self.coordinator.end(name, producer, done, commit=commit, client_version=version))

    def state(self, name: str = "t") -> TransactionState:
        return self.coordinator.describe(name).state


def _one(ask: Callable[[Callable[[ErrorCode, Producer], None]], None]) -> Answer:
    answers: list[Answer] = []
    answered = threading.Event()

    def done(error: ErrorCode, producer: Producer) -> None:
        answers.append((error, producer))
        answered.set()

    ask(done)
    assert len(answers) == 1, "no answer yet"
    return answers[0]


def _image(leader: int, topics: Sequence[str] = ("orders", "payments"), brokers: Sequence[int] = (0,)) -> MetadataImage:
    return MetadataImage(
        controller_id=0,
        brokers={broker: Broker(broker, ()) for broker in brokers},
        topics={
            name: TopicImage(name, ZERO_UUID, {0: PartitionImage(leader, 0, (0,), (0,))})
            for name in (TRANSACTIONS_TOPIC, *topics)
        },
    )


def _unreachable(broker: int, connected: Callable[[BrokerClient], None]) -> BrokerClient:
    raise ConnectionFailed(f"broker {broker} is not there")
