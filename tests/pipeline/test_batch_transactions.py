"""Batches in transactions: a driver dies after any step, its time is up, an older one wakes up. librdkafka judges."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from kafka_tools import KafkaTools
from odradek.apps.pipeline.batch_transaction import BatchName, BatchTransaction, TaskRetried, fenced_error
from odradek.apps.pipeline.transaction_output import Partitions, TaskOutput, TransactionWriter, task_claims
from odradek.base.errors import FatalError, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.producer_transaction import ProducerId, ProducerTransaction, TransactionHandle
from odradek.model.topology import TopicPartition as Partition
from odradek.testing import OdradekCluster

from .conftest import TopicMaker

STEPS = ("begin", "look", "write", "offsets", "end")
PARTITIONS = 3


class DriverKilled(BaseException):
    """Stands for kill -9: nothing that would run after it does."""


def dies_after(step: str) -> Callable[[str], None]:
    def reached(done: str) -> None:
        if done == step:
            raise DriverKilled

    return reached


@dataclass
class Stage:
    """A query with one source and one output topic, without Spark: the tasks of a batch are this process."""

    bootstrap: str
    source: str
    output: str
    batches: dict[int, list[str]] = field(default_factory=dict)
    written: int = 0

    def driver(self, reached: Callable[[str], None] = lambda step: None, timeout_ms: int = 60_000) -> BatchTransaction:
        return BatchTransaction(self.bootstrap, f"{self.output}-id", f"{self.output}-group", timeout_ms, reached)

    def run(
        self,
        driver: BatchTransaction,
        number: int,
        write: Callable[[TransactionHandle], None] | None = None,
        *,
        is_repeated: bool = False,
    ) -> bool:
        self.batches[number] = [f"{number}-{at}" for at in range(20)]
        ends = {Partition(self.source, 0): 20 * (number + 1)}
        writing = write or (lambda open_: self.write(open_, number))
        return driver.run(BatchName("c", 1, number), ends, writing, is_repeated=is_repeated)

    def write(self, transaction: TransactionHandle, number: int) -> None:
        self.written += 1
        values = self.batches[number]
        rows = pa.table(
            {
                "topic": [self.output] * len(values),
                "key": [value.encode() for value in values],
                "value": [value.encode() for value in values],
                "headers": pa.array(
                    [None] * len(values), pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
                ),
            }
        )
        with ClusterClient(self.bootstrap) as client:
            placed = [Partitions(client).assigned(batch) for batch in rows.to_batches(max_chunksize=7)]
            assert TransactionWriter(client, transaction, b"tag").write(iter(placed)) == len(values)

    def committed(self) -> tuple[list[str], int]:
        """Values that a read_committed consumer of librdkafka sees, and the offset of the group."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"{self.output}-group",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            position = consumer.committed([TopicPartition(self.source, 0)], timeout=30)[0].offset
            consumer.assign([TopicPartition(self.output, number, 0) for number in range(PARTITIONS)])
            found: list[str] = []
            ends = 0
            while ends < PARTITIONS:
                message = consumer.poll(30)
                assert message is not None
                if message.error():
                    ends += 1
                else:
                    value = message.value()
                    assert value is not None
                    found.append(value.decode())
            return sorted(found), position
        finally:
            consumer.close()

    def check(self, *numbers: int) -> None:
        wanted = sorted(value for number in numbers for value in self.batches[number])
        assert self.committed() == (wanted, 20 * (max(numbers) + 1))


@pytest.fixture
def stage(bootstrap: str, new_topic: TopicMaker) -> Stage:
    return Stage(bootstrap, new_topic(1), new_topic(PARTITIONS))


def test_a_driver_that_dies_after_any_step_leaves_whole_batches(stage: Stage) -> None:
    for number, step in enumerate(STEPS):
        with pytest.raises(DriverKilled):
            stage.run(stage.driver(dies_after(step)), number)
        before = stage.written
        was_written = stage.run(stage.driver(), number)
        assert was_written == (step != "end"), "the group's offset tells whether the batch is there"
        assert stage.written - before == was_written
        stage.check(*range(number + 1))


@pytest.mark.soak
def test_the_coordinator_dies_after_any_step(tmp_path: Path) -> None:
    """The broker, which leads every partition too, is killed and starts again; a batch that fails comes again."""
    with OdradekCluster(tmp_path / "cluster", brokers=1) as cluster:
        cluster.create_topic("source", 1, 1)
        cluster.create_topic("output", PARTITIONS, 1)
        stage = Stage(cluster.bootstrap_servers, "source", "output")
        for number, step in enumerate(STEPS):
            deaths: list[str] = []

            def reached(done: str, step: str = step, deaths: list[str] = deaths) -> None:
                if done == step and not deaths:
                    deaths.append(done)
                    cluster.kill(0)
                    cluster.start(0)

            try:
                stage.run(stage.driver(reached), number)
            except (KafkaError, ConnectionFailed):
                stage.run(stage.driver(), number)
            assert deaths == [step]
            stage.check(*range(number + 1))


def test_kafkas_console_consumer_sees_what_drivers_that_died_have_committed(
    stage: Stage, kafka_tools: KafkaTools
) -> None:
    """Whole batches with `read_committed`, and with `read_uncommitted` also what was aborted."""
    for number, step in enumerate(STEPS):
        with pytest.raises(DriverKilled):
            stage.run(stage.driver(dies_after(step)), number)
        stage.run(stage.driver(), number)
    wanted = sorted(value for values in stage.batches.values() for value in values)
    aborted = sorted(value for step in ("write", "offsets") for value in stage.batches[STEPS.index(step)])

    def read(isolation: str) -> list[str]:
        where = ("--bootstrap-server", stage.bootstrap, "--topic", stage.output, "--from-beginning")
        printed = kafka_tools.run(
            "kafka-console-consumer", *where, "--isolation-level", isolation, "--timeout-ms", "10000"
        )
        return sorted(printed.output.split())

    assert read("read_committed") == wanted
    assert read("read_uncommitted") == sorted(wanted + aborted)


