"""JSON of znodes: every fault of it becomes one error that names the znode.

For the codecs of this package only.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

SECRET_PATHS = ("/config/users", "/config/brokers", "/delegation_token")
"""Credentials, passwords and tokens: never in a log or an error."""


class CorruptZnode(Exception):
    """A znode whose content can't be parsed. The message has the path, and the content unless it may be secret."""

    def __init__(self, path: str, content: bytes | None, reason: str) -> None:
        shown = "content not shown" if path.startswith(SECRET_PATHS) else f"({reason}): {content!r}"
        super().__init__(f"znode {path} can't be read {shown}")
        self.path = path
        self.content = content


def decoded(path: str, content: bytes | None, read: Callable[[dict[str, Any]], T]) -> T:
    """Run a decoder on parsed JSON and turn every failure into the one error."""
    if content is None:
        raise CorruptZnode(path, content, "it is empty")
    try:
        parsed = json.loads(content)
        if not isinstance(parsed, dict):
            raise TypeError("not a JSON object")
        return read(parsed)
    except KeyError as error:
        raise CorruptZnode(path, content, f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptZnode(path, content, str(error)) from error


def integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list of numbers")
    return tuple(integer(value) for value in values)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
