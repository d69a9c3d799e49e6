"""The console's reading of the audit logs of brokers."""

import json
from pathlib import Path
from unittest.mock import Mock

from odradek.apps.console.readings.audit import ENTRIES_MAX, AuditReader
from odradek.broker.security.audit_log import FILE_NAME, REFUSED_FILE_NAME


def lines(event: str, times: range) -> str:
    return "".join(json.dumps({"time_ms": at, "event": event}) + "\n" for at in times)


def test_a_flood_of_refusals_hides_no_change(tmp_path: Path) -> None:
    """Each broker has the latest of both kinds; together they are as many as the page may have of each."""
    for number in (1, 2):
        directory = tmp_path / f"broker-{number}" / "data"
        directory.mkdir(parents=True)
        (directory / FILE_NAME).write_text(lines("change", range(3)))
        (directory / REFUSED_FILE_NAME).write_text(lines("denied", range(1_000, 1_000 + ENTRIES_MAX)))
    entries = AuditReader([tmp_path]).read(Mock(), None).entries
    assert [entry.event for entry in entries] == ["denied"] * ENTRIES_MAX + ["change"] * 6
    assert [entry.at_ms for entry in entries] == sorted((entry.at_ms for entry in entries), reverse=True)