def test_a_batch_of_an_older_copy_of_the_checkpoint_is_refused(stage: Stage) -> None:
    """It has the number of a batch that is in the topics, and other records: they would be left out."""
    for number in range(3):
        stage.run(stage.driver(), number)
    with pytest.raises(FatalError, match=r"has batch c/g1/2 with offset 60 .* begins batch 1 with other records"):
        stage.run(stage.driver(), 1, is_repeated=True)
    with pytest.raises(FatalError, match="begins batch 2 with other records"):
        stage.driver().run(BatchName("c", 1, 2), {Partition(stage.source, 0): 70}, lambda transaction: None)
    assert not stage.run(stage.driver(), 2, is_repeated=True), "the last one comes again after a crash"
    stage.check(0, 1, 2)


def test_a_transaction_whose_time_was_up_is_written_again(stage: Stage) -> None:
    """The coordinator fences the slow driver and aborts; the attempt after it is quicker."""
    stage.batches[0] = []
    attempts = 0

    def write(transaction: TransactionHandle) -> None:
        nonlocal attempts
        attempts += 1
        stage.write(transaction, 0)
        if attempts == 1:  # as the coordinator does when the time is up
            with ClusterClient(stage.bootstrap) as client:
                ProducerTransaction(client, transaction.transactional_id, 60_000)

    assert stage.run(stage.driver(), 0, write)
    assert attempts == 2
    stage.check(0)


def test_a_task_that_ran_twice_costs_a_transaction(stage: Stage) -> None:
    def write(transaction: TransactionHandle) -> None:
        stage.write(transaction, 0)
        if stage.written == 1:
            raise TaskRetried

    assert stage.run(stage.driver(), 0, write)
    stage.check(0)


def test_a_task_of_a_repeated_stage_is_known_by_its_claim(stage: Stage, tmp_path: Path) -> None:
    """Spark repeats a stage when a worker is gone. The task's attempt is 0 again, and its rows may come in another
    order: brokers would take its first batch for the one that the first run has written, and lose its rows."""

    def rows(*values: str) -> Iterator[pa.RecordBatch]:
        keys = [value.encode() for value in values]
        headers = pa.nulls(len(values), pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
        columns = {"topic": [stage.output] * len(values), "partition": pa.array([0] * len(values), pa.int32())}
        yield pa.record_batch({**columns, "key": keys, "value": keys, "headers": headers})

    attempts = 0

    def write(transaction: TransactionHandle) -> None:
        nonlocal attempts
        attempts += 1
        with task_claims(tmp_path / "orders.tasks", transaction) as claims:
            task = TaskOutput(stage.bootstrap, transaction, "tag", claims)
            if attempts == 1:
                assert task.write(rows("0-0", "0-1"), task=0, attempt=0) == (2, ""), "then its stage is repeated"
            written, error = task.write(rows("0-2", "0-3", "0-0", "0-1"), task=0, attempt=0)
            if error:
                raise fenced_error(error, "task 0")
            assert written == 4

    assert stage.run(stage.driver(), 0, write)
    stage.batches[0] = ["0-0", "0-1", "0-2", "0-3"]
    stage.check(0)
    assert attempts == 2
    assert not list(tmp_path.iterdir()), "nothing is left of the claims"
    nowhere = TaskOutput(stage.bootstrap, TransactionHandle("id", ProducerId(1, 0)), "tag", tmp_path / "not shared")
    assert nowhere.write(iter(()), task=0, attempt=1) == (0, "TaskRetried"), "without claims the attempt tells"


def test_an_older_driver_that_wakes_up_is_fenced(stage: Stage) -> None:
    """It sleeps in the middle of a batch, while another one takes over and goes on to the next."""

    def write(transaction: TransactionHandle) -> None:
        stage.write(transaction, 0)
        newer = stage.driver()
        assert stage.run(newer, 0)
        assert stage.run(newer, 1)
        stage.write(transaction, 0)  # wakes up

    with pytest.raises(FatalError, match="another driver has written batch c/g1/0"):
        stage.run(stage.driver(), 0, write)
    stage.check(0, 1)


def test_a_repeated_batch_is_refused_when_the_offsets_of_its_group_are_gone(stage: Stage) -> None:
    """A driver dies after a commit, and runs again after `offsets.retention.minutes`: nothing tells of the commit."""
    stage.run(stage.driver(), 0)
    with pytest.raises(DriverKilled):
        stage.run(stage.driver(dies_after("end")), 1)
    admin = AdminClient({"bootstrap.servers": stage.bootstrap, "log_level": 0})
    group = f"{stage.output}-group"
    admin.delete_consumer_groups([group])[group].result(30)
    with pytest.raises(FatalError, match="batch 1 was begun by an earlier run, and may be in its topics already"):
        stage.run(stage.driver(), 1, is_repeated=True)
    assert stage.run(stage.driver(), 2), "a batch that is new is written after any time"
    stage.check(0, 1, 2)


def test_names_of_batches() -> None:
    name = BatchName("c", 2, 10)
    assert name.is_in("c/g2/10")
    assert name.is_in("c/g2/11")
    for other in ("c/g2/9", "c/g1/10", "c/g3/10", "d/g2/10", "", "c/g2/", "c", "by hand"):
        assert not name.is_in(other)
