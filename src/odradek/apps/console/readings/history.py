"""History from the flight recorder: events of the controllers, each with its effects.

Reads the newest files of each broker's journal, and then only what is added to them. Each file begins with the whole
state, so earlier files are not needed. Gaps are moments of the history too.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from odradek.apps.figures import plural
from odradek.base.errors import FatalError
from odradek.broker.coordinator.transactions.core.transaction_story import FENCED, TIMED_OUT
from odradek.broker.recorder.core.entry import GAPS, LOG_DIR_FAILED, Entry, Kind
from odradek.broker.recorder.core.gaps import GapFinder, gap_text
from odradek.broker.recorder.core.picture import PartitionPicture, Picture
from odradek.broker.recorder.journal_tails import JournalTails
from odradek.broker.recorder.journals import find_journals, merged, newest
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import NO_LEADER

_MOMENTS_MAX = 2_000
_BETWEEN_PICTURES = 4_000
_LINKS_OF_A_KIND = 8
_CHANGING_NOTHING = frozenset({Kind.MOVE, Kind.SEND, Kind.ANSWER, Kind.WATCH, Kind.ISR, Kind.CHANNEL, Kind.LATER})
_TELLING = frozenset({Kind.MOVE, Kind.SEND, Kind.WRITE, Kind.REPORT, Kind.GROUP})


@dataclass(frozen=True, slots=True)
class Moment:
    """One event and what changed by it."""

    time_ms: int
    place: int
    """Place of its last entry in the story: the picture after it is that of the entries until there."""
    title: str
    tone: str
    effects: tuple[str, ...]
    chain: tuple[str, ...]
    """Effects of the event, in order."""
    touched: frozenset[str]
    """The partitions that it changed."""


def moment_at(moments: Sequence[Moment], time_ms: int) -> int:
    """Return the place of the last moment that is not after that time; the first one if all are."""
    return max((place for place, item in enumerate(moments) if item.time_ms <= time_ms), default=0)


@dataclass(frozen=True, slots=True)
class HistoryState:
    entries: tuple[Entry, ...]
    moments: tuple[Moment, ...]
    pictures: tuple[tuple[int, Picture], ...]
    """Pictures of the cluster before some of the entries, by their place: one in between is not far from one."""

    def picture_after(self, place: int) -> Picture:
        """Picture of the cluster after the entry at that place."""
        begin, known = self.pictures[bisect_right(self.pictures, place, key=lambda kept: kept[0]) - 1]
        picture = known.copy()
        for entry in self.entries[begin : place + 1]:
            picture.apply(entry)
        return picture


class HistoryReader:
    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places
        self._begin()

    def _begin(self) -> None:
        self._tails = JournalTails()
        self._story = Story()
        self._missing = GapFinder()
        self._gaps: dict[tuple[int, int, int], Entry] = {}

    def read(self, client: ClusterClient, before: HistoryState | None) -> HistoryState:
        if not self._places:
            raise FatalError("no journal is known here: give --data or --journal DIR. Only Odradek's brokers keep one")
        found = find_journals(*[place for place in self._places if place.exists()])
        files = newest(found, 1) if before is None else newest(found)  # the last file first: it is there soon
        if self._tails.files - set(files):  # some were rotated away: the story begins later
            self._begin()
        added = self._tails.added(files)
        if before is not None and not added and self._story.entries:
            return before
        self._tell(added)
        return self._story.state()

    def _tell(self, added: list[Entry]) -> None:
        for entry in added:
            self._missing.note(entry)
        earlier, self._gaps = self._gaps, {_place(gap): gap for gap in self._missing.gaps()}
        news = [*added, *(gap for place, gap in self._gaps.items() if place not in earlier)]
        if earlier.keys() - self._gaps.keys() or not self._story.goes_on_with(news):
            known = [entry for entry in self._story.entries if _place(entry) not in earlier]
            self._story, news = Story(), [*known, *added, *self._gaps.values()]
        self._story.take(merged(news))


def _place(entry: Entry) -> tuple[int, int, int]:
    return entry.broker, entry.seq, entry.time_ms


class Story:
    """Grows by entries in their merged order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._picture = Picture()
        self._pictures: list[tuple[int, Picture]] = []
        self._causes: dict[tuple[int, int], Entry] = {}
        self._drafts: dict[tuple[int, int], _Draft] = {}
        self._latest_ms = 0
        self._epoch = 0
        self._former_controller: int = NO_LEADER

    def goes_on_with(self, entries: Sequence[Entry]) -> bool:
        """True if these entries come after all of its own; where clocks or controllers overlap, the story is built
        anew.
        """
        return all(
            entry.time_ms >= self._latest_ms
            and (entry.controller_epoch is None or entry.controller_epoch >= self._epoch)
            for entry in entries
        )

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if len(self.entries) % _BETWEEN_PICTURES == 0:
                self._pictures.append((len(self.entries), self._picture.copy()))
            self._take(entry, len(self.entries))
            self.entries.append(entry)
            self._latest_ms = max(self._latest_ms, entry.time_ms)
            self._epoch = max(self._epoch, entry.controller_epoch or 0)

    def _take(self, entry: Entry, place: int) -> None:
        picture = self._picture
        if entry.kind == Kind.PICTURE:
            picture.apply(entry)
            return
        self._causes[entry.broker, entry.seq] = entry
        key = (entry.broker, entry.cause if entry.cause is not None else entry.seq)
        if entry.kind in _CHANGING_NOTHING:
            if key in self._drafts:
                self._drafts[key].add(entry, place, [])
            return
        before_brokers, before_controller = set(picture.brokers), picture.controller
        tp = entry.topic_partition
        before = picture.partitions.get(tp) if tp is not None else None
        picture.apply(entry)
        if before_controller not in (picture.controller, NO_LEADER):
            self._former_controller = before_controller
        effects = _effects(entry, before_brokers, before_controller, before, picture)
        if self._causes.get(key, entry).what == "ControllerElected":
            gone = f"broker {self._former_controller} left"
            effects = [f"{gone}: it was the controller" if effect == gone else effect for effect in effects]
        if effects or entry.kind == Kind.EVENT or key in self._drafts:
            self._drafts.setdefault(key, _Draft(self._causes.get(key, entry))).add(entry, place, effects)

    def state(self) -> HistoryState:
        """The events that changed something, oldest first."""
        shown = sorted((draft for draft in self._drafts.values() if draft.effects), key=lambda draft: draft.place)
        moments = tuple(draft.moment for draft in shown[-_MOMENTS_MAX:])
        return HistoryState(tuple(self.entries), moments, tuple(self._pictures))


