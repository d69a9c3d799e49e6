"""Structured logs: one line per event, for people on a terminal and for machines in a file.

structlog is configured once, by the process that owns the log (`configure`). Everybody else asks for a logger.
"""

import sys
from typing import TextIO

import structlog


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger bound to the module's name; it costs nothing until it is used."""
    return structlog.get_logger(part=name.removeprefix("odradek."))  # type: ignore[no-any-return]


def configure(*, json: bool = False, level: str = "info", stream: TextIO | None = None) -> None:
    """Lines of key=value, or of JSON, each with time and level, to `stream` (standard output unless told)."""
    stream = stream or sys.stdout
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=stream.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json else structlog.processors.StackInfoRenderer(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
