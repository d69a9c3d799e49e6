"""Scanner of command lines: words become options with their values.

A dialect says how options are named and which words are values. Our own commands have one (`parsing`), Kafka's tools
have another (`apps/cli/kafka/options.py`).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

OptionT = TypeVar("OptionT")


class Takes(Enum):
    NOTHING = "a flag"
    ONE = "one value, which must follow"
    OPTIONAL = "one value, which may follow"
    REST = "every following word that is a value"


class Dialect(Protocol[OptionT]):
    def split(self, word: str, waiting: deque[str]) -> tuple[str, str | None] | None:
        """Name of the option that the word begins, and the value in the same word; None for a word that is no option.

        It may put a word before the waiting ones: the remaining letters of `-xyz`.
        """

    def recognise(self, name: str) -> OptionT:
        """Raise the dialect's error at an unknown name."""

    def takes(self, option: OptionT) -> Takes: ...

    def is_value(self, word: str, option: OptionT) -> bool:
        """Return whether a word after the option is its value."""

    def refuse_value(self, name: str, option: OptionT) -> Exception: ...

    def miss_value(self, name: str, option: OptionT) -> Exception: ...


@dataclass(frozen=True, slots=True)
class Found(Generic[OptionT]):
    name: str
    """Name as it was typed."""
    option: OptionT
    values: tuple[str, ...]


def scan(words: Iterable[str], dialect: Dialect[OptionT]) -> Iterator[Found[OptionT] | str]:
    """Yield options with their values, and words that belong to none, in their order."""
    waiting = deque(words)
    while waiting:
        word = waiting.popleft()
        split = dialect.split(word, waiting)
        if split is None:
            yield word
            continue
        name, inline = split
        option = dialect.recognise(name)
        yield Found(name, option, _values(name, option, inline, waiting, dialect))


def _values(
    name: str, option: OptionT, inline: str | None, waiting: deque[str], dialect: Dialect[OptionT]
) -> tuple[str, ...]:
    takes = dialect.takes(option)
    if inline is not None:
        if takes is Takes.NOTHING:
            raise dialect.refuse_value(name, option)
        return (inline,)
    taken: list[str] = []
    most = {Takes.NOTHING: 0, Takes.REST: len(waiting)}.get(takes, 1)
    while waiting and len(taken) < most and dialect.is_value(waiting[0], option):
        taken.append(waiting.popleft())
    if takes is Takes.ONE and not taken:
        raise dialect.miss_value(name, option)
    return tuple(taken)
