"""Batches into topics, exactly once: the tasks write in the transaction of the driver (`batch_transaction`).

A sequence of records under one producer id and epoch has one writer per partition. So rows are brought together by
their output partition, and a task that Spark runs a second time writes nothing and reports that; the driver then begins
a new transaction under the next epoch, which fences the first run.

Spark's attempt number doesn't show a second run: it begins at 0 again when a stage is repeated because a worker is
gone, while tasks of the first attempt may still run. So each task claims its writing by a file that must not exist yet:

    CHECKPOINT/QUERY.tasks/PRODUCER-EPOCH/3      task 3 of this transaction has begun to write
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.batch_transaction import BatchName, BatchTransaction, TaskRetried, Write, fenced_error
from odradek.apps.pipeline.checkpoint import batch_offsets, make_directory
from odradek.apps.pipeline.topic_output import BATCH_HEADER, RECORDS_PER_TASK
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.partitioner import partition_for_key
from odradek.client.producer_transaction import FENCED, ProducerTransaction, TransactionHandle
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.model.topology import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_BATCH_BYTES_MAX = 500_000  # a batch of the log; a record above that has one of its own
_TASKS_MAX = 8
_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionOutput:
    """Writer of each batch: rows with topic, key, value and headers."""

    transaction: BatchTransaction
    name: str  # PIPELINE/QUERY/gN: with the batch's number it names the batch in the records' headers
    checkpoint_id: str
    generation: int
    checkpoint: Path
    begun: int = -1  # the last batch that earlier runs have begun

    def __call__(self, batch: "DataFrame", number: int, count: int) -> None:
        bootstrap, tag = self.transaction.bootstrap, f"{self.name}/{number}"

        def write(transaction: TransactionHandle) -> None:
            if count:
                with task_claims(self.checkpoint.with_name(f"{self.checkpoint.name}.tasks"), transaction) as claims:
                    write_in_transaction(batch, TaskOutput(bootstrap, transaction, tag, claims), count)

        self._run(number, write, has_records=bool(count))

    def write_collected(self, records: "Sequence[pa.RecordBatch]", number: int) -> None:
        """Write records that the driver has, in batches with topic, key, value and headers."""
        tag = f"{self.name}/{number}".encode()

        def write(transaction: TransactionHandle) -> None:
            if not records:
                return
            client_id = transaction.transactional_id
            with ClusterClient(self.transaction.bootstrap, client_id=client_id, timeout_ms=_TIMEOUT_MS) as client:
                partitions = Partitions(client)
                TransactionWriter(client, transaction, tag).write(map(partitions.assigned, records))

        self._run(number, write, has_records=bool(records))

    def _run(self, number: int, write: Write, *, has_records: bool) -> None:
        ends = _merged(batch_offsets(self.checkpoint, number))
        if not has_records and ends == _merged(batch_offsets(self.checkpoint, number - 1)):
            return  # Spark moved its watermark: nothing was read, nothing has to be written
        name = BatchName(self.checkpoint_id, self.generation, number)
        self.transaction.run(name, ends, write, is_repeated=number <= self.begun)


@contextmanager
def task_claims(directory: Path, transaction: TransactionHandle) -> Iterator[Path]:
    """Directory for the claims of a transaction's tasks; files of a killed driver are removed from it."""
    shutil.rmtree(directory, ignore_errors=True)
    claims = directory / f"{transaction.producer.id}-{transaction.producer.epoch}"
    make_directory(claims)
    try:
        yield claims
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """Writer of one task's rows, in the transaction of the driver."""

    bootstrap: str
    transaction: TransactionHandle
    tag: str
    claims: Path

    def client(self) -> ClusterClient:
        return ClusterClient(self.bootstrap, client_id=self.transaction.transactional_id, timeout_ms=_TIMEOUT_MS)

    def write(self, batches: "Iterator[pa.RecordBatch]", task: int, attempt: int) -> tuple[int, str]:
        """Return the number of rows, and the name of the error if the task was fenced or has run before."""
        if not self._is_first_run(task, attempt):
            return 0, TaskRetried.__name__
        with self.client() as client:
            try:
                return TransactionWriter(client, self.transaction, self.tag.encode()).write(batches), ""
            except KafkaError as failure:
                if failure.code not in FENCED:
                    raise
                return 0, failure.code.name

    def _is_first_run(self, task: int, attempt: int) -> bool:
        try:
            (self.claims / str(task)).touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError:  # a worker that can't write there, or a driver that has finished: only Spark's number is left
            return attempt == 0
        return True


