"""What lies in brokers' log directories: which broker, which partitions, which segments, and what the checkpoints say.

Read-only, and made for directories that a running broker writes to, that a dead one left, or that were copied.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.model.topology import TopicPartition
from odradek.pipeline.source.errors import OptionError

_SEGMENT: Final = re.compile(r"\d{20}\.log")
# of a replica that moves between directories, is deleted, or belongs to nobody
_NOT_A_REPLICA: Final = re.compile(r".*\.[0-9a-z]+-(future|delete|stray)")
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class ReplicaDirectory:
    """One replica of one partition on disk, with what its broker's checkpoints say of it (None: nothing)."""

    broker: int
    path: Path
    partition: TopicPartition
    high_watermark: int | None
    log_start: int | None
    cleaned_to: int | None

    def segments(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if _SEGMENT.fullmatch(path.name))


def replicas(paths: Iterable[str], topics: frozenset[str] = frozenset()) -> list[ReplicaDirectory]:
    """All replicas under the paths, each a log directory or a directory of brokers', as `odradek up` makes them."""
    return [
        replica
        for directory in log_directories(paths)
        for replica in _replicas_of(directory)
        if not topics or replica.partition.topic in topics
    ]


def existing_replicas(paths: Sequence[str], topics: frozenset[str]) -> list[ReplicaDirectory]:
    """Those, and at least one. OptionError if it's nothing, or if a topic isn't there at all."""
    found = replicas(paths, topics)
    absent = topics - {replica.partition.topic for replica in found}
    if absent or not found:
        raise OptionError(f"there is no partition of {', '.join(sorted(absent)) or 'any topic'} in {', '.join(paths)}")
    return found


def log_directories(paths: Iterable[str]) -> list[Path]:
    """The directories with a meta.properties at or below the paths."""
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if not path.is_dir():
            raise OptionError(f"{text} is no directory")
        below = [path, *path.glob("*"), *path.glob("*/*")]
        here = sorted({each for each in below if (each / "meta.properties").is_file()})
        if not here:
            raise OptionError(f"{text} is no log directory of a broker: there is no meta.properties in it")
        found += [each for each in here if each not in found]
    return found


def _replicas_of(directory: Path) -> Iterator[ReplicaDirectory]:
    broker = _broker_id(directory)
    high_watermarks, starts, cleaned = (
        read_checkpoint(directory / name) for name in (HIGH_WATERMARKS, LOG_STARTS, CLEANED)
    )
    for path in sorted(directory.iterdir()):
        topic, dash, number = path.name.rpartition("-")
        if not (path.is_dir() and dash and number.isdecimal()) or _NOT_A_REPLICA.fullmatch(path.name):
            continue
        partition = TopicPartition(topic, int(number))
        yield ReplicaDirectory(
            broker, path, partition, high_watermarks.get(partition), starts.get(partition), cleaned.get(partition)
        )


def read_checkpoint(path: Path) -> dict[TopicPartition, int]:
    """`topic partition offset` per line, after the version and the count. A broken one says nothing."""
    try:
        lines = path.read_text().splitlines()[2:]
        found = [line.rsplit(" ", 2) for line in lines if line.strip()]
        return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in found}
    except (FileNotFoundError, ValueError):
        return {}


def _broker_id(directory: Path) -> int:
    """-1 when meta.properties doesn't say."""
    found = re.search(r"^broker\.id\s*=\s*(\d+)\s*$", (directory / "meta.properties").read_text(), re.MULTILINE)
    return int(found[1]) if found else -1
