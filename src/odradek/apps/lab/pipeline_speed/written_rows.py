"""Commits of a table that a run has written, with the times at which readers could see them."""

import json
from collections.abc import Iterator
from pathlib import Path


def table_commits(table: Path) -> Iterator[tuple[float, list[Path]]]:
    """Time and files of each commit with rows, in no order: of a Delta table, or of Spark's own file sink."""
    for log in [*(table / "_delta_log").glob("*.json"), *(table / "_spark_metadata").glob("[0-9]*")]:
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        added = [table / each["add"]["path"] for each in lines if each.get("add", {}).get("dataChange")]
        added += [Path(each["path"].removeprefix("file://")) for each in lines if each.get("action") == "add"]
        if added:
            yield log.stat().st_mtime, added
