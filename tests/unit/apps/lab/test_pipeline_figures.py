"""Figures of pipelines, from the files that a run leaves."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odradek.apps.lab.pipeline_speed.delivery import batches_s
from odradek.apps.lab.pipeline_speed.latency import Sold, latency_table, row_latencies
from odradek.apps.lab.pipeline_speed.written_rows import table_commits
from odradek.apps.pipeline.sample_orders import SentRecord


def rows(path: Path, *numbers: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"order_id": list(numbers)}), path)
    return path


def log(path: Path, at: float, *lines: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    os.utime(path, (at, at))


def test_rows_are_there_when_their_commit_is(tmp_path: Path) -> None:
    """Commits of Delta, of which one only merges files, and of Spark's file sink."""
    file = rows(tmp_path / "delta" / "b" / "1.parquet", "early", "late", "unknown")
    added = {"add": {"path": str(file.relative_to(tmp_path / "delta")), "dataChange": True}}
    log(tmp_path / "delta" / "_delta_log" / "00.json", 103.0, {"commitInfo": {}}, added)
    log(tmp_path / "delta" / "_delta_log" / "01.json", 200.0, {"add": {"path": "merged", "dataChange": False}})
    sold = Sold(orders={"early": 100.0, "late": 101.5})
    assert row_latencies(tmp_path / "delta", sold, since=101.0) == [1.5]

    file = rows(tmp_path / "plain" / "2.parquet", "early")
    log(tmp_path / "plain" / "_spark_metadata" / "0", 107.0, "v1", {"path": f"file://{file}", "action": "add"})
    assert list(table_commits(tmp_path / "plain")) == [(107.0, [file])]
    assert row_latencies(tmp_path / "plain", sold, since=0.0) == [7.0]


def test_a_file_counts_at_its_first_commit(tmp_path: Path) -> None:
    """Each tenth commit of Spark's file sink has all files before it again."""
    files = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    adds = [{"path": f"file://{file}", "action": "add"} for file in files]
    log(tmp_path / "_spark_metadata" / "8", 108.0, "v1", adds[0])
    log(tmp_path / "_spark_metadata" / "9.compact", 109.0, "v1", *adds)
    assert [(at, [str(file) for file in found]) for at, found in table_commits(tmp_path)] == [
        (108.0, [files[0]]),
        (109.0, [files[1]]),
    ]


def test_copies_are_not_counted_as_orders() -> None:
    sold = Sold()
    order = {"order_id": "1"}
    sold.add([SentRecord(b"x", order), SentRecord(b"{", None)], 1.0)
    sold.add([SentRecord(b"x", order, is_copy=True), SentRecord(b"{", None)], 2.0)
    assert sold == Sold({"1": 1.0}, {b"{": 1.0})


def test_batches_are_timed_without_the_first(tmp_path: Path) -> None:
    for query, ends in {"a": (10.0, 12.0, 15.0), "b": (10.0, 11.0)}.items():
        for number, at in enumerate(ends):
            log(tmp_path / query / "commits" / str(number), at, "v1")
            log(tmp_path / query / "commits" / f".{number}.crc", 99.0)
    assert batches_s(tmp_path) == 6.0


def test_the_median_of_rounds_is_told() -> None:
    rounds = [{"pipeline": {"p50": ours}, "plain script": {"p50": theirs}} for ours, theirs in ((1, 4), (2, 5), (9, 6))]
    assert latency_table(rounds).splitlines()[-1] == "| p50 | 2.00 | 5.00 |"
