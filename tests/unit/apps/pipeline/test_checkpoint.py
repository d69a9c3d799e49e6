"""Owner of a checkpoint: the pipeline's own is taken up, every other refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.apps.pipeline.checkpoint import Checkpoint, Identity, batch_offsets, committed_offsets, state_store
from odradek.base.errors import FatalError

MINE = Identity(pipeline="p", cluster="c", reads={"s": ["a", "b"]}, writes={"q": "topic t"}, checkpoint_id="id")


def test_a_checkpoint_is_found_again(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "c").claim(MINE) == MINE
    assert Checkpoint(tmp_path / "c").claim(MINE) == MINE


def test_a_checkpoint_that_was_removed_comes_back_under_another_id(tmp_path: Path) -> None:
    nameless = replace(MINE, checkpoint_id="")
    ids = {Checkpoint(tmp_path / name).claim(nameless).checkpoint_id for name in ("a", "a", "b")}
    assert len(ids - {""}) == 2


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(MINE, pipeline="x"), "belongs to pipeline 'p', not 'x'"),
        (replace(MINE, cluster="x"), "belongs to cluster c, and this one is x"),
        (replace(MINE, reads={"s": ["a"]}), r"has \[sources.s\] reading b too"),
        (replace(MINE, writes={"q": "topic u"}), "has q writing to topic t, and now to topic u"),
    ],
)
def test_another_is_refused(tmp_path: Path, other: Identity, told: str) -> None:
    Checkpoint(tmp_path).claim(MINE)
    with pytest.raises(FatalError, match=told):
        Checkpoint(tmp_path).claim(other)
    assert Checkpoint(tmp_path).identity() == MINE, "the refusal changed nothing"


def test_a_pipeline_may_grow(tmp_path: Path) -> None:
    Checkpoint(tmp_path).claim(MINE)
    grown = replace(MINE, reads={"s": ["a", "b", "c"], "more": ["d"]}, writes={"q": "topic t", "r": "console"})
    assert Checkpoint(tmp_path).claim(grown) == grown


def test_a_checkpoint_of_some_spark_query_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(FatalError, match="none of this pipeline"):
        Checkpoint(tmp_path).claim(MINE)


def test_a_replay_begins_a_generation(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    with pytest.raises(FatalError, match="nothing to replay"):
        checkpoint.next_generation({})
    checkpoint.claim(MINE)
    assert checkpoint.next_generation({"a": {"0": 7}}).generation == 2
    again = Checkpoint(tmp_path).claim(MINE)
    assert (again.generation, again.starting) == (2, {"a": {"0": 7}})


def test_offsets_are_read_from_sparks_log(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"a":{"0":5}}\n-')
    assert batch_offsets(tmp_path, 3) == [{"a": {"0": 5}}]
    assert batch_offsets(tmp_path, 2) == []
    assert committed_offsets(tmp_path) == {}
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "3").touch()
    assert committed_offsets(tmp_path) == {"a": {"0": 5}}


def test_the_state_store_is_the_one_in_sparks_log(tmp_path: Path) -> None:
    assert state_store(tmp_path) is None
    (tmp_path / "offsets").mkdir()
    facts = {"batchWatermarkMs": 0, "conf": {"spark.sql.streaming.stateStore.providerClass": "a.Provider"}}
    (tmp_path / "offsets" / "12").write_text(f"v1\n{json.dumps(facts)}\n{{}}\n")
    (tmp_path / "offsets" / "9").write_text("v1\n{}\n{}\n")
    assert state_store(tmp_path) == "a.Provider"
