"""Reading a TOML file with care: what is missing, of the wrong kind or unknown is told in one sentence."""

from enum import StrEnum
from typing import Any, TypeVar

from odradek.base.errors import FatalError

FILE_NAME = "pipeline.toml"

Choice = TypeVar("Choice", bound=StrEnum)


class Section:
    """One table of the file. Whoever has read it calls `finish`, which refuses what nobody asked for."""

    def __init__(self, name: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise FatalError(f"{FILE_NAME}: [{name}] is a table, not {content!r}")
        self.name = name
        self._left: dict[str, Any] = dict(content)

    def wrong(self, what: str) -> FatalError:
        return FatalError(f"{FILE_NAME}: {f'[{self.name}] ' if self.name else ''}{what}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._left.pop(key, default)
        if value is None:
            raise self.wrong(f'needs {key} = "…"')
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"{key} is a text, not {value!r}")
        return value

    def maybe_text(self, key: str) -> str | None:
        return self.text(key) if key in self._left else None

    def flag(self, key: str, default: bool) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} is true or false, not {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them."""
        value = self._left.pop(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) and item for item in values):
            raise self.wrong(f"{key} is a text or a list of texts, not {value!r}")
        return tuple(values)

    def whole(self, key: str, default: int) -> int:
        value = self._left.pop(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(f"{key} is a whole number, not {value!r}")
        return value

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        value = self.text(key, default)
        if value not in list(kind):
            raise self.wrong(f"{key} is one of {', '.join(kind)}, not {value!r}")
        return kind(value)

    def mapping(self, key: str) -> dict[str, str]:
        """A table of texts; what TOML has as number or truth is written as Spark wants it."""
        content = self._left.pop(key, {})
        if not isinstance(content, dict) or any(isinstance(value, dict | list) for value in content.values()):
            raise self.wrong(f"{key} is a table of names and values, not {content!r}")
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in content.items()}

    def section(self, key: str) -> "Section":
        if key not in self._left:
            raise FatalError(f"{FILE_NAME} needs [{self._path(key)}]")
        return Section(self._path(key), self._left.pop(key))

    def sections(self, key: str) -> dict[str, "Section"]:
        content = Section(key, self._left.pop(key, {}))
        return {name: Section(f"{key}.{name}", value) for name, value in content._left.items()}

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        return key in self._left

    def finish(self) -> None:
        if self._left:
            raise self.wrong(f"has no {', '.join(sorted(self._left))}")
