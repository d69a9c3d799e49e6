"""The rebalance experiment of `odradek lab`, run as a process beside the console; its drawing is a page of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

_STOP_SECONDS = 10


class Experiment:
    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def file(self) -> Path:
        return Path(self._directory.name if self._directory else "/nonexistent") / "rebalance.html"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_page(self) -> bool:
        return not self.is_running and self.file.exists()

    @property
    def line(self) -> str:
        """How far it is, in its own words."""
        if self._directory is None:
            return ""
        said = (Path(self._directory.name) / "progress").read_text(errors="replace").strip().splitlines()
        return said[-1][:200] if said else "starting"

    def start(self) -> None:
        if self.is_running:
            raise ValueError("it is running already")
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-lab-")
        command = [sys.executable, "-m", "odradek", "lab", "rebalance", "--members", "3", "--out", str(self.file)]
        with (Path(self._directory.name) / "progress").open("wb") as progress:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=progress, stderr=progress, start_new_session=True
            )

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
