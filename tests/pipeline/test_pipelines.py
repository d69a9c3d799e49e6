"""Pipelines from topics to tables and topics, restarted, disturbed, and read by others."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from odradek.apps.demo.proof import last_windows, topic_records
from odradek.apps.pipeline.batch_output import BatchOutput
from odradek.apps.pipeline.queries import Query
from odradek.apps.pipeline.replay import replay
from odradek.apps.pipeline.session import ROCKSDB, STATE_STORE
from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.tables.reading import read_table
from odradek.apps.pipeline.topic_output import BATCH_HEADER
from odradek.apps.pipeline.transaction_output import TransactionOutput
from odradek.apps.pipeline.views import Views
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.client.topic_admin import add_partitions

from .conftest import TopicFiller, TopicMaker
from .pipeline_stage import PATIENCE_S, Wrap, dead_letters, declare, header, run_once

# On a busy machine each query takes a minute: a busy one is slow, not wrong.
pytestmark = pytest.mark.timeout(900)

PROJECT = """
[pipeline]
name = "p-{orders}"
bootstrap = "{bootstrap}"
records_per_batch_max = 1000
[sources.orders]
topic = "{orders}"
schema = "id STRING NOT NULL, kind INT, amount DOUBLE, at TIMESTAMP"
watermark = {{ column = "at", delay = "10 minutes" }}
dedupe = ["id"]
[sources.orders.rules]
"dear" = "amount > 0"
[dimensions.kinds]
topic = "{kinds}"
schema = "kind INT, name STRING"
[transforms.named]
sql = "named.sql"
[transforms.sums]
python = "sums.py:sums"
[sinks.table]
from = "named"
table = "table"
[sinks.sums_topic]
from = "sums"
topic = "{orders}.sums"
key = ["name", "window_start"]
mode = "update"
"""
FILES = {
    "named.sql": """
SELECT o.id, o.amount, o.at, coalesce(k.name, '?') AS name FROM orders o LEFT JOIN kinds k ON o.kind = k.kind
""",
    "sums.py": """
from pyspark.sql import functions as F

def sums(named):
    spans = named.groupBy(F.window("at", "1 hour").alias("span"), F.col("name"))
    sums = spans.agg(F.count("*").alias("orders"), F.sum("amount").alias("revenue"))
    start = F.col("span.start").cast("string").alias("window_start")
    return sums.select(start, F.col("name").alias("category"), "name", "orders", "revenue")
