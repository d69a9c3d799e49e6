"""One topic closely: where each replica's log begins and ends, and how the topic is configured."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.client.partition_offsets import EARLIEST, LATEST
from odradek.console.readings.offsets import high_watermarks, offsets_of_replicas
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

_TOPIC = 2
SOURCES = {1: "topic", 2: "broker, dynamic", 3: "cluster default", 4: "server.properties", 5: "default", 6: "group"}


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    start: int | None
    end: int | None
    """None: the broker doesn't answer."""


@dataclass(frozen=True, slots=True)
class TopicDetail:
    topic: TopicState
    high_watermarks: Mapping[int, int]
    replicas: Mapping[tuple[int, int], ReplicaOffsets]
    """By partition and broker."""


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    value: str | None
    """None: a secret, or nothing."""
    source: str
    default: str | None
    is_sensitive: bool
    doc: str


def read_topic(client: ClusterClient, before: TopicDetail | None, name: str) -> TopicDetail:
    topic = client.topic(name)
    live = client.brokers()
    starts: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], int] = {}
    for broker in sorted({broker for p in topic.partitions for broker in p.replicas}):
        if broker not in live:
            continue
        held = [TopicPartition(name, p.partition) for p in topic.partitions if broker in p.replicas]
        for time, offsets in ((EARLIEST, starts), (LATEST, ends)):
            found = offsets_of_replicas(client, broker, held, time)
            offsets.update(((tp.partition, broker), offset) for tp, offset in found.items())
    marks = {tp.partition: mark for tp, mark in high_watermarks(client, [topic]).items()}
    places = [(p.partition, broker) for p in topic.partitions for broker in p.replicas]
    return TopicDetail(topic, marks, {at: ReplicaOffsets(starts.get(at), ends.get(at)) for at in places})


def read_configs(client: ClusterClient, name: str) -> list[Config]:
    """All of the topic's configuration, with where each value comes from and what it would be otherwise."""
    resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    configs: list[Config] = []
    for result in client.ask_any(request, DescribeConfigsResponse).results:
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
        for config in result.configs:
            below = [synonym for synonym in config.synonyms if synonym.source != 1]
            default = below[0].value if below else (config.value if config.config_source != 1 else None)
            configs.append(
                Config(
                    config.name,
                    None if config.is_sensitive else config.value,
                    SOURCES.get(config.config_source, "?"),
                    None if config.is_sensitive else default,
                    config.is_sensitive,
                    config.documentation or "",
                )
            )
    return sorted(configs, key=lambda config: config.name)
