"""Why a partition's leader or ISR changed: each change with the event that caused it and what else came of it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from odradek.model.topology import TopicPartition
from odradek.recorder.entry import Entry, Kind
from odradek.recorder.picture import PartitionPicture, Picture

_TELLING = frozenset({Kind.MOVE, Kind.SEND, Kind.REPORT, Kind.TENURE})


@dataclass(frozen=True, slots=True)
class Change:
    entry: Entry
    """The write, or the read, by which the controller knows."""
    before: PartitionPicture | None
    """None where the journal begins with it."""
    after: PartitionPicture
    cause: Entry | None
    """The event; None where its entry is lost."""
    chain: tuple[Entry, ...]
    """What else was done about that event that concerns the partition: reports, moves, requests to brokers."""

    @property
    def is_of_leader(self) -> bool:
        return self.before is None or self.before.leader != self.after.leader


def is_about(entry: Entry, tp: TopicPartition) -> bool:
    """Whether `changes_of` that partition needs the entry."""
    if entry.topic is not None:
        return entry.topic == tp.topic and entry.partition in (tp.partition, None)
    return entry.partitions is None or str(tp) in entry.partitions or len(entry.partitions) < (entry.count or 0)


def changes_of(tp: TopicPartition, entries: Iterable[Entry]) -> list[Change]:
    """Oldest first. `entries` in their merged order."""
    story = [entry for entry in entries if is_about(entry, tp)]
    by_cause: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    by_seq = {(entry.broker, entry.seq): entry for entry in story}
    for entry in story:
        if entry.cause is not None and entry.kind in _TELLING:
            by_cause[entry.broker, entry.cause].append(entry)
    changes: list[Change] = []
    picture = Picture()
    for entry in story:
        before = picture.partitions.get(tp)
        picture.apply(entry)
        after = picture.partitions.get(tp)
        if after is None or entry.kind not in (Kind.READ, Kind.WRITE) or entry.what != "PartitionState":
            continue
        if before is not None and _led(before) == _led(after):
            continue
        cause = None if entry.cause is None else (entry.broker, entry.cause)
        led_before = None if before is None or before.leader_epoch < 0 else before
        changes.append(
            Change(
                entry,
                led_before,
                after,
                None if cause is None else by_seq.get(cause),
                () if cause is None else tuple(by_cause[cause]),
            )
        )
    return changes


def _led(state: PartitionPicture) -> tuple[int, int, tuple[int, ...]]:
    return state.leader, state.leader_epoch, state.isr
