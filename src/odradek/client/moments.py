"""Parsing of times, for every command: `15m ago`, `2026-01-31T12:00:00`, milliseconds since 1970."""

import re
import time
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,9})\s*(?:(s)(?:ec|ecs|econds?)?|(m)(?:in|ins|inutes?)?|(h)(?:ours?)?|(d)(?:ays?)?)(\s+ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_text(at_ms: int) -> str:
    """Return a time as `parse_moment` takes it: UTC, with milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}"


def duration(text: str) -> timedelta | None:
    """Return the duration that `15m`, `15 minutes` or `15m ago` names; None for another text."""
    found = _AGO.fullmatch(text)
    if found is None:
        return None
    unit = next(filter(None, found.groups()[1:]))
    return timedelta(**{_UNITS[unit]: int(found[1])})


def ago(text: str, now_ms: int) -> int | None:
    """Return the time that `15m`, `15m ago` or `15 minutes ago` names; None for another text."""
    passed = duration(text)
    return None if passed is None else max(0, now_ms - passed // timedelta(milliseconds=1))


def parse_moment(text: str, now_ms: int | None = None) -> int:
    """Return milliseconds since 1970, 0 for earlier times; a time without a zone is UTC. ValueError names the valid
    forms.
    """
    stripped = text.strip()
    try:
        if stripped.isdecimal():
            return int(datetime.fromtimestamp(int(stripped) / 1000, UTC).timestamp() * 1000)
        before_ms = ago(stripped, time.time_ns() // 1_000_000 if now_ms is None else now_ms)
        if before_ms is not None:
            return before_ms
        moment = datetime.fromisoformat(stripped)
        return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"'{text[:40]}' is not a time: give 15m ago, 2026-01-31T12:00:00 (UTC, or with +01:00), "
            "or milliseconds since 1970"
        ) from None
