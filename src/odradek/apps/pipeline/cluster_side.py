"""Requests of a pipeline to its cluster beside Spark: the cluster's id, topics, end offsets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from odradek.apps.pipeline.progress import Offsets
from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.toml_section import FILE_NAME
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_admin import cluster_id
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_lag import known_ends
from odradek.client.topic_admin import create_topic
from odradek.model.topology import TopicPartition

_CLIENT_ID = "odradek-pipeline"


@contextmanager
def cluster_of(pipeline: Pipeline) -> Iterator[ClusterClient]:
    """Make a client of the pipeline's cluster; FatalError if no broker answers."""
    with ClusterClient(pipeline.bootstrap, client_id=_CLIENT_ID) as client:
        try:
            yield client
        except ConnectionFailed as error:
            advice = f"bootstrap in {pipeline.directory / FILE_NAME} says where to look, and odradek up starts some"
            raise FatalError(f"{error.message}; {advice}") from None


def absent_topics(pipeline: Pipeline, topics: Sequence[str]) -> list[str]:
    with cluster_of(pipeline) as client:
        present = client.topics(topics)
    return [topic for topic in topics if topic not in present]


def cluster_with_inputs(pipeline: Pipeline) -> str:
    """Return the cluster's id. FatalError if an input topic doesn't exist."""
    if absent := absent_topics(pipeline, pipeline.input_topics):
        raise FatalError(
            f"there is no topic {', '.join(absent)} to read; make it with: odradek topics create {absent[0]} "
            f"-b {pipeline.bootstrap}"
        )
    with cluster_of(pipeline) as client:
        return cluster_id(client)


def create_outputs(pipeline: Pipeline) -> list[str]:
    """Create missing output topics; return their names."""
    absent = absent_topics(pipeline, pipeline.output_topics)
    with cluster_of(pipeline) as client:
        for topic in absent:
            try:
                create_topic(client, topic)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
    return absent


class EndsWatch:
    """End offsets of the input topics, for the lag. If no broker answers, the last known ones are used."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._client = ClusterClient(pipeline.bootstrap, client_id=_CLIENT_ID, timeout_ms=5_000)
        self._topics = pipeline.input_topics
        self.ends: Offsets = {}

    def refresh(self) -> Offsets:
        try:
            topics = self._client.topics(self._topics)
            partitions = {TopicPartition(t.name, p.partition) for t in topics.values() for p in t.partitions}
            found: dict[str, dict[str, int]] = {topic: dict(self.ends.get(topic, {})) for topic in topics}
            for tp, offset in known_ends(self._client, partitions).items():
                found[tp.topic][str(tp.partition)] = offset
            self.ends = found
        except (KafkaError, ConnectionFailed):
            pass
        return self.ends

    def close(self) -> None:
        self._client.close()