""",
}
HEAP_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
HUGE = 10 * 1024 * 1024
NOON = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Play:
    spark: SparkSession
    pipeline: Pipeline
    orders: str
    kinds: str
    fill: TopicFiller

    def order(self, *numbers: int, partition: int = 0, **fields: Any) -> None:
        self.fill(self.orders, [(None, order(n, **fields)) for n in numbers], partition)

    def table(self) -> list[str]:
        path = self.pipeline.directory / "table"
        found = DeltaTable(path).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        return sorted(str(item) for item in found)

    def sums(self) -> dict[str, int]:
        records = topic_records(self.pipeline.bootstrap, f"{self.orders}.sums")
        return {category: orders for (category, _), (orders, _) in last_windows(records).items()}


def order(number: int, **fields: Any) -> bytes:
    at = (NOON + timedelta(seconds=number % 60)).isoformat()
    return json.dumps({"id": f"o{number:05d}", "kind": 1, "amount": 1.0, "at": at, **fields}).encode()


def ids(*numbers: int) -> list[str]:
    return [f"o{number:05d}" for number in numbers]


@pytest.fixture
def play(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, fill: TopicFiller, tmp_path: Path
) -> Iterator[Play]:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    orders, kinds = new_topic(2, max_message_bytes=str(2 * HUGE)), new_topic(1, cleanup_policy="compact")
    fill(kinds, [(b"1", b'{"kind": 1, "name": "old"}'), (b"1", b'{"kind": 1, "name": "book"}'), (b"2", b"{nonsense")])
    text = PROJECT.format(orders=orders, kinds=kinds, bootstrap=bootstrap)
    yield Play(spark, declare(tmp_path / "project", text, FILES), orders, kinds, fill)
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.conf.set(STATE_STORE, ROCKSDB)


def test_from_topics_to_a_table_and_a_topic(play: Play, bootstrap: str) -> None:
    """Joined, deduplicated, summed; what is bad put aside; then on from there; a dimension that changed; lag."""
    play.order(1, 2, 2, 3)
    play.order(2, 4, partition=1)
    play.order(90, amount=-1)
    play.order(91, partition=1, amount="much")
    play.fill(play.orders, [(None, None), (None, b""), (b"k" * (HUGE // 10), b"{" * HUGE)], 1)
    play.order(8, partition=1, remarks="x" * HUGE)
    run_once(play.spark, play.pipeline)
    assert play.table() == ids(1, 2, 3, 4, 8)
    assert play.sums() == {"book": 5}
    letters = dead_letters(bootstrap, play.pipeline.dead_letters)
    assert letters == {
        (0, 4): "rule broken: dear",
        (1, 2): "not json of the declared schema",
        (1, 3): "no value",
        (1, 4): "empty value",
        (1, 5): "not json of the declared schema",  # of which the letter has the beginning
        (0, 2): "not json of the declared schema",  # of the dimension
    }

    play.fill(play.kinds, [(b"1", None), (b"3", b'{"kind": 3, "name": "toy"}')])
    play.order(5)
    play.order(6, kind=3)
    with ClusterClient(bootstrap) as client:
        add_partitions(client, play.orders, 3)
        RecordSender(client, play.orders).send({2: [NewRecord(None, order(7))]})
    run_once(play.spark, play.pipeline)
    assert play.table() == ids(1, 2, 3, 4, 5, 6, 7, 8), "a partition that came later is read from its beginning"
    assert play.sums() == {"book": 5, "?": 2, "toy": 1}, "a tombstone took the name of kind 1 away"
    assert dead_letters(bootstrap, play.pipeline.dead_letters) == letters
    await_committed(bootstrap, f"pipeline-p-{play.orders}-orders", play.orders, [7, 7, 1])


def await_committed(bootstrap: str, group: str, topic: str, offsets: list[int]) -> None:
    """Any client sees where the query stands, a moment after its batch."""
    asked = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    deadline = time.monotonic() + PATIENCE_S
    partitions = [TopicPartition(topic, partition) for partition in range(len(offsets))]
    while (found := [tp.offset for tp in asked.committed(partitions, timeout=30)]) != offsets:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    asked.close()


def test_a_window_that_grows_needs_no_batch_without_records(play: Play) -> None:
    play.order(1, 2)
    play.order(3, kind=9, at=(NOON + timedelta(hours=3)).isoformat())
    run_once(play.spark, play.pipeline)
    assert play.sums() == {"book": 2, "?": 1}
    commits = play.pipeline.checkpoint / "g1" / "orders" / "commits"
    assert [path.name for path in commits.iterdir() if path.name.isdecimal()] == ["0"], "the watermark moved"


def test_without_records_final_windows_of_a_second_view_wait(play: Play) -> None:
    """They come with the next ones: its branch reuses the exchange of the first, and has the watermark nevertheless."""
    text = (play.pipeline.directory / "pipeline.toml").read_text().replace('mode = "update"', 'mode = "append"')
    pipeline = declare(play.pipeline.directory, text)
    play.order(1, 2)
    play.order(3, kind=9, at=(NOON + timedelta(hours=3)).isoformat())
    run_once(play.spark, pipeline)
    assert play.sums() == {}
    play.order(4, kind=9, at=(NOON + timedelta(hours=3)).isoformat())
    run_once(play.spark, pipeline)
    assert play.sums() == {"book": 2}


def test_a_batch_without_a_record_can_be_read_ahead_of_the_queries(play: Play) -> None:
    play.order(1)
    Views(play.spark, play.pipeline).streams.read_nothing()


@pytest.mark.parametrize("stores", [(HEAP_STORE, ROCKSDB), (ROCKSDB, HEAP_STORE)])
def test_state_is_continued_in_the_store_of_its_checkpoint(play: Play, stores: tuple[str, str]) -> None:
    """Whatever a later run would choose: what deduplication and windows have seen is known."""
    for number, store in enumerate(stores):
        play.spark.conf.set(STATE_STORE, store)
        play.order(number, number + 1)
        run_once(play.spark, play.pipeline)
    assert play.table() == ids(0, 1, 2)
    assert play.sums() == {"book": 3}


class DriverDied(Exception):
    """Stands for kill -9: whatever was to come after it didn't."""


