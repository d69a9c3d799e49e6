"""First offsets of a replay: nothing may be twice in a table, and a batch is all or nothing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.apps.pipeline.checkpoint import Checkpoint, Identity
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.replay import (
    Positions,
    _reaches,
    _whole_batches,
    parse_offset,
    read_so_far,
    replay,
    retire_replayed,
)
from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.table_output import MANIFEST, WrittenBatch, batch_name, written_batches
from odradek.base.errors import FatalError
from odradek.model.topology import TopicPartition


def batch(number: int, start: dict[str, int] | None, end: dict[str, int]) -> WrittenBatch:
    begun = [] if start is None else [{"t": start}]
    return WrittenBatch(path=None, generation=1, number=number, rows=1, start=begun, end=[{"t": end}])  # type: ignore[arg-type]


def write_batch(directory: Path, start: int, end: int) -> None:
    directory.mkdir(parents=True)
    manifest = {"rows": 1, "start": [{"t": {"0": start}}], "end": [{"t": {"0": end}}]}
    (directory / MANIFEST).write_text(json.dumps(manifest))


def declared(directory: Path) -> Pipeline:
    (directory / "pipeline.toml").write_text(
        '[pipeline]\nname = "p"\n[sources.s]\ntopic = "t"\nschema = "a INT"\n'
        '[sinks.table]\nfrom = "s"\ntable = "table"\nformat = "parquet"\n'
    )
    return read_pipeline(directory)


BATCHES = [
    batch(0, None, {"0": 10, "1": 10}),
    batch(1, {"0": 10, "1": 10}, {"0": 20, "1": 10}),
    batch(2, {"0": 20, "1": 10}, {"0": 20, "1": 30}),
    batch(3, {"0": 20, "1": 30}, {"0": 40, "1": 40}),
]
FIRST: Positions = {"t": {"0": 3, "1": 0}}


@pytest.mark.parametrize(
    ("wanted", "begins", "retired"),
    [
        ({"0": 40, "1": 40}, {"0": 40, "1": 40}, []),
        ({"0": 39, "1": 40}, {"0": 20, "1": 30}, [3]),
        ({"0": 20, "1": 12}, {"0": 20, "1": 10}, [2, 3]),
        ({"0": 15, "1": 40}, {"0": 10, "1": 10}, [1, 2, 3]),
        ({"0": 5, "1": 40}, {"0": 3, "1": 0}, [0, 1, 2, 3]),
    ],
)
def test_it_begins_where_a_batch_began(wanted: dict[str, int], begins: dict[str, int], retired: list[int]) -> None:
    positions = _whole_batches({"t": wanted}, FIRST, BATCHES)
    assert positions == {"t": begins}
    assert [written.number for written in BATCHES if _reaches(written, positions)] == retired


def test_places_can_be_written_in_several_ways() -> None:
    assert parse_offset("earliest") == {None: 0}
    assert parse_offset("12") == {None: 12}
    assert parse_offset("a:0:5,a:1:6") == {TopicPartition("a", 0): 5, TopicPartition("a", 1): 6}
    for wrong in ("a:0", "a:x:1", ":0:1", "-3"):
        with pytest.raises(FatalError, match="is not earliest"):
            parse_offset(wrong)


def test_a_run_ends_a_replay_that_was_killed(tmp_path: Path) -> None:
    """The generation was begun, and its process died before the table had given up what is computed again."""
    pipeline, table = declared(tmp_path), tmp_path / "table"
    for number, end in ((0, 10), (1, 20)):
        write_batch(table / batch_name(1, number), end - 10, end)
    again = Identity("p", "c", {}, {}, generation=2, starting={"t": {"0": 10}})
    assert retire_replayed(pipeline, replace(again, starting={})) == {"table": 0}
    assert retire_replayed(pipeline, again) == {"table": 1}
    assert [kept.number for kept in written_batches(table)] == [0]
    write_batch(table / batch_name(2, 0), 10, 30)
    assert retire_replayed(pipeline, again) == {"table": 0}, "what the replay itself has written stays"


def commit(checkpoint: Path, *sources: dict[str, dict[str, int]]) -> None:
    """As Spark notes the end of a batch."""
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text("\n".join(["v1", "{}", *map(json.dumps, sources)]))


@pytest.mark.parametrize(
    ("table", "letters", "starting", "read"),
    [
        ({"0": 9, "1": 5}, {"0": 7, "1": 8}, {}, {"t": {"0": 7, "1": 5}}),
        ({"0": 9, "1": 5}, {"0": 7}, {}, {"t": {"0": 7}}),  # nobody but the table has seen partition 1
        ({"0": 9}, None, {}, {"t": {}}),
        ({"0": 9}, None, {"t": {"0": 4}}, {"t": {"0": 4}}),  # a replay that has not run yet
        (None, None, {}, {"t": {}}),
    ],
)
def test_what_a_query_has_not_read_is_not_passed_over(
    tmp_path: Path,
    table: dict[str, int] | None,
    letters: dict[str, int] | None,
    starting: Positions,
    read: Positions,
) -> None:
    pipeline = declared(tmp_path)
    checkpoint = Checkpoint(pipeline.checkpoint)
    for name, offsets in (("table", table), ("dead_letters_s", letters)):
        if offsets is not None:
            commit(checkpoint.query(1, name), {"t": offsets})
    assert read_so_far(pipeline, checkpoint, Identity("p", "c", {}, {}, starting=starting)) == read


def test_the_checkpoint_of_another_pipeline_is_not_replayed(tmp_path: Path) -> None:
    pipeline = declared(tmp_path)
    Checkpoint(pipeline.checkpoint).claim(Identity("another", "c", {}, {}))
    with pytest.raises(FatalError, match="belongs to pipeline 'another'"):
        replay(pipeline, from_offset="earliest", from_time=None)
