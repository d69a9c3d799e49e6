"""The brokers' audit logs on this machine: changes and refusals. Newest first, bounded."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.broker.security.audit_log import FILE_NAME, REFUSED_FILE_NAME
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import AclOperation, PatternType, PermissionType, ResourceType

ENTRIES_MAX = 500
"""Number of changes that are kept, and of refusals: counted together, a flood of refusals would hide the changes."""
_TAIL_BYTES = 256 << 10
_BELOW = [f"{place}{name}" for name in (FILE_NAME, REFUSED_FILE_NAME) for place in ("", "*/", "broker-*/*/")]

_NUMBERED: Mapping[str, type[ResourceType | PatternType | AclOperation | PermissionType]] = {
    "resource_type": ResourceType,
    "resource_pattern_type": PatternType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission_type": PermissionType,
}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at_ms: int
    event: str
    principal: str
    host: str
    request: str
    detail: str
    outcome: str


@dataclass(frozen=True, slots=True)
class AuditState:
    entries: tuple[AuditEntry, ...]
    """Newest first."""
    marks: tuple[tuple[str, int, int], ...]
    """Path, size and time of change of each file that was read."""


class AuditReader:
    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places

    def read(self, client: ClusterClient, before: AuditState | None) -> AuditState:
        files = sorted({path for place in self._places for pattern in _BELOW for path in place.glob(pattern)})
        if not files:
            raise FatalError(
                "no audit log is known here: give --data. Odradek's brokers write one if they have an authorizer, or "
                "odradek.audit.dir"
            )
        marks = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
        if before is not None and before.marks == marks:
            return before
        refusals = [path for path in files if path.name == REFUSED_FILE_NAME]
        changes = [path for path in files if path.name == FILE_NAME]
        return AuditState(tuple(_newest_first(_latest(changes) + _latest(refusals))), marks)


def _latest(paths: Iterable[Path]) -> list[AuditEntry]:
    return _newest_first(entry for path in paths for entry in audit_entries(_tail(path)))[:ENTRIES_MAX]


def _newest_first(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    return sorted(entries, key=lambda entry: -entry.at_ms)


def audit_entries(lines: Iterable[bytes]) -> list[AuditEntry]:
    """Read the entries. Unreadable lines are left out: the last one may be half written."""
    found = []
    for line in lines:
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            found.append(_entry(content))
    return found[-ENTRIES_MAX:]


def _entry(content: Mapping[str, object]) -> AuditEntry:
    at = content.get("time_ms")
    errors = content.get("errors")
    outcome = ", ".join(map(str, errors)) if isinstance(errors, list) else str(content.get("event", ""))
    shown = {"time_ms", "event", "principal", "host", "listener", "client_id", "request", "errors"}
    rest = content.get("detail") or {key: value for key, value in content.items() if key not in shown}
    return AuditEntry(
        at_ms=at if isinstance(at, int) else 0,
        event=str(content.get("event", "")),
        principal=str(content.get("principal", "")),
        host=str(content.get("host", "")),
        request=str(content.get("request", "")),
        detail=_plain(rest),
        outcome="done" if outcome == "NONE" else outcome,
    )


def _plain(value: object) -> str:
    """`name=orders, operation=Read`: without braces, and names in the place of the protocol's numbers."""
    if isinstance(value, dict):
        return ", ".join(_field(str(key), held) for key, held in value.items())
    if isinstance(value, list):
        return "; ".join(_plain(held) for held in value)
    return str(value)


def _field(name: str, value: object) -> str:
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
        return _plain(value)
    names = _NUMBERED.get(name.removesuffix("_filter"))
    if names is not None and isinstance(value, int):
        with suppress(ValueError):
            return f"{name}={names(value).shown}"
    return f"{name}={_plain(value)}"


def _tail(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read().splitlines()
    return lines[1:] if size > _TAIL_BYTES else lines
