"""Committed transactions are there again, at whichever byte the server died."""

import os
from pathlib import Path

import pytest

from odradek.base.errors import FatalError
from odradek.local.coordination import storage
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.coordinator import Coordinator
from odradek.local.coordination.core.protocol import OpCode
from odradek.local.coordination.core.reads import Caller
from odradek.local.coordination.session_ids import SessionIds
from odradek.local.coordination.storage import Storage

TICK_MS = 500
_ANYONE = jute.vector([jute.int32(31) + jute.string("world") + jute.string("anyone")])


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written is there: this process doesn't lose its power."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda descriptor: None)


def _recovered(directory: Path) -> tuple[Storage, Coordinator]:
    kept = Storage(directory)
    return kept, kept.recover(TICK_MS, now_ms=0)


def _create(kept: Storage, coordinator: Coordinator, path: str, flags: int = 0) -> int:
    body = jute.string(path) + jute.buffer(b"some data") + _ANYONE + jute.int32(flags)
    step = coordinator.handle(Caller(1, 7), jute.int32(1) + jute.int32(OpCode.CREATE) + body, wall_ms=1000)
    for logged in step.logged:
        kept.log.append(logged)
    kept.log.commit()
    return coordinator.last_zxid


def _begun(directory: Path) -> tuple[Storage, Coordinator]:
    kept, coordinator = _recovered(directory)
    for logged in coordinator.open_session(7, 4000, 0, 1000).logged:
        kept.log.append(logged)
    return kept, coordinator


def _picture(coordinator: Coordinator) -> object:
    nodes = {path: (node.data, node.acls, node.stat()) for path, node in coordinator.tree.walk()}
    return nodes, dict(coordinator.sessions.timeouts()), coordinator.last_zxid, coordinator.tree.ephemerals


def test_everything_is_there_again(tmp_path: Path) -> None:
    kept, coordinator = _begun(tmp_path)
    for n in range(5):
        _create(kept, coordinator, f"/n{n}", flags=n % 2)
    assert _picture(_recovered(tmp_path)[1]) == _picture(coordinator)
    kept.snapshot(coordinator)
    _create(kept, coordinator, "/after")
    again = _recovered(tmp_path)[1]
    assert _picture(again) == _picture(coordinator)
    assert again.sessions.next_expiry_ms() == 4500, "sessions have their whole time again"


def test_death_at_any_byte_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    kept, coordinator = _begun(tmp_path)
    log = tmp_path / "version-2" / "log.1"
    answered = {}
    for n in range(4):
        zxid = _create(kept, coordinator, f"/n{n}")
        answered[kept.log.size] = zxid
    whole = log.read_bytes()[: kept.log.size]
    for size in range(len(whole)):
        directory = tmp_path / f"cut-{size}"
        (directory / "version-2").mkdir(parents=True)
        (directory / "version-2" / "snapshot.0").write_bytes((tmp_path / "version-2" / "snapshot.0").read_bytes())
        (directory / "version-2" / "log.1").write_bytes(whole[:size] + bytes(size % 3))
        kept, found = _recovered(directory)
        assert found.last_zxid >= max((zxid for end, zxid in answered.items() if end <= size), default=0)
        next_zxid = _create(kept, found, "/next") if 7 in found.sessions else 0
        if next_zxid:
            assert _picture(_recovered(directory)[1]) == _picture(found), "what follows the torn end is kept"


@pytest.mark.parametrize("damage", [b"\xff", b"\0" * 40])
def test_a_damaged_end_is_cut_off(tmp_path: Path, damage: bytes) -> None:
    kept, coordinator = _begun(tmp_path)
    _create(kept, coordinator, "/a")
    log = tmp_path / "version-2" / "log.1"
    size = kept.log.size
    with log.open("r+b") as file:
        file.seek(size)
        file.write(damage)
    assert _picture(_recovered(tmp_path)[1]) == _picture(coordinator)
    assert log.stat().st_size == size


def test_a_gap_in_the_log_is_a_loss_and_told(tmp_path: Path) -> None:
    kept, coordinator = _begun(tmp_path)
    _create(kept, coordinator, "/a")
    kept.log.roll()
    _create(kept, coordinator, "/b")
    log = tmp_path / "version-2" / "log.1"
    os.truncate(log, log.stat().st_size - 1)  # it was rolled, so it has no room at its end
    with pytest.raises(FatalError, match="transactions between 0x1 and 0x3 are missing"):
        _recovered(tmp_path)


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    kept, coordinator = _begun(tmp_path)
    _create(kept, coordinator, "/a")
    kept.snapshot(coordinator)
    newest = tmp_path / "version-2" / "snapshot.2"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(bytes(data))
    assert _picture(_recovered(tmp_path)[1]) == _picture(coordinator)


def test_old_files_are_removed_and_the_rest_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_SNAPSHOT_AFTER_ENTRIES", 3)
    kept, coordinator = _begun(tmp_path)
    for n in range(30):
        _create(kept, coordinator, f"/n{n}")
        kept.snapshot_if_due(coordinator)
    names = {path.name.partition(".")[0] for path in (tmp_path / "version-2").iterdir()}
    assert names == {"log", "snapshot"}
    assert len(list((tmp_path / "version-2").iterdir())) <= 8
    oldest = sorted((tmp_path / "version-2").glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))[0]
    for path in (tmp_path / "version-2").glob("snapshot.*"):
        if path != oldest:
            path.unlink()
    assert _picture(_recovered(tmp_path)[1]) == _picture(coordinator), "the log begins at the oldest snapshot"


def test_passwords_are_of_the_directory(tmp_path: Path) -> None:
    ids = SessionIds(tmp_path, wall_ms=1)
    session_id = ids.next(())
    password = ids.password(session_id)
    assert SessionIds(tmp_path, wall_ms=1).is_password(session_id, password)
    assert not ids.is_password(session_id, bytes(16))
    assert not ids.is_password(session_id + 1, password)
    assert not ids.is_password(0, ids.password(0))
    (tmp_path / "other").mkdir()
    assert not SessionIds(tmp_path / "other", wall_ms=1).is_password(session_id, password)
    assert (tmp_path / "session-secret").stat().st_mode & 0o077 == 0
