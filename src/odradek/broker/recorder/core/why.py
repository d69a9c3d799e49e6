"""Causes of changes of a partition's leader or ISR: each change with its event and its other effects.

Most causes are events of the controller, and the reason is the cause of the event: a failed broker, a failed log
directory. A change that a controller found at its election was made before: its cause is not the election, and not in
these journals.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Any

from odradek.base.value_classes import dataclass
from odradek.broker.recorder.core.entry import LOG_DIR_FAILED, Entry, Kind
from odradek.broker.recorder.core.gaps import gaps_of_controllers
from odradek.broker.recorder.core.picture import PartitionPicture, Picture
from odradek.model.topology import TopicPartition

_TELLING = frozenset({Kind.MOVE, Kind.SEND, Kind.REPORT, Kind.TERM})
_OF_A_BROKER = frozenset({Kind.LIFE, Kind.SESSION, Kind.LOG_DIR})
_ELECTED = "ControllerElected"
_RESIGNED = "Resigned"
_ENDS = {
    "Stopped": "stopped",
    "SESSION_LOST": "lost its session with ZooKeeper",
    "CONNECTION_LOST": "lost its connection to ZooKeeper",
}


@dataclass(frozen=True, slots=True)
class Change:
    entry: Entry
    """The write, or the read, by which the controller knows."""
    before: PartitionPicture | None
    """None where the journal begins with it."""
    after: PartitionPicture
    cause: Entry | None
    """The event; None where its entry is lost, or where the change was made before the controller was elected."""
    chain: tuple[Entry, ...]
    """Other effects of that event on the partition: reports, moves, requests to brokers.

    Of a change that was found: what brokers recorded of themselves since the last that is known of the partition."""
    reason: str
    gaps: tuple[Entry, ...]
    """Gaps of the journals since the last entry about the partition."""
    was_found: bool = False
    """True if the controller read this state when it was elected."""

    @property
    def is_of_leader(self) -> bool:
        return self.before is None or self.before.leader != self.after.leader


def is_about(entry: Entry, tp: TopicPartition) -> bool:
    """Return whether `changes_of` that partition needs the entry."""
    if entry.kind == Kind.TRANSACTION:
        return False
    if entry.topic is not None:
        return entry.topic == tp.topic and entry.partition in (tp.partition, None)
    return entry.partitions is None or str(tp) in entry.partitions or len(entry.partitions) < (entry.count or 0)


def changes_of(tp: TopicPartition, entries: Iterable[Entry]) -> list[Change]:
    """Oldest first. `entries` in their merged order, gaps among them."""
    story = [entry for entry in entries if is_about(entry, tp)]
    known = _Known(story)
    changes: list[Change] = []
    for place, entry in enumerate(story):
        before = known.picture.partitions.get(tp)
        known.take(entry)
        after = known.picture.partitions.get(tp)
        if after is None or entry.kind not in (Kind.READ, Kind.WRITE) or entry.what != "PartitionState":
            continue
        if before is None or _led(before) != _led(after):
            led_before = None if before is None or before.leader_epoch < 0 else before
            changes.append(known.change(entry, place, led_before, after))
        known.forget_gaps()
    return changes


def gaps_since(tp: TopicPartition, entries: Sequence[Entry]) -> list[Entry]:
    """Return the gaps since the last known state of the partition."""
    gaps = set(map(id, gaps_of_controllers(entries)))
    latest = takewhile(lambda entry: entry.topic_partition != tp, reversed(entries))
    return [entry for entry in latest if id(entry) in gaps][::-1]


def _led(state: PartitionPicture) -> tuple[int, int, tuple[int, ...]]:
    return state.leader, state.leader_epoch, state.isr


@dataclass(slots=True)
class _Moment:
    """State at the time of an event."""

    brokers: Mapping[int, Mapping[str, Any]]
    former_controller: tuple[int, int]
    """Id and epoch of the previous controller."""


@dataclass(slots=True)
class _Known:
    """Story so far; and the brokers' own entries of later times."""

    story: Sequence[Entry]
    picture: Picture = field(default_factory=Picture)
    _events: dict[tuple[int, int], Entry] = field(default_factory=dict)
    _by_cause: dict[tuple[int, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _moments: dict[tuple[int, int], _Moment] = field(default_factory=dict)
    _controllers: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0), (-1, 0)])
    _gaps: list[Entry] = field(default_factory=list)
    _since: list[Entry] = field(default_factory=list)
    _relevant_gaps: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._relevant_gaps = set(map(id, gaps_of_controllers(self.story)))
        for entry in self.story:
            if entry.cause is not None and entry.kind in _TELLING:
                self._by_cause[entry.broker, entry.cause].append(entry)

    def take(self, entry: Entry) -> None:
        self.picture.apply(entry)
        if entry.kind == Kind.EVENT:
            self._events[entry.broker, entry.seq] = entry
            self._moments[entry.broker, entry.seq] = _Moment(self.picture.brokers, self._controllers[-2])
        elif id(entry) in self._relevant_gaps:
            self._gaps.append(entry)
        elif entry.kind in _OF_A_BROKER:
            self._since.append(entry)
        controller = self.picture.controller, self.picture.controller_epoch
        if controller[0] >= 0 and controller != self._controllers[-1]:
            self._controllers.append(controller)

    def forget_gaps(self) -> None:
        """The state of the partition is known again."""
        self._gaps, self._since = [], []

    def change(self, entry: Entry, place: int, before: PartitionPicture | None, after: PartitionPicture) -> Change:
        key = (entry.broker, -1 if entry.cause is None else entry.cause)
        cause, chain = self._events.get(key), tuple(self._by_cause.get(key, ()))
        reason = self._reason(cause, place, before, after)
        if entry.kind == Kind.READ and cause is not None and cause.what == _ELECTED:
            found = f"controller {entry.broker} read this state when it was elected"
            if before is not None:
                reason = f"not recorded: {found}"
                return Change(entry, before, after, None, tuple(self._since), reason, tuple(self._gaps), was_found=True)
            reason = f"the journals begin with it: {found}"
        return Change(entry, before, after, cause, chain, reason, tuple(self._gaps))

    # --- reasons -------------------------------------------------------------------------------------------------

    def _reason(self, cause: Entry | None, place: int, before: PartitionPicture | None, after: PartitionPicture) -> str:
        if cause is None:
            return "not known: the entry of its cause is lost"
        if cause.what == "LeaderAndIsrAnswered" and cause.peer is not None:
            return self._directory_reason(cause.peer, place)
        if cause.what in ("BrokersChanged", _ELECTED) and before is not None:
            moment = self._moments[cause.broker, cause.seq]
            concerned = [before.leader] if before.leader != after.leader else sorted(set(before.isr) - set(after.isr))
            candidates = [self._broker_reason(broker, place, cause, moment) for broker in concerned if broker >= 0]
            if reasons := [reason for reason in candidates if reason]:
                return "; ".join(reasons)
            if moment.brokers and after.leader >= 0 and after.leader not in moment.brokers:
                return f"broker {after.leader} came"
        return cause.what if cause.text is None else f"{cause.what}: {cause.text}"

    def _directory_reason(self, broker: int, place: int) -> str:
        """A broker answers a LeaderAndIsr with an error about the replicas whose directory has failed.

        By a clock that is ahead it may have recorded that later than the controller acted.
        """
        before, after = self._own(broker, place)
        failures = [entry for entry in before if entry.what == LOG_DIR_FAILED][-1:]
        failures += [entry for entry in after if entry.what == LOG_DIR_FAILED][:1]
        if not failures:
            return f"a log directory of broker {broker} failed"
        return f"log directory {failures[0].directory} of broker {broker} failed: {failures[0].text}"

    def _broker_reason(self, broker: int, place: int, cause: Entry, moment: _Moment) -> str:
        now, then = self.picture.brokers.get(broker), moment.brokers.get(broker)
        controller, epoch = moment.former_controller
        was_controller = cause.what == _ELECTED and broker == controller
        role = f", the controller of epoch {epoch}," if was_controller else ""
        if now is None and self.picture.brokers:
            return f"broker {broker}{role} {self._end_of(broker, place, epoch if was_controller else None)}"
        if now is not None and then is not None and now.get("epoch") != then.get("epoch"):
            return f"broker {broker}{role} is back with another session"
        return ""

    def _end_of(self, broker: int, place: int, epoch: int | None) -> str:
        """Return the end of the broker by its own journal, which may have the entry only after others had acted.

        `epoch`: of the controller that it was, and that may have resigned.
        """
        before, after = self._own(broker, place, epoch)
        for entry in reversed(before):
            if entry.what == LOG_DIR_FAILED:
                return f"is gone: its log directory {entry.directory} failed: {entry.text}"
            if entry.what == "Started":
                break
        for entry in (*before[-1:], *after[:1]):
            if entry.what == _RESIGNED:
                return f"is gone: {entry.text}"
            if entry.what in _ENDS:
                return _ENDS[entry.what]
        return "is gone, without a stop in its journal" if before or after else "is gone"

    def _own(self, broker: int, place: int, epoch: int | None = None) -> tuple[list[Entry], list[Entry]]:
        """Return the broker's own entries before and after that place of the story."""
        parts = self.story[:place], self.story[place:]
        before, after = (
            [entry for entry in part if entry.broker == broker and _is_of_life(entry, epoch)] for part in parts
        )
        return before, after


def _is_of_life(entry: Entry, epoch: int | None) -> bool:
    if entry.what == _RESIGNED:
        return entry.controller_epoch == epoch
    return entry.kind in (Kind.LIFE, Kind.SESSION) or entry.what == LOG_DIR_FAILED
