"""Stories of a cluster, each a text file: `> what happens`, and below it all that the controller sees and does.

Write the sentences (`sentences.py` has them all), run with ODRADEK_REGENERATE=1, and read what it says as a reviewer.
"""

import os
from pathlib import Path

import pytest

from .sentences import play
from .stage import Stage

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
REGENERATE = bool(os.environ.get("ODRADEK_REGENERATE"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    told = path.read_text(encoding="utf-8")
    happened = _happened(told)
    if REGENERATE:
        path.write_text(happened, encoding="utf-8")
    assert happened == told or REGENERATE


def _happened(told: str) -> str:
    """The story with what happens now, its sentences and comments kept."""
    stage = Stage()
    lines: list[str] = []
    for line in told.splitlines():
        if line.startswith("> "):
            if lines and lines[-1]:
                lines.append("")
            lines += [line, *play(stage, line.removeprefix("> "))]
        elif line.startswith("#"):
            if lines and not lines[-1].startswith("#") and lines[-1]:
                lines.append("")
            lines.append(line)
    return "\n".join(lines) + "\n"


def test_there_are_stories() -> None:
    assert len(STORIES) >= 8
