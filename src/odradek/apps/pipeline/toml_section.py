"""TOML files, read with checks: a key that is missing, unknown or of the wrong kind is reported in one sentence."""

from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar

from odradek.base.errors import FatalError

FILE_NAME = "pipeline.toml"

_MISSPELT = 0.75
"""Similarity from which on an unknown key counts as misspelt; `schema` is not a misspelt `avro_schema`."""
Choice = TypeVar("Choice", bound=StrEnum)


class Section:
    """One table of the file. Its reader calls `finish` at the end, which refuses unread keys."""

    def __init__(self, name: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise FatalError(f"{FILE_NAME}: [{name}] is a table, not {content!r}")
        self.name = name
        self._left: dict[str, Any] = dict(content)
        self._asked: dict[str, None] = {}  # in the order of asking

    def wrong(self, what: str) -> FatalError:
        return FatalError(f"{FILE_NAME}: {f'[{self.name}] ' if self.name else ''}{what}")

    def needs(self, key: str, what: str) -> FatalError:
        """Error about an absent key; a misspelt one is named in its place."""
        if key not in self._left and (close := get_close_matches(key, self._left, n=1, cutoff=_MISSPELT)):
            return self.wrong(f"takes no {close[0]}; did you mean {key}?")
        return self.wrong(what)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, default)
        if value is None:
            raise self.needs(key, f'needs {key} = "…"')
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"{key} is a text, not {value!r}")
        return value

    def maybe_text(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def flag(self, key: str, default: bool) -> bool:
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} is true or false, not {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them."""
        value = self._take(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) and item for item in values):
            raise self.wrong(f"{key} is a text or a list of texts, not {value!r}")
        return tuple(values)

    def whole(self, key: str, default: int) -> int:
        value = self._take(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(f"{key} is a whole number, not {value!r}")
        return value

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        value = self.text(key, default)
        if value not in list(kind):
            raise self.wrong(f"{key} is one of {', '.join(kind)}, not {value!r}")
        return kind(value)

    def mapping(self, key: str) -> dict[str, str]:
        """A table of strings; numbers and booleans of TOML are converted to the form that Spark expects."""
        content = self._take(key, {})
        if not isinstance(content, dict) or any(isinstance(value, dict | list) for value in content.values()):
            raise self.wrong(f"{key} is a table of names and values, not {content!r}")
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in content.items()}

    def section(self, key: str) -> "Section":
        if not self.has(key):
            raise FatalError(f"{FILE_NAME} needs [{self._path(key)}]")
        return Section(self._path(key), self._left.pop(key))

    def rest(self) -> dict[str, Any]:
        """Take all keys that were not asked for yet."""
        content, self._left = self._left, {}
        return content

    def sections(self, key: str) -> dict[str, "Section"]:
        content = Section(key, self._take(key, {}))
        return {name: Section(f"{key}.{name}", value) for name, value in content._left.items()}

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        self._asked[key] = None
        return key in self._left

    def finish(self) -> None:
        for key in self._left:
            close = get_close_matches(key, self._asked, n=1)
            known = f"did you mean {close[0]}?" if close else f"it takes {', '.join(self._asked)}"
            raise self.wrong(f"takes no {key}; {known}")

    def _take(self, key: str, default: Any) -> Any:
        self._asked[key] = None
        return self._left.pop(key, default)
