"""`odradek pipeline replay`: go back in the input and compute again from there.

A replay begins a new generation: empty state, offsets that were asked for. A table must not have duplicates, so batches
with records from there on are removed from it. Batches are removed as a whole, so the replay begins where the first of
them began, which may be a little before the given offsets. Records in topics stay there and are written again, because
they can't be removed.
"""

import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from odradek.apps.pipeline.checkpoint import Checkpoint, Identity, committed_offsets
from odradek.apps.pipeline.cluster_side import cluster_of
from odradek.apps.pipeline.kafka_settings import use_kafka_settings
from odradek.apps.pipeline.spec import Pipeline, TableFormat, TableSink
from odradek.apps.pipeline.table_output import WrittenBatch, written_batches
from odradek.apps.pipeline.tables.core.batch_ranges import parse_directory
from odradek.apps.pipeline.tables.ownership import table_batches, take_back
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.moments import parse_moment
from odradek.client.partition_offsets import list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

Positions = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Replay:
    generation: int
    starting: Positions
    read: Positions  # offsets that the pipeline has reached
    retired: Mapping[str, int]  # batches to remove from each table
    kept_lake_tables: tuple[str, ...]  # tables whose batches can't be distinguished here


def parse_offset(text: str) -> dict[TopicPartition | None, int]:
    """Parse `earliest`, a number for every partition, or TOPIC:PARTITION:OFFSET, several with commas."""
    if text == "earliest":
        return {None: 0}
    if text.isdecimal():
        return {None: int(text)}
    found: dict[TopicPartition | None, int] = {}
    for part in text.split(","):
        topic, _, rest = part.partition(":")
        partition, _, offset = rest.partition(":")
        if not topic or not partition.isdecimal() or not offset.isdecimal():
            raise FatalError(f"{text!r} is not earliest, a number, or TOPIC:PARTITION:OFFSET,…")
        found[TopicPartition(topic, int(partition))] = int(offset)
    return found


def replay(pipeline: Pipeline, *, from_offset: str | None, from_time: str | None, dry_run: bool = False) -> Replay:
    """Prepare a replay; the next `run` carries it out. The pipeline must not be running. `dry_run`: only plan it."""
    use_kafka_settings(pipeline.kafka)
    checkpoint = Checkpoint(pipeline.checkpoint)
    kept = checkpoint.identity()
    if kept is None:
        raise FatalError(f"there is nothing to replay: pipeline {pipeline.name} has not run yet")
    if kept.pipeline != pipeline.name:
        raise FatalError(f"the checkpoint in {checkpoint.directory} belongs to pipeline {kept.pipeline!r}")
    read = read_so_far(pipeline, checkpoint, kept)
    wanted, first = _wanted(pipeline, read, from_offset, from_time)
    batches = [batch for sink in _tables(pipeline) for batch in _batches(pipeline, sink)]
    starting = _whole_batches(wanted, first, batches)
    generation = kept.generation + 1
    if dry_run:
        retired = {name: len(again) for name, again in _replayed(pipeline, generation, starting).items()}
    else:
        retired = retire_replayed(pipeline, checkpoint.next_generation(starting))
    here = {sink.name for sink in _tables(pipeline)}
    others = tuple(s.name for s in pipeline.sinks.values() if isinstance(s, TableSink) and s.name not in here)
    return Replay(generation, starting, read, retired, others)


def retire_replayed(pipeline: Pipeline, identity: Identity) -> dict[str, int]:
    """Remove from the tables the batches that the generation computes again; return how many of each.

    Called by a replay and by every later run: a killed replay leaves batches that would be duplicated.
    """
    replayed = _replayed(pipeline, identity.generation, identity.starting)
    for sink in _tables(pipeline):
        again = replayed[sink.name]
        if sink.name in pipeline.own_delta_tables:
            take_back(sink.path, filter(None, (parse_directory(batch.path.name) for batch in again)))
        else:
            for batch in again:
                _remove_whole(batch.path)
    return {name: len(again) for name, again in replayed.items()}


def _replayed(
    pipeline: Pipeline, generation: int, starting: Mapping[str, Mapping[str, int]]
) -> dict[str, list[WrittenBatch]]:
    """Batches of earlier generations that have records from the starting offsets on, by table."""
    return {
        sink.name: [
            batch for batch in _batches(pipeline, sink) if batch.generation < generation and _reaches(batch, starting)
        ]
        for sink in _tables(pipeline)
    }


def _tables(pipeline: Pipeline) -> list[TableSink]:
    """Tables whose batches can be distinguished here."""
    sinks = [sink for sink in pipeline.sinks.values() if isinstance(sink, TableSink)]
    own = pipeline.own_delta_tables
    return [sink for sink in sinks if sink.format is TableFormat.PARQUET or sink.name in own]


def _batches(pipeline: Pipeline, sink: TableSink) -> list[WrittenBatch]:
    """Batches of a table, oldest first. Merged batches of a Delta table count as one and are removed together."""
    if sink.name not in pipeline.own_delta_tables:
        return list(written_batches(sink.path))
    return [
        WrittenBatch(
            sink.path / entry.batches.directory,
            entry.batches.generation,
            entry.batches.first,
            entry.manifest.rows,
            entry.manifest.start,
            entry.manifest.end,
            entry.manifest.columns,
        )
        for entry in table_batches(sink.path)
    ]


