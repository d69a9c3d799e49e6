"""The rebalance experiment of `odradek lab`, run as a process beside the console; its drawing is a page of its own."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_STOP_SECONDS = 10
_LINE_LENGTH_MAX = 200


MEMBERS_MIN, MEMBERS_MAX, _SIZES_MAX = 3, 100, 3


def parse_sizes(text: str) -> list[int]:
    """Parse `3, 10`, the sizes of the groups. ValueError names the valid form."""
    words = [word.strip() for word in text.split(",")]
    if len(words) > _SIZES_MAX or not all(
        word.isdecimal() and MEMBERS_MIN <= int(word) <= MEMBERS_MAX for word in words
    ):
        raise ValueError(f"up to {_SIZES_MAX} numbers from {MEMBERS_MIN} to {MEMBERS_MAX}, such as 3, 10")
    return [int(word) for word in words]


class Experiment:
    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def file(self) -> Path | None:
        """File of the drawing, which grows with each design."""
        if self._directory is None:
            return None
        file = Path(self._directory.name) / "rebalance.html"
        return file if file.exists() else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def line(self) -> str:
        """Progress of the experiment, in its own words."""
        if self._directory is None or self._process is None:
            return ""
        said = (Path(self._directory.name) / "progress").read_text(errors="replace").strip().splitlines()
        last = said[-1][:_LINE_LENGTH_MAX] if said else "starting"
        match self._process.poll():
            case None:
                return last
            case 0:
                return "All three designs are done."
        return f"It ended before its time: {last}"

    def start(self, sizes: Sequence[int]) -> None:
        if self.is_running:
            raise ValueError("it is running already")
        self.stop()
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-lab-")
        place = Path(self._directory.name)
        command = [sys.executable, "-m", "odradek", "lab", "rebalance", "--members", ",".join(map(str, sizes))]
        with (place / "progress").open("wb") as progress:
            self._process = subprocess.Popen(
                [*command, "--out", str(place / "rebalance.html")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=progress,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
