"""Reasons of group rebalances: the coordinators' entries since the last reading.

Of each broker's newest files only the lines about groups are parsed, so the cost depends on the lines since then.
"""

from collections import OrderedDict
from pathlib import Path

from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.journal_tails import JournalTails
from odradek.broker.recorder.journals import find_journals, newest

_MARK = f'"kind":"{Kind.GROUP}"'.encode()
_OF_A_GROUP_MAX = 50
_GROUPS_MAX = 2_000


class Rebalances:
    """Latest rebalances of each group, oldest first; of the groups the ones that rebalanced last."""

    def __init__(self, *places: Path) -> None:
        self._places = places
        self._tails = JournalTails(_MARK)
        self._by_group: OrderedDict[str, tuple[Entry, ...]] = OrderedDict()

    def read(self) -> None:
        """Read the entries since the last time."""
        files = newest(find_journals(*(place for place in self._places if place.exists())))
        for entry in sorted(self._tails.added(files), key=lambda entry: (entry.time_ms, entry.generation or 0)):
            if entry.group is not None:
                self._by_group[entry.group] = (*self.of(entry.group), entry)[-_OF_A_GROUP_MAX:]
                self._by_group.move_to_end(entry.group)
        while len(self._by_group) > _GROUPS_MAX:
            self._by_group.popitem(last=False)

    def of(self, group: str) -> tuple[Entry, ...]:
        return self._by_group.get(group, ())
