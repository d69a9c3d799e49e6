"""The few settings of every topic that whole-cluster pages need: one DescribeConfigs for all topics."""

from collections.abc import Iterable, Mapping

from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

KEYS = ["min.insync.replicas", "retention.ms", "retention.bytes", "cleanup.policy"]
_TOPIC = 2
TopicSettings = Mapping[str, Mapping[str, str]]


def read_settings(client: ClusterClient, topics: Iterable[str]) -> TopicSettings:
    resources = [
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=KEYS) for name in topics
    ]
    if not resources:
        return {}
    answer = client.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    return {
        result.resource_name: {config.name: config.value or "" for config in result.configs}
        for result in answer.results
        if not result.error_code
    }
