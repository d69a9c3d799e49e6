"""Rows of a streaming query to topics, exactly once: `format("odradek")` with the option `exactlyOnce`.

Spark doesn't call a Python sink on the driver before its tasks start, so a batch can't have one transaction. Each task
has one, under an id of its own (QUERY-TASK), and leaves it open; the driver commits them when all tasks are done.
The offset that a transaction commits for the group of its id carries the batch's name. After a crash between two of the
commits Spark gives the batch again, and tasks with a committed part find its name and write nothing. So each row is
written once if the repeated batch is equal: the same rows in the same task. A reader with read_committed may see the
parts of a batch one after the other.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from odradek.apps.pipeline.batch_transaction import TIMEOUT_MS
from odradek.apps.pipeline.source.errors import OptionError, WriteFailed
from odradek.apps.pipeline.source.options import WriteOptions
from odradek.apps.pipeline.source.writer import check_columns
from odradek.apps.pipeline.transaction_output import Partitions, TransactionWriter
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import committed_metadata
from odradek.client.producer_transaction import ProducerTransaction, TransactionHandle

_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"
_CLIENT_TIMEOUT_MS = 60_000
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


@dataclass
class PartWritten(WriterCommitMessage):
    """Open transaction of a task; None if the task had no rows, or its part was there."""

    transaction: TransactionHandle | None


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options)
        if not options.is_plain:
            raise OptionError(
                "exactlyOnce takes no kafka.* option but kafka.bootstrap.servers: security comes from the process "
                "(ODRADEK_COMMAND_CONFIG)"
            )
        self._bootstrap = str(options.settings["bootstrap.servers"])
        self._topic = options.topic

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        query = context and context.getLocalProperty(_QUERY)
        batch = context and context.getLocalProperty(_BATCH)
        if context is None or not query or not batch:
            raise WriteFailed("exactlyOnce knows its batch by Spark's task, and there is none")
        transactional_id = f"spark-{query}-{context.partitionId()}"
        with self._client(transactional_id) as client:
            transaction = write_part(client, transactional_id, int(batch), (self._rows(each) for each in iterator))
        return PartWritten(transaction)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        self._end(messages, commit=True)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        with suppress(KafkaError, ConnectionFailed, UnsupportedByBroker):  # the brokers abort them after their time
            self._end(messages, commit=False)

    def _end(self, messages: "Sequence[WriterCommitMessage | None]", *, commit: bool) -> None:
        parts = [part.transaction for part in messages if isinstance(part, PartWritten) and part.transaction]
        if parts:
            with self._client(parts[0].transactional_id) as client:
                for part in parts:
                    end_part(client, part, commit=commit)

    def _client(self, client_id: str) -> ClusterClient:
        return ClusterClient(self._bootstrap, client_id=client_id, timeout_ms=_CLIENT_TIMEOUT_MS)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that a transaction's writer takes; a row without a topic is refused."""
        columns = {name: batch.column(name) for name in batch.schema.names}
        count = batch.num_rows
        topics = pa.repeat(self._topic, count) if self._topic else columns["topic"]
        if topics.null_count:
            raise WriteFailed(
                "A row has a null topic and no default: give the topic column a value, or set the option topic"
            )
        key = columns["key"].cast(pa.binary()) if "key" in columns else pa.nulls(count, pa.binary())
        headers = columns["headers"] if "headers" in columns else pa.nulls(count, _HEADERS)
        made = {"topic": topics, "key": key, "value": columns["value"].cast(pa.binary()), "headers": headers}
        if "partition" in columns:
            made["partition"] = columns["partition"]
        return pa.record_batch(made)


def write_part(
    client: ClusterClient, transactional_id: str, batch: int, rows: Iterator[pa.RecordBatch]
) -> TransactionHandle | None:
    """Write a task's rows of a batch, and leave the transaction open; None if nothing is to be committed.

    A run of the task that may still be writing is fenced first, so what it has committed is seen by the look after.
    """
    transaction = ProducerTransaction(client, transactional_id, TIMEOUT_MS)
    if is_written(client, transactional_id, batch):
        return None
    share = transaction.share()
    partitions, writer = Partitions(client), TransactionWriter(client, share, None)
    if not writer.write(partitions.assigned(each) for each in rows if each.num_rows):
        return None
    mark = min(writer.partitions)
    transaction.commit_offsets(transactional_id, {mark: batch}, f"batch {batch}")
    return share


def is_written(client: ClusterClient, transactional_id: str, batch: int) -> bool:
    """Return whether the group's last mark is of this batch or of a later one."""
    marks = committed_metadata(client, transactional_id, None).values()
    numbers = [int(mark.removeprefix("batch ")) for mark in marks if mark.removeprefix("batch ").isdecimal()]
    return any(number >= batch for number in numbers)


def end_part(client: ClusterClient, part: TransactionHandle, *, commit: bool) -> None:
    transaction = ProducerTransaction(client, part.transactional_id, 0, part.producer)
    transaction.share()
    transaction.end(commit=commit)
