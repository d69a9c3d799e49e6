"""Trace of the controller in the broker's log: every event and effect at level debug, reports at their own level."""

from collections.abc import Callable, Sequence
from typing import Any

from odradek.base.logs import get_logger
from odradek.broker.controller.core.effect_text import effect_lines, event_text, request_name, request_partitions
from odradek.broker.controller.core.effects import Effect, Report
from odradek.broker.controller.core.events import Event
from odradek.protocol.schema import Request

log = get_logger(__name__)

_SHOWN_MAX = 20


class Trace:
    def event(self, event: Event) -> None:
        log.debug("controller", line=_Lazy(_event_line, event))

    def effect(self, effect: Effect) -> None:
        if isinstance(effect, Report):
            getattr(log, effect.level)(effect.message)
        else:
            log.debug("controller", line=_Lazy(_effect_line, effect))


class _Lazy:
    """Text that costs nothing unless it is shown."""

    __slots__ = ("_subject", "_text")

    def __init__(self, text: Callable[[Any], str], subject: Event | Effect) -> None:
        self._text = text
        self._subject = subject

    def __str__(self) -> str:
        return self._text(self._subject)


def _event_line(event: Event) -> str:
    return f"event   {event_text(event)}"


def _effect_line(effect: Effect) -> str:
    lines = effect_lines(effect)
    verb = lines[0].verb if lines else ""
    shown = [f"{line.subject}  {line.text}  {_shortened(line.partitions)}".rstrip() for line in lines]
    return f"{verb:<7} {_shortened(shown)}"


def request_text(request: Request) -> str:
    shown = [f"{tp} {detail}".rstrip() for tp, detail in request_partitions(request)]
    return f"{request_name(request)}  {_shortened(shown)}".rstrip()


def _shortened(parts: Sequence[str]) -> str:
    more = len(parts) - _SHOWN_MAX
    return ", ".join(parts[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
