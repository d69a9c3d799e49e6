"""The few settings of every topic that whole-cluster pages need: one DescribeConfigs for all topics."""

from collections.abc import Iterable, Mapping

from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, ask_configs
from odradek.protocol.messages.describe_configs import ConfigResourceType

KEYS = ["min.insync.replicas", "retention.ms", "retention.bytes", "cleanup.policy"]
TopicSettings = Mapping[str, Mapping[str, str]]


def read_settings(client: ClusterClient, topics: Iterable[str]) -> TopicSettings:
    wanted = {Resource(ConfigResourceType.TOPIC, name): KEYS for name in topics}
    return {
        result.resource_name: {config.name: config.value or "" for config in result.configs}
        for result in ask_configs(client, wanted)
        if not result.error_code
    }
