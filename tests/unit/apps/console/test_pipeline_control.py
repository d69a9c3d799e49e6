"""Start, stop and replay of a pipeline from the console: the commands that it runs, and the projects that it knows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.apps.console.pipeline_control import LOG, replay_pipeline, start_pipeline, stop_pipeline
from odradek.apps.console.readings.pipelines import NEVER_RAN, PipelinesReader
from odradek.apps.console.views.pipelines import pipelines_html
from odradek.base.errors import FatalError
from odradek.local.pipeline_projects import read_projects, remember_projects
from odradek.local.process_start import process_start
from waiting import eventually

NO_CLIENT = cast(Any, None)


def write_status(project: Path, pid: int) -> None:
    (project / ".odradek").mkdir()
    document = {
        "pipeline": "shop",
        "project": str(project),
        "state": "running",
        "reason": None,
        "pid": pid,
        "process_start": process_start(pid),
        "queries": [],
    }
    (project / ".odradek" / "status.json").write_text(json.dumps(document))


def test_stop_waits_until_the_process_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as run:
        write_status(tmp_path, run.pid)
        state = PipelinesReader([tmp_path]).read(NO_CLIENT, None)
        assert 'data-act="stop"' in pipelines_html(state, read_only=False)
        stop_pipeline(tmp_path)
        assert run.wait(30) == -15
    ended = PipelinesReader([tmp_path]).read(NO_CLIENT, None)
    assert ended.documents[0]["state"] == "died", "it said that it runs, and can't have said anything else"
    shown = pipelines_html(ended, read_only=False)
    assert 'data-act="start"' in shown
    assert 'data-act="replay"' in shown


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=f"^no pipeline runs in {tmp_path}$"):
        stop_pipeline(tmp_path)
    with pytest.raises(FatalError, match=r"pipeline\.toml"):
        replay_pipeline(tmp_path, None)


def test_the_output_of_a_start_is_kept(tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text("nonsense")
    start_pipeline(tmp_path)
    eventually(lambda: "error: " in (tmp_path / LOG).read_text())


def test_projects_of_the_directory_are_shown_before_they_ran(tmp_path: Path) -> None:
    project, data = tmp_path / "shop", tmp_path / "data"
    for directory in (project, data):
        directory.mkdir()
    reader = PipelinesReader([], data)
    with pytest.raises(FatalError, match="No project is known here"):
        reader.read(NO_CLIENT, None)
    (project / "pipeline.toml").write_text("")
    remember_projects(data, [project])
    remember_projects(data, [project])
    assert read_projects(data) == [project]
    state = reader.read(NO_CLIENT, None)
    assert [(each["pipeline"], each["state"]) for each in state.documents] == [("shop", NEVER_RAN)]
    shown = pipelines_html(state, read_only=False)
    assert 'data-act="start"' in shown
    assert "replay" not in shown
    assert "data-act" not in pipelines_html(state, read_only=True)
