"""Requests of a handler to the controller: an event, answered when its thread has decided."""

from collections.abc import Callable
from typing import Any

from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome
from odradek.broker.controller.core.events import Callback, Event
from odradek.protocol.schema import Response


def ask_controller(
    ctx: RequestContext, event: Callable[[Callback], Event], response: Callable[[Any], Response]
) -> Outcome:
    """Answers with what `response` makes of the answer, which may be a KafkaError; no thread waits for it."""
    ctx.broker.controller.submit(event(ctx.reply_with(response)))
    return LATER
