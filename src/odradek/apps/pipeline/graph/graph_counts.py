"""Counts for a pipeline's graph, from the files of its last run: records read of each topic, rows of each table."""

from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.status import read_status
from odradek.apps.pipeline.tables.commit_log import is_delta, snapshot


def counts_of(pipeline: Pipeline) -> dict[str, int]:
    """Return the records up to the furthest query of each input, by the offsets in the status; rows by the table's
    log."""
    furthest: dict[tuple[str, str], int] = {}
    for query in (read_status(pipeline.directory) or {}).get("queries", []):
        for topic, partitions in query.get("offsets", {}).items():
            for partition, offset in partitions.items():
                furthest[topic, partition] = max(offset, furthest.get((topic, partition), 0))
    read: dict[str, int] = {}
    for (topic, _), offset in furthest.items():
        read[topic] = read.get(topic, 0) + offset
    inputs = {name: source.topics for name, source in pipeline.sources.items()}
    inputs |= {name: (dimension.topic,) for name, dimension in pipeline.dimensions.items()}
    counts = {name: sum(read[topic] for topic in topics) for name, topics in inputs.items() if read.keys() >= {*topics}}
    for name, sink in pipeline.own_delta_tables.items():
        if is_delta(sink.path):
            counts[name] = sum(file.rows for file in snapshot(sink.path).files)
    return counts
