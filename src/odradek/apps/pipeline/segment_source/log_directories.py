"""What lies in brokers' log directories: which broker, which partitions, which segments, and what the checkpoints say.

Read-only, and made for directories that a running broker writes to, that a dead one left, or that were copied.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from odradek.apps.pipeline.source.errors import OptionError
from odradek.model.topology import ZERO_UUID, TopicPartition
from odradek.model.uuid_text import uuid_from_text

_SEGMENT: Final = re.compile(r"\d{20}\.log")
_STRAY: Final = re.compile(r"(.+)\.[0-9a-z]+-stray")
META_PROPERTIES: Final = "meta.properties"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"


@dataclass(frozen=True, slots=True, order=True)
class LogDirectory:
    """One of a broker's `log.dirs`, by its meta.properties."""

    path: Path
    broker: int
    """-1 when it doesn't say."""
    cluster_id: str | None


@dataclass(frozen=True, slots=True)
class ReplicaDirectory:
    """One replica of one partition on disk, with what its broker's checkpoints say of it (None: nothing)."""

    broker: int
    path: Path
    partition: TopicPartition
    high_watermark: int | None
    flushed_to: int | None
    log_start: int | None
    cleaned_to: int | None
    topic_id: UUID
    """All zero when its partition.metadata doesn't say."""

    def segments(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if _SEGMENT.fullmatch(path.name))

    def size_bytes(self) -> int:
        """Of its segments; none when the broker has deleted it meanwhile."""
        try:
            return sum(path.stat().st_size for path in self.segments())
        except FileNotFoundError:
            return 0


def replicas(paths: Iterable[str], topics: frozenset[str] = frozenset()) -> list[ReplicaDirectory]:
    """All replicas under the paths, each a log directory or a directory of brokers', as `odradek up` makes them."""
    return _wanted(log_directories(paths), topics, _partition_of)


def stray_replicas(directories: Iterable[LogDirectory], topics: frozenset[str]) -> list[ReplicaDirectory]:
    """Replicas that a broker has set aside because nobody told it to host them: `orders-0.UUID-stray`."""
    return _wanted(directories, topics, _stray_partition_of)


def existing_replicas(paths: Sequence[str], topics: frozenset[str]) -> list[ReplicaDirectory]:
    """Those, and at least one. OptionError if it's nothing, or if a topic isn't there at all."""
    found = replicas(paths, topics)
    absent = topics - {replica.partition.topic for replica in found}
    if absent or not found:
        raise OptionError(f"there is no partition of {', '.join(sorted(absent)) or 'any topic'} in {', '.join(paths)}")
    return found


def log_directories(paths: Iterable[str]) -> list[LogDirectory]:
    """The directories with a meta.properties at or below the paths."""
    found: list[LogDirectory] = []
    for text in paths:
        path = Path(text)
        if not path.is_dir():
            raise OptionError(f"{text} is no directory")
        below = [path, *path.glob("*"), *path.glob("*/*")]
        here = [_log_directory(each) for each in sorted(set(below)) if (each / META_PROPERTIES).is_file()]
        if not here:
            raise OptionError(f"{text} is no log directory of a broker: there is no {META_PROPERTIES} in it")
        found += [each for each in here if each not in found]
    return found


def _wanted(
    directories: Iterable[LogDirectory],
    topics: frozenset[str],
    partition_of: Callable[[str], TopicPartition | None],
) -> list[ReplicaDirectory]:
    return [
        replica
        for directory in directories
        for replica in _replicas_of(directory, partition_of)
        if not topics or replica.partition.topic in topics
    ]


def _replicas_of(
    directory: LogDirectory, partition_of: Callable[[str], TopicPartition | None]
) -> Iterator[ReplicaDirectory]:
    high_watermarks, flushed, starts, cleaned = (
        read_checkpoint(directory.path / name) for name in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANED)
    )
    for path in sorted(directory.path.iterdir()):
        partition = partition_of(path.name)
        if partition is not None and path.is_dir():
            yield ReplicaDirectory(
                directory.broker,
                path,
                partition,
                high_watermarks.get(partition),
                flushed.get(partition),
                starts.get(partition),
                cleaned.get(partition),
                _topic_id(path),
            )


def _partition_of(name: str) -> TopicPartition | None:
    """None of a replica that moves between directories, is deleted, or is stray: their names end in a word."""
    topic, dash, number = name.rpartition("-")
    return TopicPartition(topic, int(number)) if dash and number.isdecimal() else None


def _stray_partition_of(name: str) -> TopicPartition | None:
    found = _STRAY.fullmatch(name)
    return None if found is None else _partition_of(found[1])


def read_checkpoint(path: Path) -> dict[TopicPartition, int]:
    """`topic partition offset` per line, after the version and the count. A broken one says nothing."""
    try:
        lines = path.read_text().splitlines()[2:]
        found = [line.rsplit(" ", 2) for line in lines if line.strip()]
        return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in found}
    except (FileNotFoundError, ValueError):
        return {}


def _log_directory(path: Path) -> LogDirectory:
    text = (path / META_PROPERTIES).read_text()
    broker, cluster_id = (
        re.search(rf"^{key}\s*=\s*(\S+)\s*$", text, re.MULTILINE) for key in (r"broker\.id", r"cluster\.id")
    )
    known = broker is not None and broker[1].isdecimal()
    return LogDirectory(path, int(broker[1]) if broker and known else -1, None if cluster_id is None else cluster_id[1])


def _topic_id(path: Path) -> UUID:
    try:
        found = re.search(r"^topic_id: (\S+)$", (path / "partition.metadata").read_text(), re.MULTILINE)
        return ZERO_UUID if found is None else uuid_from_text(found[1])
    except (FileNotFoundError, ValueError):
        return ZERO_UUID
