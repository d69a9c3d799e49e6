"""Tables that last: merged while batches come, a short log, old files removed; migrated, replayed and queried."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from rows_as_frame import ids, judged, output_of, write

from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.table_output import MANIFEST as OLD_MANIFEST
from odradek.apps.pipeline.tables import maintenance
from odradek.apps.pipeline.tables.batch_files import batch_directories
from odradek.apps.pipeline.tables.commit_log import commits, snapshot
from odradek.apps.pipeline.tables.core.compaction import FANOUT
from odradek.apps.pipeline.tables.maintenance import is_due, maintain
from odradek.apps.pipeline.tables.migration import is_of_directories, migrate_table
from odradek.apps.pipeline.tables.ownership import claim_delta, table_batches, take_back
from odradek.apps.pipeline.tables.query import query_tables
from odradek.apps.pipeline.tables.reading import Moment, parse_batch, version_at
from odradek.base.errors import FatalError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_small_files_are_merged_and_nothing_else_changes(table: Path) -> None:
    output = output_of(table)
    count = FANOUT + 5
    for number in range(count):
        write(output, number, ids(number))
    done = maintain(table)
    assert (done.files_before, done.files_after) == (count, 6)
    assert judged(table) == list(range(count))
    write(output, count - 1, ids(count - 1))  # again, and known by its number
    write(output, count, ids(count))
    assert judged(table) == list(range(count + 1))
    assert maintain(table, everything=True).files_after == 2, "the newest batch stays by itself"
    assert judged(table) == list(range(count + 1))
    assert judged(table, version=3) == [0, 1, 2, 3], "time travel reads what was merged since"
    merged = table_batches(table)[0]
    assert (merged.batches.first, merged.batches.last) == (0, count - 1)
    assert (merged.manifest.start, merged.manifest.end) == ([], [{"t": {"0": 10 * count}}])


def test_merged_files_have_the_columns_of_the_table(table: Path) -> None:
    output = output_of(table, partition_by=("kind",))
    write(output, 0, ids(1, kinds={"kind": "string"}, kind="a"))
    write(output, 1, ids(2, kinds={"kind": "string", "more": "string"}, kind="b/c", more="x"))
    write(output, 2, ids(3, kinds={"kind": "string"}, kind="a"))
    write(output, 3, ids(4, kinds={"kind": "string"}, kind="a"))
    assert maintain(table, everything=True).files_after == 3
    rows = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["kind"], row["more"]) for row in rows] == [("a", None), ("b/c", "x"), ("a", None), ("a", None)]


def test_old_versions_are_removed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "COMMITS_BETWEEN", 10)
    monkeypatch.setattr(maintenance, "_READER_MS", 0)
    output = output_of(table)
    for number in range(100):
        write(output, number, ids(number))
        if is_due(table):
            maintain(table, history=20)
    maintain(table, history=20)
    assert judged(table) == list(range(100))
    newest = max(commits(table))
    assert 20 <= newest - min(commits(table)) < 45
    assert judged(table, version=newest - 20)
    assert len(batch_directories(table)) < 80
    with pytest.raises(FatalError, match="doesn't keep batch 3 any more"):
        version_at(table, Moment(batch=3))
    version = version_at(table, parse_batch("g1-90"))
    assert judged(table, version=version) == list(range(91))


def test_what_a_crash_left_is_removed_and_what_is_being_written_is_not(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_READER_MS", 0)
    output = output_of(table)
    for number in range(3):
        write(output, number, ids(number))
    left, written = table / "batch-g1-000000001.dead", table / "batch-g1-000000003.beef"
    for directory in (left, written):
        directory.mkdir()
    maintain(table, history=0)
    maintain(table, history=0)
    assert not left.exists()
    assert written.exists()
    assert judged(table) == [0, 1, 2]


def test_one_maintenance_at_a_time(table: Path) -> None:
    write(output_of(table), 0, ids(1))
    with maintenance._only_one(table), pytest.raises(FatalError, match="is being optimized already"):
        maintain(table)


def test_a_replay_takes_back_whole_batches(table: Path) -> None:
    output = output_of(table)
    for number in range(4):
        write(output, number, ids(number))
    take_back(table, [entry.batches for entry in table_batches(table)[2:]])
    assert judged(table) == [0, 1]
    write(output_of(table, generation=2), 0, ids(2, 3, 4))
    assert judged(table) == [0, 1, 2, 3, 4]
    assert judged(table, version=3) == [0, 1, 2, 3]


def test_a_table_of_an_earlier_release_is_migrated(table: Path) -> None:
    """A directory per batch, with a manifest, and no log."""
    source = output_of(table.parent / "new")
    for number in range(4):
        write(source, number, ids(number))
    table.mkdir()
    (table / OLD_MANIFEST).write_text('{"pipeline": "p", "sink": "s"}')
    for entry in table_batches(source.table):
        shutil.copytree(
            source.table / entry.batches.directory,
            table / entry.batches.directory.partition(".")[0].replace("batch-", "batch="),
        )
    assert is_of_directories(table)
    with pytest.raises(FatalError, match="odradek pipeline migrate"):
        claim_delta(table, "p", "s", "p/s/g1")
    assert migrate_table(table, "p", "s", ()) == (4, 2)
    claim_delta(table, "p", "s", "p/s/g1")
    assert judged(table) == [0, 1, 2, 3]
    output = output_of(table)
    write(output, 3, ids(3))
    write(output, 4, ids(4))
    assert judged(table) == [0, 1, 2, 3, 4]


def test_a_table_of_another_is_refused(table: Path) -> None:
    claim_delta(table, "p", "s", "p/s/g1")
    claim_delta(table, "p", "s", "p/s/g1")
    with pytest.raises(FatalError, match=r"is the table of \[sinks.s\] of pipeline 'p'"):
        claim_delta(table, "p", "other", "p/other/g1")
    (table.parent / "strange").mkdir()
    (table.parent / "strange" / "file").touch()
    with pytest.raises(FatalError, match="is not empty"):
        claim_delta(table.parent / "strange", "p", "s", "p/s/g1")


def test_sql_on_tables(tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text(
        '[pipeline]\nname = "p"\n[sources.o]\ntopic = "t"\nschema = "id BIGINT"\n'
        '[sinks.s]\nfrom = "o"\ntable = "table"\n[sinks.empty]\nfrom = "o"\ntable = "empty"\n'
    )
    output = output_of(tmp_path / "table")
    for number in range(3):
        write(output, number, ids(number))
    pipeline = read_pipeline(tmp_path)
    answer = query_tables(pipeline, "SELECT count(*) AS n, max(id) AS top FROM s")
    assert (answer.columns, list(answer.rows())) == (["n", "top"], [{"n": 3, "top": 2}])
    then = query_tables(pipeline, "SELECT count(*) AS n FROM s", Moment(batch=1))
    assert list(then.rows()) == [{"n": 2}]
    with pytest.raises(FatalError, match=r"does not exist.*tables: s"):
        query_tables(pipeline, "SELECT * FROM nowhere")
    assert snapshot(tmp_path / "empty").version == -1
