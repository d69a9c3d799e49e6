"""The JVM ahead of its session: a script stands for spark-submit."""

import os
from pathlib import Path

import pytest

from odradek.apps.pipeline.spark_home import SharedHome
from odradek.apps.pipeline.spark_jvm import SparkJvm, has_jvm
from odradek.base.errors import FatalError
from odradek.local.process_start import process_start


def home(directory: Path, script: str) -> Path:
    """A home of Spark whose script writes to the pipe `said`."""
    os.mkfifo(directory / "said")
    submit = directory / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\nsaid={directory / 'said'}\n{script}\n")
    submit.chmod(0o755)
    return directory


def test_it_is_started_as_pyspark_would_start_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dtheirs=1")
    made = home(tmp_path, 'echo "$SPARK_SUBMIT_OPTS" "$@" > "$said"; read line')
    shared = SharedHome(tmp_path / "cache")
    with SparkJvm(made, {"spark.ui.enabled": "false"}, shared, may_record=True) as jvm:
        assert jvm.is_recording
        words = (tmp_path / "said").read_text().split()
    assert words[0] == "-Dtheirs=1"
    assert words[1].startswith("-XX:ArchiveClassesAtExit=")
    assert words[-3:] == ["--conf", "spark.ui.enabled=false", "pyspark-shell"]


def test_one_that_ends_at_once_is_reported(tmp_path: Path) -> None:
    with (
        SparkJvm(home(tmp_path, "exit 3"), {}) as jvm,
        pytest.raises(FatalError, match="its JVM ended with status 3"),
    ):
        jvm.connect()


def test_it_is_killed_if_nobody_has_connected(tmp_path: Path) -> None:
    with SparkJvm(home(tmp_path, 'echo $$ > "$said"; exec sleep 60'), {}):
        pid = int((tmp_path / "said").read_text())
        assert process_start(pid) is not None
    assert process_start(pid) is None


def test_a_process_that_is_told_of_a_jvm_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert has_jvm()
    assert os.environ["PYSPARK_GATEWAY_PORT"] == "1"
