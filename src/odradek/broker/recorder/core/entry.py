"""One line of a journal. The format is flat JSON, so that `spark.read.json` makes columns of it:

    {"time_ms":1794881405123,"broker":1,"seq":120,"kind":"event","what":"BrokersChanged","controller_epoch":1}
    {"time_ms":1794881405125,"broker":1,"seq":124,"kind":"write","what":"PartitionState","cause":120,
     "controller_epoch":1,"topic":"orders","partition":2,"leader":2,"leader_epoch":1,"isr":[2,1],"version":1}

Missing fields of an entry are left out of its line.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from odradek.base.value_classes import dataclass
from odradek.model.topology import TopicPartition


class Kind(StrEnum):
    LIFE = "lifecycle"  # the broker started or stopped
    SESSION = "session"  # with ZooKeeper
    TERM = "term"  # this broker became controller, has taken over, or is controller no longer
    EVENT = "event"  # an event of the controller; the cause of the entries that follow
    READ = "read"  # a read from ZooKeeper
    WATCH = "watch"  # a watch set in ZooKeeper
    WRITE = "write"  # to ZooKeeper
    MOVE = "state"  # of a state machine: partition or replica
    SEND = "send"  # a request to a broker
    CHANNEL = "channel"  # to a broker, opened or closed
    ANSWER = "response"  # to the requester
    LATER = "deferred"  # an event that was scheduled
    REPORT = "report"  # a message for the operator
    ISR = "isr"  # a leader wants to change its ISR
    GROUP = "group"  # a group that this broker coordinates has its next generation; `text` says why
    TRANSACTION = "txn"  # a transactional id that this broker coordinates has moved; `text` says why
    PICTURE = "snapshot"  # state of the controller at the begin of the file
    LOG_DIR = "logdir"  # a log directory of this broker failed, or the journal goes on in another one
    DROPPED = "dropped"  # entries for which the queue had no room; `count` says how many
    GAP = "gap"  # entries that were numbered and are not there; `count` says how many, where that is known


_FORMER_KINDS = {
    "life": Kind.LIFE,
    "tenure": Kind.TERM,
    "move": Kind.MOVE,
    "answer": Kind.ANSWER,
    "later": Kind.LATER,
    "picture": Kind.PICTURE,
}
"""Names of kinds in journals that were written before."""
GAPS = frozenset({Kind.DROPPED, Kind.GAP})
JOURNAL_MOVED = "JournalMoved"
LOG_DIR_FAILED = "LogDirFailed"


@dataclass(frozen=True, slots=True)
class Entry:
    time_ms: int
    broker: int
    """Broker whose journal it is from."""
    seq: int
    """Rises by one with each line of a broker's journal, over its restarts too. It jumps where the broker can't know
    how far it was, since a directory is missing that may hold the last lines."""
    kind: str
    what: str
    cause: int | None = None
    """The `seq`, in the same journal, of the event that caused the entry."""
    controller_epoch: int | None = None
    """Epoch of the controller's term; None for entries outside of a term."""
    text: str | None = None
    topic: str | None = None
    partition: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    version: int | None = None
    """Version of the partition's state node."""
    peer: int | None = None
    """The other broker: the receiver of a request, or its sender."""
    partitions: tuple[str, ...] | None = None
    """Whom a request or an event names; the first of them where there are many."""
    count: int | None = None
    group: str | None = None
    generation: int | None = None
    """Generation of the group; `count` is the number of its members."""
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    """Epoch of the transactional id, after the event."""
    left_out: int | None = None
    """Number of transactions of the id that were not recorded before this event."""
    since_ms: int | None = None
    """Time since which the leader leads (in a picture), or of the last entry before a gap."""
    after: int | None = None
    """The `seq` of the last line that was written before this one, where lines may be missing in between."""
    directory: str | None = None
    """The log directory that failed, or that holds what came before."""
    members: tuple[Mapping[str, Any], ...] | None = None
    """The live brokers: id, host, port, rack, epoch."""

    @property
    def topic_partition(self) -> TopicPartition | None:
        return None if self.topic is None or self.partition is None else TopicPartition(self.topic, self.partition)

    def as_line(self) -> str:
        known = ((name, getattr(self, name)) for name in _NAMES)
        content = {name: value for name, value in known if value is not None}
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n"


_NAMES = tuple(field.name for field in fields(Entry))
_LISTS = frozenset({"isr", "replicas", "adding", "removing", "partitions", "members"})


def maybe_entry(line: str) -> Entry | None:
    """Parse a line; None for one that a crash has torn, or for another file's."""
    try:
        content = json.loads(line)
        known: dict[str, Any] = {
            name: tuple(content[name]) if name in _LISTS else content[name] for name in _NAMES if name in content
        }
        known["kind"] = _FORMER_KINDS.get(known["kind"], known["kind"])
        entry = Entry(**known)
    except (ValueError, TypeError, KeyError):
        return None
    whole = isinstance(entry.time_ms, int) and isinstance(entry.seq, int) and isinstance(entry.broker, int)
    return entry if whole else None
