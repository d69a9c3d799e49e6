"""Every change goes through here: refused, or made and logged with who and what came of it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.access import Access
from odradek.apps.console.changes import Changes, NotDone
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient

ACCESS = Access("127.0.0.1:1")


def _never(client: ClusterClient) -> None:
    pytest.fail("the change was made")


def _fails(client: ClusterClient) -> None:
    raise FatalError("the disk is full")


def test_a_read_only_console_makes_none_whoever_asks() -> None:
    changes = Changes(SYSTEM_CLOCK, read_only=True)
    with pytest.raises(NotDone, match="read-only"):
        changes.perform(ACCESS, "Ottla", "delete topic letters", _never)
    assert changes.latest == []


def test_who_has_no_session_any_more_changes_nothing() -> None:
    with pytest.raises(NotDone, match="log in again"):
        Changes(SYSTEM_CLOCK, read_only=False).perform(ACCESS, None, "delete topic letters", _never)


def test_it_is_logged_what_was_asked_by_whom_and_what_came_of_it(tmp_path: Path) -> None:
    file = tmp_path / "changes.jsonl"
    changes = Changes(SYSTEM_CLOCK, read_only=False, file=file)
    assert changes.perform(ACCESS, "Ottla", "count", lambda client: 3) == 3
    with pytest.raises(NotDone, match="the disk is full"):
        changes.perform(ACCESS, "Felice", "write", _fails)
    told = [(line["who"], line["what"], line["outcome"]) for line in map(json.loads, file.read_text().splitlines())]
    assert told == [
        ("Ottla", "count", "asked for"),
        ("Ottla", "count", "done"),
        ("Felice", "write", "asked for"),
        ("Felice", "write", "failed: the disk is full"),
    ]
    assert [change.outcome for change in changes.latest] == [outcome for _, _, outcome in reversed(told)]
