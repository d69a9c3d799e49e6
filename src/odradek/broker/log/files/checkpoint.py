"""Kafka's text checkpoint files: a version line, a count line, then one entry per line.

A checkpoint is replaced, never edited: temporary file, fsync, rename, fsync of the directory. So a reader sees the
old one or the new one. One that is missing or makes no sense reads as empty, because everything in it can be found
again from the log; the caller starts with less knowledge, not with an error.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.base.logs import get_logger
from odradek.model.topology import TopicPartition

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

_VERSION = 0

log = get_logger(__name__)


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Lines of `topic partition offset`."""
    write_entries(path, (f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()))


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in (line.split() for line in _entries(path))
        }
    except ValueError as error:
        log.warning("checkpoint ignored", path=str(path), reason=str(error))
        return {}


def write_epochs(path: Path, entries: Iterable[tuple[int, int]]) -> None:
    """Lines of `epoch start_offset`."""
    write_entries(path, (f"{epoch} {start}" for epoch, start in entries))


def read_epochs(path: Path) -> list[tuple[int, int]]:
    try:
        return [(int(epoch), int(start)) for epoch, start in (line.split() for line in _entries(path))]
    except ValueError as error:
        log.warning("checkpoint ignored", path=str(path), reason=str(error))
        return []


def write_entries(path: Path, entries: Iterable[str]) -> None:
    lines = list(entries)
    replace_file(path, "".join(f"{line}\n" for line in (str(_VERSION), str(len(lines)), *lines)).encode())


def _entries(path: Path) -> list[str]:
    """The entry lines; ValueError when the file isn't a whole checkpoint."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    if len(lines) < 2 or int(lines[0]) != _VERSION:
        raise ValueError("no version line that is known here")
    entries = [line for line in lines[2:] if line.strip()]
    if len(entries) != int(lines[1]):
        raise ValueError(f"{lines[1]} entries announced, {len(entries)} found")
    return entries


def replace_file(path: Path, content: bytes) -> None:
    """The file has this content, or still its old one, whatever happens meanwhile."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes creations, renames and removals in the directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
