"""Text checkpoint files: a version line, a count line, then one entry per line.

recovery-point-offset-checkpoint   topic partition offset: up to where fsync has confirmed each log
log-start-offset-checkpoint        topic partition offset: the log start, where it lies inside of a segment
replication-offset-checkpoint      topic partition offset: the high watermark
cleaner-offset-checkpoint          topic partition offset: up to where a compacted log is clean
leader-epoch-checkpoint            epoch start_offset, one file per partition
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.model.topology import TopicPartition

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"

VERSION: Final = 0


def offsets_text(offsets: Mapping[TopicPartition, int]) -> str:
    return _text(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Return the offset of each partition; raise ValueError unless the file is whole."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partition, offset in (line.split() for line in _entries(text))
    }


def epochs_text(entries: Iterable[tuple[int, int]]) -> str:
    return _text(f"{epoch} {start}" for epoch, start in entries)


def parse_epochs(text: str) -> list[tuple[int, int]]:
    """Return pairs of epoch and start offset; raise ValueError unless the file is whole."""
    return [(int(epoch), int(start)) for epoch, start in (line.split() for line in _entries(text))]


def _text(entries: Iterable[str]) -> str:
    lines = list(entries)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(lines)), *lines))


def _entries(text: str) -> list[str]:
    lines = text.splitlines()
    if len(lines) < 2 or int(lines[0]) != VERSION:
        raise ValueError("no version line that is known here")
    entries = [line for line in lines[2:] if line.strip()]
    if len(entries) != int(lines[1]):
        raise ValueError(f"{lines[1]} entries announced, {len(entries)} found")
    return entries
