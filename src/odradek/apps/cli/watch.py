"""`--watch SECONDS`: repeats a command that shows something, until Ctrl-C.

On a terminal each output replaces the one before; elsewhere they follow each other. If a later attempt gets no answer
from the cluster, the error is shown and the command continues.
"""

import inspect
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar, cast

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.output import json_lines, warn
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed

Command = TypeVar("Command", bound=Callable[..., None])

WatchOption = Annotated[
    float | None,
    Option(
        "--watch",
        metavar="SECONDS",
        min=0.1,
        help="Refresh after this number of seconds, until Ctrl-C.",
        show_default=False,
    ),
]
CLEAR = "\x1b[H\x1b[2J"
_PARAMETER = inspect.Parameter("watch", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=WatchOption)


def watchable(command: Command) -> Command:
    """Add a --watch option to a command."""

    @wraps(command)
    def watched(*args: Any, watch: float | None = None, **kwargs: Any) -> None:
        if watch is None:
            command(*args, **kwargs)
            return
        is_first = True
        while True:
            _begin_picture(watch)
            try:
                with json_lines():
                    command(*args, **kwargs)
            except (KafkaError, ConnectionFailed) as error:
                if is_first:
                    raise
                warn(str(error))
            is_first = False
            sys.stdout.flush()
            time.sleep(watch)

    signature = inspect.signature(command)
    watched.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), _PARAMETER]
    )
    watched.__annotations__ = {**command.__annotations__, "watch": WatchOption}
    return cast(Command, watched)


def _begin_picture(seconds: float) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(f"{CLEAR}every {seconds:g} s, Ctrl-C ends   {time.strftime('%H:%M:%S')}\n")