class _Draft:
    def __init__(self, cause: Entry) -> None:
        self.cause = cause
        self.place = 0
        self.time_ms = cause.time_ms
        self.effects: list[str] = []
        self.links: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.touched: set[str] = set()
        self.is_bad = False
        self._made: Moment | None = None

    def add(self, entry: Entry, place: int, effects: list[str]) -> None:
        self._made = None
        if effects:
            self.place = place
        self.effects += effects
        if effects and entry.topic_partition is not None:
            self.touched.add(str(entry.topic_partition))
        self.is_bad |= any(word in effect for effect in effects for word in _BAD)
        if entry.kind in _TELLING:
            of_kind = self.links[entry.kind, entry.what]
            of_kind.append(_link(entry))

    def _chain(self) -> Iterator[str]:
        """The first few steps of each kind: a broker's death moves thousands of partitions."""
        for (kind, what), links in self.links.items():
            yield from links[:_LINKS_OF_A_KIND]
            more = len(links) - _LINKS_OF_A_KIND
            if more > 0:
                yield f"… and {more:,} more: {kind} {what}"

    @property
    def moment(self) -> Moment:
        if self._made is None:
            self._made = self._make()
        return self._made

    def _changed_brokers(self) -> str:
        """`Broker 0 left`, where that is what happened."""
        if self.cause.what != "BrokersChanged":
            return ""
        changes = ", ".join(effect.partition(":")[0] for effect in self.effects if _MEMBERSHIP.match(effect))
        return (changes[:1].upper() + changes[1:])[:_TITLE_LENGTH]

    def _make(self) -> Moment:
        return Moment(
            self.time_ms,
            self.place,
            self._changed_brokers() or _title(self.cause),
            "bad" if self.is_bad else "",
            tuple(sorted(self.effects, key=lambda effect: effect.startswith("__"))),
            tuple(self._chain()),
            frozenset(self.touched),
        )


def _effects(
    entry: Entry, brokers: set[int], controller: int, before: PartitionPicture | None, picture: Picture
) -> list[str]:
    if entry.kind == Kind.LIFE:
        return [f"broker {entry.broker} {entry.what.lower()}"]
    if entry.kind == Kind.SESSION:
        return [f"broker {entry.broker}: {entry.text or entry.what}"]
    if entry.kind == Kind.GROUP:
        why = f": {entry.text}" if entry.text else ""
        return [f"group {entry.group}: generation {entry.generation}, {plural(entry.count or 0, 'member')}{why}"]
    if entry.kind == Kind.TRANSACTION:
        is_trouble = entry.what in (TIMED_OUT, FENCED)
        return [f"transactional id {entry.transactional_id}: {entry.text}"] if is_trouble else []
    if entry.kind in GAPS:
        length = "" if entry.since_ms is None else f" ({(entry.time_ms - entry.since_ms) / 1000:,.1f} s until here)"
        return [gap_text(entry) + length]
    if entry.kind == Kind.LOG_DIR:
        what = f"log directory {entry.directory} failed: {entry.text}"
        return [f"broker {entry.broker}: {what if entry.what == LOG_DIR_FAILED else entry.text}"]
    effects: list[str] = []
    if picture.controller != controller and picture.controller >= 0:
        effects.append(f"broker {picture.controller} is controller, epoch {picture.controller_epoch}")
    effects += [f"broker {broker} left" for broker in sorted(brokers - set(picture.brokers))]
    effects += [f"broker {broker} joined" for broker in sorted(set(picture.brokers) - brokers)]
    tp = entry.topic_partition
    after = picture.partitions.get(tp) if tp is not None else None
    if tp is not None and after is not None and entry.what == "PartitionState":
        effects += _partition_effects(str(tp), before, after)
    return effects


