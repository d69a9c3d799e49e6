"""Events and effects of the controller, as lines that read as a story.

Neighbours that say the same of several brokers, partitions or replicas are told once. A partition's moves within one
event are told together, where the last of them happens.
"""

from collections.abc import Iterable

from odradek.broker.controller.core.effect_text import effect_lines, event_text
from odradek.broker.controller.core.effects import Effect, Moved
from odradek.broker.controller.core.events import BrokersChanged, Event


class Trace:
    """The lines of one event."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, list[str], str]] = []  # verb, subjects, and the text about them

    def add(self, effect: Effect) -> None:
        if isinstance(effect, Moved):
            self._add_move(effect.subject_text, effect.moves, effect.detail)
            return
        for verb, subject, text, partitions in effect_lines(effect):
            separator = "  " if len(partitions) == 1 else "\n"
            self._append(verb, subject, separator.join((text, *partitions)))

    def _append(self, verb: str, subject: str, text: str) -> None:
        if self._entries and verb == "send" and self._entries[-1][0] == verb and self._entries[-1][2] == text:
            self._entries[-1][1].append(subject)
        else:
            self._entries.append((verb, [subject], text))

    def _add_move(self, subject: str, moves: tuple[str, ...], detail: str) -> None:
        kind, name = subject.split(" ", 1)
        if kind == "partition":
            moves = (*self._earlier_moves(subject, moves[0]), *moves[-1:]) or moves
            self._entries.append(("move", [subject], f"{' → '.join(moves)}  {detail}".rstrip()))
            return
        text = f"{' → '.join(moves)}  {detail}".rstrip()
        if self._entries and self._entries[-1][0] == "move" and self._entries[-1][2] == text:
            self._entries[-1][1].append(name)
        else:
            self._entries.append(("move", [subject], text))

    def _earlier_moves(self, subject: str, from_state: str) -> tuple[str, ...]:
        """Take back the line of the partition's earlier moves, if they ended in this state."""
        for index, (verb, subjects, text) in enumerate(self._entries):
            moves = tuple(text.split("  ")[0].split(" → "))
            if verb == "move" and subjects == [subject] and moves[-1] == from_state:
                del self._entries[index]
                return moves
        return (from_state,)

    def lines(self) -> list[str]:
        lines = []
        for verb, subjects, text in self._entries:
            first, *more = text.split("\n")
            lines += [f"{verb:<7} {_together(subjects)}  {first}".rstrip(), *(f"{'':<10}{line}" for line in more)]
        return lines


def event_line(event: Event, live: Iterable[int]) -> str:
    if isinstance(event, BrokersChanged):
        return f"event   BrokersChanged  live={sorted(live)}"
    return f"event   {event_text(event)}"


def _together(subjects: list[str]) -> str:
    """`broker 0, broker 1` as `broker 0, 1`; `replica a-0@0, a-0@1` as `replica a-0@0,1`."""
    if len(subjects) > 1 and subjects[0].startswith("broker "):
        return ", ".join([subjects[0], *(subject.removeprefix("broker ") for subject in subjects[1:])])
    if not subjects[0].startswith("replica "):
        return ", ".join(subjects)
    held: dict[str, list[str]] = {}
    for subject in subjects:
        partition, _, broker = subject.removeprefix("replica ").partition("@")
        held.setdefault(partition, []).append(broker)
    return "replica " + ", ".join(f"{partition}@{','.join(brokers)}" for partition, brokers in held.items())