def write_in_transaction(records: "DataFrame", output: TaskOutput, count: int) -> None:
    """Write rows by tasks; returns when all are acknowledged. Raises the error of a task that was fenced, or ran
    twice."""

    def assign(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        with output.client() as client:
            partitions = Partitions(client)
            for batch in batches:
                yield partitions.assigned(batch)

    def write(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        task, attempt = (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)
        rows, error = output.write(batches, task, attempt)
        yield pyarrow.record_batch({"rows": [rows], "error": [error]})

    with_partition = (
        "topic STRING, partition INT, key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    tasks = min(_TASKS_MAX, 1 + count // RECORDS_PER_TASK)
    few = records.select("topic", "key", "value", "headers")
    placed = (few.coalesce(1) if tasks == 1 else few).mapInArrow(assign, with_partition)
    if tasks > 1:
        placed = placed.repartition(tasks, "topic", "partition")
    for row in placed.mapInArrow(write, "rows LONG, error STRING").collect():
        if row["error"]:
            raise fenced_error(row["error"], f"a task of batch {output.tag}")


class Partitions:
    """The partition of each row: by its key, as Java's producer chooses; without a key, another for each batch."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._counts: dict[str, int] = {}
        self._turn = 0

    def assigned(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow

        self._turn += 1
        topics, keys = batch.column("topic").to_pylist(), batch.column("key").to_pylist()
        numbers = [self._of(topic, key) for topic, key in zip(topics, keys, strict=True)]
        if "partition" in batch.schema.names:  # a row that names its partition has it
            given = batch.column("partition").to_pylist()
            numbers = [found if one is None else one for one, found in zip(given, numbers, strict=True)]
        columns = [batch.column("topic"), pyarrow.array(numbers, pyarrow.int32())]
        names = ["topic", "partition", "key", "value", "headers"]
        return pyarrow.record_batch([*columns, *(batch.column(name) for name in names[2:])], names=names)

    def _of(self, topic: str, key: bytes | None) -> int:
        if topic not in self._counts:
            self._counts[topic] = len(self._client.topic(topic).partitions)
        return self._turn % self._counts[topic] if key is None else partition_for_key(key, self._counts[topic])


class TransactionWriter:
    """Writes the rows of one task. Partitions join the transaction when their first row comes."""

    def __init__(self, client: ClusterClient, transaction: TransactionHandle, tag: bytes | None) -> None:
        """`tag` is the value of the header that names the batch; None: no such header."""
        self._client = client
        self.partitions: set[TopicPartition] = set()
        self._transaction = ProducerTransaction(client, transaction.transactional_id, 0, transaction.producer)
        self._tag: tuple[tuple[str, bytes], ...] = () if tag is None else ((BATCH_HEADER, tag),)
        self._senders: dict[str, RecordSender] = {}
        self._waiting: dict[TopicPartition, list[NewRecord]] = {}
        self._bytes: dict[TopicPartition, int] = {}

    def write(self, batches: "Iterator[pa.RecordBatch]") -> int:
        rows = 0
        for batch in batches:
            for row in batch.to_pylist():
                self._add(row)
            rows += batch.num_rows
            self._transaction.add(self._waiting.keys())  # all at once, not one by one as they are sent
        for tp in list(self._waiting):
            self._send(tp)
        return rows

    def _add(self, row: dict[str, Any]) -> None:
        tp = TopicPartition(row["topic"], row["partition"])
        self.partitions.add(tp)
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        size = len(row["key"] or b"") + len(row["value"] or b"") + 200 + 100 * len(headers)
        if self._bytes.get(tp, 0) + size > _BATCH_BYTES_MAX:
            self._send(tp)
        self._waiting.setdefault(tp, []).append(NewRecord(row["key"], row["value"], (*headers, *self._tag)))
        self._bytes[tp] = self._bytes.get(tp, 0) + size

    def _send(self, tp: TopicPartition) -> None:
        self._bytes[tp] = 0
        records = self._waiting.pop(tp, [])
        if not records:
            return
        if tp.topic not in self._senders:
            self._senders[tp.topic] = RecordSender(self._client, tp.topic, transaction=self._transaction)
        self._senders[tp.topic].send({tp.partition: records})


def _merged(offsets: list[Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for source in offsets
        for topic, partitions in source.items()
        for partition, offset in partitions.items()
    }
