"""Start, stop and replay of pipelines: the commands of `odradek pipeline`, run as processes beside the console."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from odradek.base.errors import FatalError

_SECONDS_MAX = 90
_LINE_LENGTH_MAX = 300
LOG = Path(".odradek") / "console-run.log"


def _command(verb: str, project: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "odradek", "pipeline", verb, str(project), *options]


def start_pipeline(project: Path) -> None:
    """Start a run in a session of its own, so that it continues when the console ends. Its output is in `.odradek`."""
    log = project / LOG
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        subprocess.Popen(
            _command("run", project),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop_pipeline(project: Path) -> None:
    _run(_command("stop", project))


def replay_pipeline(project: Path, from_time: str | None) -> None:
    """`from_time`: None is from the earliest offset on."""
    options = ("--from-offset", "earliest") if from_time is None else ("--from-time", from_time)
    _run(_command("replay", project, *options, "--execute"))


def _run(command: Iterable[str]) -> None:
    """FatalError: the command failed; its last line says why."""
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise FatalError(f"it takes longer than {_SECONDS_MAX} seconds; look at the pipeline's status") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it failed without a word"]
        raise FatalError(lines[-1][:_LINE_LENGTH_MAX].removeprefix("error: "))
