"""The wheel in a new environment, as a user has it: it starts a cluster, without Java, and holds what it needs."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from odradek.local.zookeeper_server import free_port

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=250, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.soak
def test_the_wheel_serves_in_a_new_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("odradek-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "new", cwd=tmp_path)
    python = tmp_path / "new" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    packages = next((tmp_path / "new" / "lib").glob("python3*/site-packages"))
    # the dependencies of this environment; its own odradek is an editable one, which a line of a path file doesn't find
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    port = str(free_port())
    odradek = tmp_path / "new" / "bin" / "odradek"
    assert str(packages) in run(python, "-c", "import odradek; print(odradek.__file__)", cwd=tmp_path)
    without_java = {"PATH": "/usr/bin-without-java", "JAVA_HOME": "", "ODRADEK_COORDINATOR": "embedded"}
    try:
        run(odradek, "up", "--detach", "--no-console", "--port", port, cwd=tmp_path, **without_java)
        run(odradek, "topics", "create", "orders", cwd=tmp_path, **without_java)
        assert "orders" in run(odradek, "topics", "list", cwd=tmp_path, **without_java)
    finally:
        run(odradek, "down", cwd=tmp_path, **without_java)