@pytest.mark.parametrize("steps", [("end",), pytest.param(("write", "end"), marks=pytest.mark.soak)])
def test_a_driver_that_dies_in_a_transaction(
    play: Play, bootstrap: str, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...]
) -> None:
    """After the table was written: while its records are open, or after their commit and before Spark's own. Each step
    without Spark around it is in test_batch_transactions.py."""
    monkeypatch.setattr("odradek.apps.pipeline.supervisor._FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("odradek.apps.pipeline.supervisor.ATTEMPTS_MAX", 1)
    play.order(*range(10))
    play.order(*range(100, 108), amount=-1)

    def dying(step: str) -> Wrap:
        def wrapped(query: Query) -> Query:
            output = query.output
            assert isinstance(output, BatchOutput)
            assert isinstance(output.records, TransactionOutput)
            transaction = replace(output.records.transaction, reached=partial(dies_at, step))
            return replace(query, output=replace(output, records=replace(output.records, transaction=transaction)))

        return wrapped

    for step in steps:
        with pytest.raises(FatalError, match="DriverDied"):
            run_once(play.spark, play.pipeline, dying(step))
        assert play.table() == ids(*range(10))
        assert play.sums() == ({} if step == "write" else {"book": 10})
    run_once(play.spark, play.pipeline)
    assert play.table() == ids(*range(10))
    assert play.sums() == {"book": 10}
    assert sorted(offset for _, offset in dead_letters(bootstrap, play.pipeline.dead_letters)) == [2, *range(10, 18)]
    tags = {header(record, BATCH_HEADER) for record in topic_records(bootstrap, play.pipeline.dead_letters)}
    assert tags == {f"{play.pipeline.name}/orders/g1/0"}


def dies_at(step: str, done: str) -> None:
    if done == step:
        raise DriverDied


@pytest.mark.soak
def test_without_transactions_a_batch_that_comes_again_is_written_once(
    play: Play, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies when of the batch's records a part is written."""
    monkeypatch.setattr("odradek.apps.pipeline.supervisor._FIRST_PAUSE_S", 0.01)
    text = (play.pipeline.directory / "pipeline.toml").read_text()
    lenient = text.replace("[pipeline]", '[pipeline]\ndelivery = "at-least-once"')
    pipeline = declare(play.pipeline.directory, lenient, FILES)
    play.order(*range(10))
    play.order(*range(100, 108), amount=-1)

    def dies_after(query: Query) -> Query:
        assert isinstance(query.output, BatchOutput)
        records = query.output.records

        def written_in_part(batch: DataFrame, number: int, count: int) -> None:
            records(batch.orderBy("topic", "value").limit(3), number, count)  # the rest was still in the producer
            raise DriverDied

        return replace(query, output=replace(query.output, records=written_in_part))

    with pytest.raises(FatalError, match="failed 5 times at the same place"):
        run_once(play.spark, pipeline, dies_after)
    assert play.table() == ids(*range(10)), "the table was written before the driver died, once"
    records = topic_records(bootstrap, pipeline.dead_letters) + topic_records(bootstrap, f"{play.orders}.sums")
    assert len(records) == 3, "five attempts, and each found what the first had written"
    run_once(play.spark, pipeline)
    assert play.table() == ids(*range(10))
    assert play.sums() == {"book": 10}
    assert sorted(offset for _, offset in dead_letters(bootstrap, pipeline.dead_letters)) == [2, *range(10, 18)]


@pytest.mark.soak
def test_a_replay_computes_again_and_has_nothing_twice(play: Play) -> None:
    with pytest.raises(FatalError, match="has not run yet"):
        replay(play.pipeline, from_offset="0", from_time=None)
    play.order(1, 2)
    run_once(play.spark, play.pipeline)
    play.order(3, 4)
    run_once(play.spark, play.pipeline)
    play.order(6)
    ahead = replay(play.pipeline, from_offset=None, from_time="2100-01-01")
    assert ahead.starting[play.orders] == {"0": 4, "1": 0}, "what has not been read is not passed over"
    done = replay(play.pipeline, from_offset=f"{play.orders}:0:3", from_time=None)
    assert done.starting[play.orders]["0"] == 2, "where the batch began that has offset 3"
    assert done.retired == {"table": 1}
    assert play.table() == ids(1, 2)
    play.order(5)
    run_once(play.spark, play.pipeline)
    assert play.table() == ids(1, 2, 3, 4, 5, 6)


@pytest.mark.soak
def test_a_schema_may_grow(play: Play) -> None:
    """A column more in the records harms nobody; declared, it is there from then on, and null before."""
    play.order(1, colour="red")
    run_once(play.spark, play.pipeline)
    text = (play.pipeline.directory / "pipeline.toml").read_text()
    files = {"named.sql": "SELECT id, colour, amount, at, '?' AS name FROM orders"}
    grown = declare(
        play.pipeline.directory, text.replace("kind INT, amount", "kind INT, colour STRING, amount", 1), files
    )
    play.order(2, colour="blue")
    play.order(3)
    run_once(play.spark, grown)
    rows = read_table(play.spark, grown.directory / "table")
    assert {row["id"]: row["colour"] for row in rows.collect()} == dict(
        zip(ids(1, 2, 3), (None, "blue", None), strict=True)
    )


@pytest.mark.soak
def test_a_schema_may_not_turn_a_table_into_two(play: Play, bootstrap: str) -> None:
    """A column of another type: records that fit the old one only are dead letters, and the table stays as it is."""
    play.order(1)
    run_once(play.spark, play.pipeline)
    text = (play.pipeline.directory / "pipeline.toml").read_text()
    text = text.replace("amount DOUBLE", "amount STRUCT<value: DOUBLE, currency: STRING>", 1).replace(
        "amount > 0", "amount.value > 0"
    )
    sums = FILES["sums.py"].replace('F.sum("amount")', 'F.sum("amount.value")')
    changed = declare(play.pipeline.directory, text, {**FILES, "sums.py": sums})
    told = r"\[sinks.table\]: amount is double in the table .*, and would be struct<value:double,currency:string> now"
    with pytest.raises(FatalError, match=told):
        run_once(play.spark, changed)
    files = {**FILES, "named.sql": "SELECT id, amount.value AS amount, at, '?' AS name FROM orders"}
    mended = declare(play.pipeline.directory, text, files)
    play.order(2, 4, amount={"value": 2.0, "currency": "EUR"})
    play.order(3)
    run_once(play.spark, mended)
    assert play.table() == ids(1, 2, 4)
    letters = dead_letters(bootstrap, mended.dead_letters)  # (0, 2) is of the dimension
    assert letters == dict.fromkeys([(0, 2), (0, 3)], "not json of the declared schema"), "judged as it is declared now"


@pytest.mark.soak
def test_what_is_not_shown_is_counted_too(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    """A screen of one row, then a larger one: the sums behind the rows that had no place have been kept."""
    kinds = range(10, 18)
    play.fill(play.kinds, [(b"%d" % kind, b'{"kind": %d, "name": "kind-%d"}' % (kind, kind)) for kind in kinds])
    text = (play.pipeline.directory / "pipeline.toml").read_text()
    for turn, rows in enumerate((1, 50)):
        for kind in kinds:
            play.order(100 * turn + kind, kind=kind)
        capsys.readouterr()
        screen = f'{text}[sinks.screen]\nfrom = "sums"\nconsole = {rows}\nmode = "update"\n'
        run_once(play.spark, declare(play.pipeline.directory, screen, FILES))
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(kinds)
    assert all("orders=2" in line for line in shown), shown


@pytest.mark.soak
def test_records_that_retention_took_stop_it_unless_told_otherwise(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.pipeline.supervisor._FIRST_PAUSE_S", 0.01)
    play.order(1, 2)
    run_once(play.spark, play.pipeline)
    play.order(3, 4, 5)
    admin = AdminClient({"bootstrap.servers": play.pipeline.bootstrap})
    for future in admin.delete_records([TopicPartition(play.orders, 0, 4)]).values():
        future.result(30)
    with pytest.raises(FatalError, match=f"{play.orders}-0 no longer has offset 2.*fail_on_data_loss = false"):
        run_once(play.spark, play.pipeline)
    assert play.table() == ids(1, 2)
    text = (play.pipeline.directory / "pipeline.toml").read_text()
    lenient = declare(
        play.pipeline.directory, text.replace("dedupe =", "fail_on_data_loss = false\ndedupe =", 1), FILES
    )
    run_once(play.spark, lenient)
    assert play.table() == ids(1, 2, 5)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("named.sql", "SELECT nothing FROM orders", "nothing"),
        ("sums.py", "def sums(nobody): pass", "wants 'nobody'; declared before it are"),
        ("sums.py", "def sums(named): return 3", "which is not a DataFrame"),
    ],
)
def test_a_transform_that_makes_no_sense_is_told(play: Play, file: str, content: str, told: str) -> None:
    (play.pipeline.directory / file).write_text(content)
    with pytest.raises(FatalError, match=told):
        Views(play.spark, play.pipeline).build()
