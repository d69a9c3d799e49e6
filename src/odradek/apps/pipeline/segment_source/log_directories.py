"""Log directories of brokers: their broker, partitions, segments and checkpoints.

Read-only; the directories may belong to a running broker or a dead one, or be copies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from odradek.apps.pipeline.source.errors import OptionError
from odradek.base.config.properties import parse_properties
from odradek.format.checkpoints import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    parse_offsets,
)
from odradek.format.directory_identity import (
    BROKER_ID_KEY,
    CLUSTER_ID_KEY,
    META_PROPERTIES,
    PARTITION_METADATA,
    parse_topic_id,
)
from odradek.format.log_names import LogKind, parse
from odradek.format.segment_files import is_log_file
from odradek.model.topology import ZERO_UUID, TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class LogDirectory:
    """One of a broker's `log.dirs`, by its meta.properties."""

    path: Path
    broker: int
    """-1 if the file has none."""
    cluster_id: str | None


@dataclass(frozen=True, slots=True)
class ReplicaDirectory:
    """One replica of one partition on disk, with its offsets in the broker's checkpoints (None: no entry)."""

    broker: int
    path: Path
    partition: TopicPartition
    high_watermark: int | None
    flushed_to: int | None
    log_start: int | None
    cleaned_to: int | None
    topic_id: UUID
    """All zeros if partition.metadata has none."""

    def segments(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if is_log_file(path.name))

    def size_bytes(self) -> int:
        """Size of the segments; 0 if the broker has deleted the replica meanwhile."""
        try:
            return sum(path.stat().st_size for path in self.segments())
        except FileNotFoundError:
            return 0


def replicas(paths: Iterable[str], topics: frozenset[str] = frozenset()) -> list[ReplicaDirectory]:
    """Return all replicas under the paths; a path is a log directory, or a directory of brokers that `odradek up`
    made."""
    return _wanted(log_directories(paths), topics, LogKind.CURRENT)


def stray_replicas(directories: Iterable[LogDirectory], topics: frozenset[str]) -> list[ReplicaDirectory]:
    """Return replicas that a broker has set aside because it no longer hosts them: `orders-0.UUID-stray`."""
    return _wanted(directories, topics, LogKind.STRAY)


def existing_replicas(paths: Sequence[str], topics: frozenset[str]) -> list[ReplicaDirectory]:
    """Return the replicas under the paths. OptionError if there is none, or none of a named topic."""
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
            raise OptionError(f"{text} is not a directory")
        below = [path, *path.glob("*"), *path.glob("*/*")]
        here = [_log_directory(each) for each in sorted(set(below)) if (each / META_PROPERTIES).is_file()]
        if not here:
            raise OptionError(f"{text} is not a log directory of a broker: there is no {META_PROPERTIES} in it")
        found += [each for each in here if each not in found]
    return found


def _wanted(
    directories: Iterable[LogDirectory],
    topics: frozenset[str],
    kind: LogKind,
) -> list[ReplicaDirectory]:
    return [
        replica
        for directory in directories
        for replica in _replicas_of(directory, kind)
        if not topics or replica.partition.topic in topics
    ]


def _replicas_of(directory: LogDirectory, kind: LogKind) -> Iterator[ReplicaDirectory]:
    high_watermarks, flushed, starts, cleaned = (
        read_checkpoint(directory.path / name)
        for name in (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE, LOG_START_FILE, CLEANER_FILE)
    )
    for path in sorted(directory.path.iterdir()):
        name = parse(path.name)
        if name.kind is kind and name.partition is not None and path.is_dir():
            partition = name.partition
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


def read_checkpoint(path: Path) -> dict[TopicPartition, int]:
    """Read the offsets of a checkpoint file; none if it is missing or broken."""
    try:
        return parse_offsets(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _log_directory(path: Path) -> LogDirectory:
    try:
        properties = parse_properties((path / META_PROPERTIES).read_text())
    except ValueError:
        properties = {}
    broker = properties.get(BROKER_ID_KEY, "")
    return LogDirectory(path, int(broker) if broker.isdecimal() else -1, properties.get(CLUSTER_ID_KEY))


def _topic_id(path: Path) -> UUID:
    try:
        return parse_topic_id((path / PARTITION_METADATA).read_text())
    except (FileNotFoundError, ValueError):
        return ZERO_UUID
