"""Commits of a table that a run has written, with the times at which readers could see them."""

import json
from collections.abc import Iterator
from pathlib import Path


def table_commits(table: Path) -> Iterator[tuple[float, list[Path]]]:
    """Time and files of each commit with rows, in order: of a Delta table, or of Spark's own file sink.

    Every tenth commit of the file sink names the files of all before it again: a file counts where it is first named.
    """
    seen: set[Path] = set()
    logs = [*(table / "_delta_log").glob("*.json"), *(table / "_spark_metadata").glob("[0-9]*")]
    for log in sorted(logs, key=lambda path: int(path.name.partition(".")[0])):
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        added = [table / each["add"]["path"] for each in lines if each.get("add", {}).get("dataChange")]
        added += [Path(each["path"].removeprefix("file://")) for each in lines if each.get("action") == "add"]
        new = [path for path in added if path not in seen]
        seen.update(new)
        if new:
            yield log.stat().st_mtime, new