def _wanted(
    pipeline: Pipeline, read: Positions, from_offset: str | None, from_time: str | None
) -> tuple[Positions, Positions]:
    """Return the offset from which each partition is read again, and the first one that it still has.

    Unread records are never skipped, whatever offsets were given. Dimensions were judged already: they continue.
    """
    topics = [topic for source in pipeline.sources.values() for topic in source.topics]
    with cluster_of(pipeline) as client:
        partitions = _partitions(client, topics)
        judged = _partitions(client, [dimension.topic for dimension in pipeline.dimensions.values()])
        first = _offsets(client, [*partitions, *judged], EARLIEST)
        last = _offsets(client, [*partitions, *judged], LATEST)
        asked = dict(last)
        if from_time is not None:
            found = list_offsets(client, dict.fromkeys(partitions, parse_moment(from_time)))
            asked |= {tp: answer.offset for tp, answer in found.items() if answer.offset is not None}
        else:
            given = parse_offset(from_offset or "earliest")
            if unknown := [tp for tp in given if tp is not None and tp not in partitions]:
                raise FatalError(f"--from-offset: the pipeline doesn't read {unknown[0]}")
            if beyond := [tp for tp, offset in given.items() if tp is not None and offset > last[tp]]:
                raise FatalError(f"--from-offset: {beyond[0]} ends at offset {last[beyond[0]]}")
            asked |= {tp: given.get(tp, given.get(None, last[tp])) for tp in partitions}
    stands = {tp: read[tp.topic].get(str(tp.partition), 0) if tp.topic in read else last[tp] for tp in last}
    wanted = {tp: max(min(offset, last[tp], stands[tp]), first[tp]) for tp, offset in asked.items()}
    return _nested(wanted), _nested(first)


def read_so_far(pipeline: Pipeline, checkpoint: Checkpoint, identity: Identity) -> Positions:
    """Return the offsets that every query has read: the lowest per partition. Partitions that no query has begun are
    absent."""
    least: Positions = {}
    queries = {name: checkpoint.query(identity.generation, name) for name in checkpoint.begun(identity.generation)}
    begun = {name: read for name, path in queries.items() if (read := committed_offsets(path))}
    unread = _unread_topics(pipeline, checkpoint.parts(identity.generation, begun))
    # a source that is read from its end has no records yet that must not be skipped
    ended = {topic for source in pipeline.sources.values() if source.start == "latest" for topic in source.topics}
    begins = identity.starting
    not_begun = {topic: dict(begins.get(topic, {})) for topic in unread if topic in begins or topic not in ended}
    for known in (*begun.values(), not_begun):
        for topic, partitions in known.items():
            if topic in least:
                both = least[topic].keys() & partitions.keys()
                least[topic] = {partition: min(least[topic][partition], partitions[partition]) for partition in both}
            else:
                least[topic] = dict(partitions)
    return least


def _unread_topics(pipeline: Pipeline, parts: Container[str]) -> list[str]:
    """Topics that a sink or an input has not begun to read. `parts`: sinks and inputs that have begun."""
    inputs = {source.name: source.topics for source in pipeline.sources.values()}
    waiting = {name for name in inputs if name not in parts or any(sink not in parts for sink in pipeline.sinks)}
    found = [topic for name in inputs if name in waiting for topic in inputs[name]]
    return found + [each.topic for each in pipeline.dimensions.values() if each.name not in parts]


def _partitions(client: ClusterClient, topics: list[str]) -> list[TopicPartition]:
    return [TopicPartition(name, p.partition) for name in topics for p in client.topic(name).partitions]


def _offsets(client: ClusterClient, partitions: list[TopicPartition], time: int) -> dict[TopicPartition, int]:
    found = list_offsets(client, dict.fromkeys(partitions, time)) if partitions else {}
    return {tp: answer.offset or 0 for tp, answer in found.items()}


def _nested(offsets: Mapping[TopicPartition, int]) -> Positions:
    positions: Positions = {}
    for tp, offset in offsets.items():
        positions.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return positions


def _whole_batches(wanted: Positions, first: Positions, batches: list[WrittenBatch]) -> Positions:
    """Move positions back until no batch has records on both sides of them, but not before the first offsets."""
    positions = {topic: dict(partitions) for topic, partitions in wanted.items()}
    moved = True
    while moved:
        moved = False
        for batch in batches:
            if not _reaches(batch, positions):
                continue
            # the first batch of a generation has no start: it began at the first available record
            for topic, partition, offset in _spread(batch.start) or [(t, p, 0) for t, p, _ in _spread(batch.end)]:
                kept = max(offset, first.get(topic, {}).get(partition, 0))
                if topic in positions and kept < positions[topic].get(partition, 0):
                    positions[topic][partition] = kept
                    moved = True
    return positions


def _remove_whole(path: Path) -> None:
    """Remove a batch from the table by one rename, so that no reader sees half of it; then delete its files."""
    aside = path.parent.parent / f".{path.parent.name}.staging" / f"retired-{path.name}"
    aside.parent.mkdir(exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    shutil.rmtree(aside)


def _reaches(batch: WrittenBatch, positions: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether the batch has a record at or after the positions."""
    begin = {(topic, partition): offset for topic, partition, offset in _spread(batch.start)}
    return any(
        end > max(begin.get((topic, partition), 0), positions[topic][partition])
        for topic, partition, end in _spread(batch.end)
        if topic in positions and partition in positions[topic]
    )


def _spread(offsets: list[dict[str, dict[str, int]]]) -> list[tuple[str, str, int]]:
    """Yield a triple for each partition of each source of a query."""
    return [
        (topic, partition, int(offset))
        for source in offsets
        for topic, partitions in source.items()
        for partition, offset in partitions.items()
    ]
