"""Gaps in journals, as entries of kind `gap` in the merged order: each is at the end of its gap.

    numbers jump       lines of a broker's journal are not here: their directory failed, or their file is not given
    a journal moved    its beginning lies in a directory that failed, and is not given
    an epoch is missing  of that controller no journal is given; it may be of Apache Kafka, which keeps none

A broker that could not write says so itself, by entries of kind `gap` and `dropped`. The beginning of a journal may be
missing without a gap: the oldest files are deleted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from odradek.base.value_classes import dataclass
from odradek.broker.recorder.core.entry import GAPS, JOURNAL_MOVED, Entry, Kind

NO_BROKER = -1


@dataclass(slots=True)
class _Run:
    """Lines of one journal without a jump of their numbers."""

    first: Entry
    last: Entry
    moved: Entry | None = None
    """Entry with which the journal moved to this run's directory, if it did."""


class GapFinder:
    """Finder of gaps: takes every entry that is read, in any order; entries that are read twice count once."""

    def __init__(self) -> None:
        self._runs: dict[int, list[_Run]] = defaultdict(list)
        self._epochs: dict[int, tuple[int, int]] = {}  # the first and the last time of each
        self._reported: set[tuple[int, int]] = set()  # entries after which a broker itself reports missing ones

    def note(self, entry: Entry) -> None:
        runs = self._runs[entry.broker]
        if runs and entry.seq == runs[-1].last.seq + 1:
            runs[-1].last = entry
        elif not runs or not runs[-1].first.seq <= entry.seq <= runs[-1].last.seq:
            runs.append(_Run(entry, entry))
        if entry.what == JOURNAL_MOVED and runs[-1].moved is None:
            runs[-1].moved = entry
        if entry.kind == Kind.GAP and entry.after is not None:
            self._reported.add((entry.broker, entry.after))
        if entry.controller_epoch is not None:
            first_ms, last_ms = self._epochs.get(entry.controller_epoch, (entry.time_ms, entry.time_ms))
            self._epochs[entry.controller_epoch] = min(first_ms, entry.time_ms), max(last_ms, entry.time_ms)

    def gaps(self) -> list[Entry]:
        """Return the gaps that no journal reports."""
        found = [gap for runs in self._runs.values() for gap in self._holes(runs)]
        return [*found, *self._missing_epochs()]

    def _holes(self, runs: Iterable[_Run]) -> Iterator[Entry]:
        first, *others = sorted(runs, key=lambda run: run.first.seq)
        if first.moved is not None and 0 < (first.moved.after or 0) < first.first.seq:
            yield _hole(first.moved.since_ms, first.first, None, f"earlier entries are in {first.moved.directory}")
        last = first.last
        for run in others:
            is_reported = run.first.kind == Kind.GAP or (last.broker, last.seq) in self._reported
            if run.first.seq > last.seq + 1 and not is_reported:
                moved = f"they may be in {run.moved.directory}" if run.moved is not None else None
                yield _hole(last.time_ms, run.first, run.first.seq - last.seq - 1, moved)
            last = run.last if run.last.seq > last.seq else last

    def _missing_epochs(self) -> Iterator[Entry]:
        known = sorted(self._epochs)
        for before, after in pairwise(known):
            if after > before + 1:
                which = f"epoch {before + 1}" if after == before + 2 else f"epochs {before + 1} to {after - 1}"
                since_ms, until_ms = self._epochs[before][1], self._epochs[after][0]
                yield Entry(
                    max(since_ms, until_ms),
                    NO_BROKER,
                    after - 1,
                    Kind.GAP,
                    "ControllerMissing",
                    controller_epoch=after - 1,
                    since_ms=since_ms,
                    text=f"no journal of the controller of {which} is given",
                )


def _hole(since_ms: int | None, end: Entry, count: int | None, text: str | None) -> Entry:
    what = "EntriesMissing"
    return Entry(end.time_ms, end.broker, end.seq - 1, Kind.GAP, what, count=count, since_ms=since_ms, text=text)


def gap_text(gap: Entry) -> str:
    """Describe the gap and its reason, without the times."""
    whose = "" if gap.broker == NO_BROKER else f"journal of broker {gap.broker}: "
    missing = "" if gap.broker == NO_BROKER else "entries are missing"
    if gap.count is not None:
        missing = "1 entry is missing" if gap.count == 1 else f"{gap.count:,} entries are missing"
    why = "the queue had no room" if gap.kind == Kind.DROPPED else gap.text
    return f"{whose}{missing}{': ' if why and missing else ''}{why or ''}"


def gaps_of_controllers(entries: Sequence[Entry]) -> list[Entry]:
    """The gaps that may hide a change of a partition: a broker that was never controller makes none."""
    controllers = {entry.broker for entry in entries if entry.controller_epoch is not None}
    return [entry for entry in entries if entry.kind in GAPS and entry.broker in controllers]


def uncertain_at(entries: Sequence[Entry], time_ms: int | None) -> list[Entry]:
    """The gaps for which a picture of that moment may be wrong: nothing has been read anew since they ended.

    A controller reads everything when it is elected, and a file begins with everything that it knows.
    """
    relevant = set(map(id, gaps_of_controllers(entries)))
    found: list[Entry] = []
    for entry in entries:
        if id(entry) in relevant:
            begins_ms = entry.time_ms if entry.since_ms is None else entry.since_ms
            if time_ms is None or begins_ms <= time_ms:
                found.append(entry)
        elif time_ms is not None and entry.time_ms > time_ms:
            continue
        elif (entry.kind, entry.what) in ((Kind.TERM, "TookOver"), (Kind.PICTURE, "Controller")):
            found = [gap for gap in found if time_ms is not None and gap.time_ms > time_ms]
    return found
