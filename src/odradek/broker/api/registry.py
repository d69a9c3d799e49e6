"""Registry of the handlers by API key, with their versions.

A handler's module is imported with the first request of its API, or by `load_all` some time after the start, so that a
start doesn't wait for rare requests.

A handler is a function of a request and its context. It returns the response; or LATER, having arranged that
`context.reply` will be called, with None where the protocol has no answer. A handler that may block (ZooKeeper, fsync,
long work) says so, for all its requests or by looking at each, and runs on a handler thread; all others run to
completion on the processor that read them.
"""

from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

from odradek.base.value_classes import dataclass
from odradek.broker.api.context import Answer, RequestContext
from odradek.protocol.api_keys import APIS, Api, ApiKey
from odradek.protocol.schema import Request


class Outcome(Enum):
    LATER = "the answer comes by context.reply"


LATER = Outcome.LATER


@dataclass(frozen=True, slots=True)
class Handler:
    key: ApiKey
    min_version: int
    max_version: int
    may_block: bool | Callable[[Any], bool]
    run: Callable[[Any, RequestContext], Answer | Outcome]


HANDLERS: dict[int, Handler] = {}
"""Handlers whose modules are loaded to their ends."""
_declared: dict[int, Handler] = {}
"""Handlers of modules that may still be loading: what a handler calls may be missing yet."""
NOT_SERVED = frozenset({ApiKey.ENVELOPE})
"""Requests that only brokers of KRaft send."""
SERVED: dict[int, Api] = {key: api for key, api in APIS.items() if key not in NOT_SERVED}

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Answer | Outcome)
HandlerFunction = Callable[[RequestT, RequestContext], ResponseT]


def handles(
    key: ApiKey, *, versions: str, may_block: bool | Callable[[RequestT], bool]
) -> Callable[[HandlerFunction[RequestT, ResponseT]], HandlerFunction[RequestT, ResponseT]]:
    """Register a handler for the versions "min-max" of an API."""
    low, high = (int(v) for v in versions.split("-"))

    def register(function: HandlerFunction[RequestT, ResponseT]) -> HandlerFunction[RequestT, ResponseT]:
        assert key not in _declared, f"{key.name} has two handlers"
        _declared[key] = Handler(key, low, high, may_block, function)
        return function

    return register


def handler_of(key: int) -> Handler | None:
    """The handler of an API, with its module imported if need be; None for an API that is not served. A thread that
    asks while another one imports the module waits for that."""
    found = HANDLERS.get(key)
    if found is None and (api := SERVED.get(key)) is not None:
        import_module(f"odradek.broker.api.handlers.{api.key.name.lower()}")
        found = HANDLERS[key] = _declared[key]
    return found


def load_all() -> None:
    for key in SERVED:
        handler_of(key)
