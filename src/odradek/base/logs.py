"""Structured logs: one line per event, for people on a terminal and for machines in a file.

    2026-11-16T01:33:42.300Z INFO  zk.session: session started connect=127.0.0.1:2181

An event is a short text with named values. Each line is written with one call, so lines of several threads never mix.
The process that owns the log calls `configure`; modules ask for a logger. (structlog does the same for 17 MB and 160 ms
more per broker: docs/decisions/0002-log-lines-without-structlog.md.)
"""

import json as json_
import sys
import time
import traceback
from collections.abc import Callable
from typing import Protocol, TextIO

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
THRESHOLDS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
"""Levels by Kafka's names. No line of this broker is below debug or above error."""
ROOT = "root"
_NEEDS_QUOTES = frozenset(' "=')
_SHOWN_CHARACTERS_MAX = 2000

Render = Callable[[float, str, str, str, dict[str, object]], str]


class Rotation(Protocol):
    """Rotation of the file behind the output: called with every line, it may replace the file."""

    def written(self, characters: int) -> None: ...


class Logger:
    """The log of one module. Values are shown unchanged, so they must not be secrets."""

    __slots__ = ("_part", "threshold")

    def __init__(self, part: str) -> None:
        self._part = part
        self.threshold: int | None = None
        """None: that of all loggers."""

    @property
    def effective_threshold(self) -> int:
        """Lowest level that is written; a caller need not build a line below it."""
        return self.threshold or _output.level

    def debug(self, event: str, **values: object) -> None:
        self._log("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        self._log("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        self._log("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        self._log("error", event, values)

    def exception(self, event: str, **values: object) -> None:
        """An error, with the traceback of the exception that is being handled."""
        _output.exceptions += 1
        self._log("error", event, {**values, "traceback": traceback.format_exc().rstrip()})

    def _log(self, level: str, event: str, values: dict[str, object]) -> None:
        if LEVELS[level] >= (self.threshold or _output.level):
            _output.write(level, self._part, event, values)


def get_logger(name: str) -> Logger:
    part = name.removeprefix("odradek.")
    return _loggers.setdefault(part, Logger(part))


def logged_exceptions() -> int:
    """Number of exceptions that the loggers of this process were given, written or not."""
    return _output.exceptions


def thresholds() -> dict[str, str]:
    """Return the level of each logger of this process; `ROOT` is the level of all loggers without their own."""
    names = {value: name for name, value in THRESHOLDS.items()}
    levels = {part: logger.threshold or _output.level for part, logger in sorted(_loggers.items())}
    return {part: names[level] for part, level in {ROOT: _output.level, **levels}.items()}


def set_threshold(part: str, name: str | None) -> None:
    """Set a logger's level; None makes it follow the root's. KeyError for a logger or a threshold that there isn't."""
    if part == ROOT:
        assert name is not None, "the others have none to go back to"
        _output.level = THRESHOLDS[name]
    else:
        _loggers[part].threshold = None if name is None else THRESHOLDS[name]


def configure(
    *, json: bool = False, level: str = "info", stream: TextIO | None = None, rotation: Rotation | None = None
) -> None:
    """Choose the output of this process (standard output by default) and its lowest level; before this call, warnings
    go to stderr.
    """
    _output.rotation = rotation
    _output.level = LEVELS[level]
    _output.render = render_json if json else render_text
    _output.stream = stream or sys.stdout


def render_text(at: float, level: str, part: str, event: str, values: dict[str, object]) -> str:
    trace = values.pop("traceback", None)
    shown = "".join(f" {name}={_shown(value)}" for name, value in values.items())
    text = f"{_timestamp(at)} {level.upper():<7} {part}: {event}{shown}\n"
    return text if trace is None else f"{text}{trace}\n"


def render_json(at: float, level: str, part: str, event: str, values: dict[str, object]) -> str:
    line = {"time": _timestamp(at), "level": level, "part": part, "event": event, **values}
    return json_.dumps(line, default=str, ensure_ascii=False) + "\n"


def _timestamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


def _shown(value: object) -> str:
    """Format a value: quoted if its end would be unclear, escaped and shortened because it may come from a client."""
    text = str(value)
    if len(text) > _SHOWN_CHARACTERS_MAX:
        text = f"{text[:_SHOWN_CHARACTERS_MAX]}… ({len(text)} characters)"
    if not text.isprintable():
        return json_.dumps(text)  # no control characters for a terminal
    return json_.dumps(text, ensure_ascii=False) if not text or not _NEEDS_QUOTES.isdisjoint(text) else text


class _Output:
    def __init__(self) -> None:
        self.level = LEVELS["warning"]
        self.render: Render = render_text
        self.stream: TextIO | None = None
        self.rotation: Rotation | None = None
        self.exceptions = 0

    def write(self, level: str, part: str, event: str, values: dict[str, object]) -> None:
        line = self.render(time.time(), level, part, event, values)
        try:
            stream = self.stream or sys.stderr
            stream.write(line)
            stream.flush()
            if self.rotation is not None:
                self.rotation.written(len(line))
        except (OSError, ValueError):
            return  # a full disk or a closed stream must not stop the broker that reports it


_output = _Output()
_loggers: dict[str, Logger] = {}
