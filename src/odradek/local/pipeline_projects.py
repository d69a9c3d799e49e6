"""Pipeline projects that a local cluster's console shows: one path on each line of DIR/pipelines.

`odradek up --pipeline` adds to it, also while the console runs, which reads it again and again.
"""

from collections.abc import Iterable
from pathlib import Path

_FILE = "pipelines"


def read_projects(data: Path) -> list[Path]:
    try:
        lines = (data / _FILE).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [Path(line) for line in lines if line]


def remember_projects(data: Path, projects: Iterable[Path]) -> None:
    known = read_projects(data)
    wanted = dict.fromkeys([*known, *(project.resolve() for project in projects)])
    if len(wanted) > len(known):
        (data / _FILE).write_text("".join(f"{project}\n" for project in wanted), "utf-8")
