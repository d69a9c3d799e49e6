"""`odradek sim`, as it is typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.apps.cli.main import run


def odradek(*words: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "odradek", "sim", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_seed_is_the_same_story_in_another_process() -> None:
    first, again = odradek("--seed", "5"), odradek("--seed", "5", hash_seed="77")
    assert first.returncode == 0, first.stdout
    assert "seed 5: held" in first.stdout
    assert first.stdout == again.stdout


def test_seeds_are_run_and_reported(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    done = odradek("--seeds", "2", "--first", "7", "--report", str(report))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("2 seeds, 0 failed")
    assert "2 stories held" in report.read_text()


def test_steps_can_be_chosen_and_watched() -> None:
    done = odradek("--seed", "5", "--steps", "0-2,5", "--watch")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("step ")][-1].startswith("step 5: ")
    assert "broker 0  up" in done.stdout


def test_what_excludes_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert run(["sim", "--shrink"]) == 2
    assert run(["sim", "--seed", "1", "--seeds", "2"]) == 2
    assert run(["sim", "--seed", "1", "--steps", "a-b"]) == 2
