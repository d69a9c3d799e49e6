"""Registry of the handlers by API key, with their versions. ApiVersions is derived from this table.

A handler is a function of a request and its context. It returns the response; or LATER, having arranged that
`context.reply` will be called; or NO_ANSWER where the protocol has none. A handler that may block (ZooKeeper, fsync,
long work) says so, for all its requests or by looking at each, and runs on a handler thread; all others run to
completion on the processor that read them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from odradek.broker.api.context import Answer, RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Request


class Outcome(Enum):
    LATER = "the answer comes by context.reply"
    NO_ANSWER = "the client waits for none"


LATER = Outcome.LATER
NO_ANSWER = Outcome.NO_ANSWER


@dataclass(frozen=True, slots=True)
class Handler:
    key: ApiKey
    min_version: int
    max_version: int
    may_block: bool | Callable[[Any], bool]
    run: Callable[[Any, RequestContext], Answer | Outcome]


HANDLERS: dict[int, Handler] = {}

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Answer | Outcome)
HandlerFunction = Callable[[RequestT, RequestContext], ResponseT]


def handles(
    key: ApiKey, *, versions: str, may_block: bool | Callable[[RequestT], bool]
) -> Callable[[HandlerFunction[RequestT, ResponseT]], HandlerFunction[RequestT, ResponseT]]:
    """Register a handler for the versions "min-max" of an API."""
    low, high = (int(v) for v in versions.split("-"))

    def register(function: HandlerFunction[RequestT, ResponseT]) -> HandlerFunction[RequestT, ResponseT]:
        assert key not in HANDLERS, f"{key.name} has two handlers"
        HANDLERS[key] = Handler(key, low, high, may_block, function)
        return function

    return register
