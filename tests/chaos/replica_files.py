"""The replicas of a partition, compared byte for byte on disk.

For brokers that have stopped, or whose clients are quiet: files are read as they are. Below the high watermark all
replicas hold the same batches; above it a replica may be behind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import batches


@dataclass(frozen=True, slots=True)
class StoredBatch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    content: bytes


def stored_batches(directory: Path) -> Iterator[StoredBatch]:
    """Every whole batch of a replica's directory, in order."""
    for segment in sorted(directory.glob("*.log")):
        data = memoryview(segment.read_bytes())
        for position, header in batches(data, partial_tail=True):
            content = bytes(data[position : position + header.size])
            yield StoredBatch(header.base_offset, header.last_offset, header.leader_epoch, content)


def differences(replicas: Mapping[int, Path], tp: TopicPartition, high_watermark: int) -> list[str]:
    """Return the differences below the high watermark, per pair of the first replica and another."""
    held = {
        broker: {batch.base_offset: batch for batch in stored_batches(directory) if batch.last_offset < high_watermark}
        for broker, directory in replicas.items()
    }
    first, *others = held
    found = []
    for other in others:
        start = max(min(held[first], default=0), min(held[other], default=0))
        for offset in sorted(held[first].keys() | held[other].keys()):
            if offset < start:
                continue  # retention lets go of segments at each replica's own time
            ours, theirs = held[first].get(offset), held[other].get(offset)
            if ours is None or theirs is None or ours.content != theirs.content:
                found.append(
                    f"{tp} at offset {offset}: broker {first} has {_shown(ours)}, {other} has {_shown(theirs)}"
                )
                break
    return found


def _shown(batch: StoredBatch | None) -> str:
    return "nothing" if batch is None else f"offsets to {batch.last_offset} of epoch {batch.leader_epoch}"
