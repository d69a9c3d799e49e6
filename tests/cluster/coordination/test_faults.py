"""A chosen set of the fault tests on the embedded coordination server; by themselves they run on Apache ZooKeeper."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.local.coordinators import VARIABLE

FAULTS = Path(__file__).parents[1] / "faults"
CHOSEN = (
    "test_crashes",
    "test_zookeeper_faults",
    "test_zombies",
    "test_rolling_restart",
    "test_cuts",
    "test_reassignment",
    "test_renumbering",
)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHOSEN)
def test_on_the_embedded_server(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'own'}"]
    done = subprocess.run(
        [*command, "-m", "soak or not soak", str(FAULTS / f"{name}.py")],
        env={**os.environ, VARIABLE: "embedded"},
        cwd=FAULTS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