def _partition_effects(name: str, before: PartitionPicture | None, after: PartitionPicture) -> list[str]:
    if before is None or before.leader_epoch < 0:
        return [f"{name}: broker {after.leader} leads" if after.leader >= 0 else f"{name}: no leader"]
    effects: list[str] = []
    if before.leader != after.leader:
        to = f"broker {after.leader}" if after.leader >= 0 else "no leader"
        effects.append(
            f"{name}: leader {before.leader if before.leader >= 0 else 'none'} → {to}, epoch {after.leader_epoch}"
        )
    if set(before.isr) != set(after.isr):
        word = "shrank" if len(after.isr) < len(before.isr) else "grew"
        effects.append(f"{name}: ISR {word} {list(before.isr)} → {list(after.isr)}")
    return effects


_MEMBERSHIP = re.compile(r"broker \d+ (left|joined)")
_BAD = (" left", "no leader", "shrank", "stopped", "connection broke", "expired", "missing", "failed", "no journal")
_TITLE_LENGTH = 90
_TITLES = {
    "BrokersChanged": "The brokers changed",
    "BrokerInfoChanged": "A broker's registration changed",
    "TopicsChanged": "Topics changed",
    "TopicAssignmentChanged": "A topic's assignment changed",
    "TopicDeletionAsked": "Topics are to be deleted",
    "ControllerElected": "A controller was elected",
    "IsrChangeAsked": "A leader asked for another ISR",
    "IsrChangesNotified": "A leader changed its ISR",
    "RebalanceDue": "Leaders were checked against their preferred ones",
    "ElectionAsked": "An election was asked for",
    "ReassignmentsAsked": "A reassignment was asked for",
    "ControlledShutdownAsked": "A broker asked to leave",
    "LogDirsFailed": "A log directory failed",
    "LogDirFailed": "A log directory failed",
    "JournalMoved": "A journal continues in another directory",
    "EntriesMissing": "Entries are missing",
    "NotWritten": "Entries are missing",
    "DirectoryMissing": "Entries may be missing",
    "Dropped": "Entries are missing",
    "ControllerMissing": "The journal of a controller is missing",
    "LeaderAndIsrAnswered": "A broker obeyed",
    "Rebalanced": "A group rebalanced",
    TIMED_OUT: "A transaction timed out",
    FENCED: "A producer was fenced",
    "CONNECTION_LOST": "A broker lost its connection to ZooKeeper",
    "CONNECTION_RESTORED": "A broker found ZooKeeper again",
    "SESSION_LOST": "A broker lost its session with ZooKeeper",
    "SESSION_RENEWED": "A broker has a new session with ZooKeeper",
    "Elected": "A broker became controller",
    "TookOver": "The controller has taken over",
    "Resigned": "A controller resigned",
    "Started": "A broker started",
    "Stopped": "A broker stopped",
}


def _title(entry: Entry) -> str:
    known = _TITLES.get(entry.what)
    if known is None:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in entry.what).strip()
        known = words[:1].upper() + words[1:]
    if not entry.text or entry.kind != Kind.EVENT:
        return known
    title = f"{known} ({entry.text})"
    return title if len(title) <= _TITLE_LENGTH else f"{title[:_TITLE_LENGTH]}…"


def _link(entry: Entry) -> str:
    match entry.kind:
        case Kind.SEND:
            about = f" about {plural_partitions(entry)}" if entry.count or entry.partitions else ""
            return f"sent to broker {entry.peer}: {entry.what}{about}"
        case Kind.WRITE:
            where = f" of {entry.topic_partition}" if entry.topic_partition is not None else ""
            version = f" if version is {entry.version - 1}" if entry.version else ""
            return f"wrote {entry.what}{where}{version}"
    return entry.text or entry.what


def plural_partitions(entry: Entry) -> str:
    number = entry.count if entry.count is not None else len(entry.partitions or ())
    shown = ", ".join((entry.partitions or ())[:3])
    return f"{shown}{' and others' if number > 3 else ''}" or f"{number} partitions"
