"""Reads the survey of a cluster: settings and APIs of the old and the new brokers, settings of the topics."""

from collections.abc import Iterable

from odradek.apps.migrate.core.survey import BrokerSettings, Survey
from odradek.apps.reassign.core.view import ClusterView
from odradek.apps.reassign.reading import read_view
from odradek.base.config.definition import ConfigSource
from odradek.client.cluster_admin import describe_cluster
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, describe_configs, own_values
from odradek.protocol.messages.describe_configs import ConfigResourceType

_OURS = "odradek."
_CHOSEN = (
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
)


def read_survey(client: ClusterClient, brokers: Iterable[int]) -> Survey:
    view = read_view(client)
    topics = sorted({tp.topic for tp in view.partitions})
    return Survey(
        view,
        read_brokers(client, view, brokers),
        own_values(client, [Resource(ConfigResourceType.TOPIC, topic) for topic in topics]),
        read_controller(client),
    )


def read_brokers(client: ClusterClient, view: ClusterView, brokers: Iterable[int]) -> dict[int, BrokerSettings]:
    """Return the settings of the live brokers."""
    return {broker: _broker(client, broker) for broker in brokers if broker in view.brokers}


def read_controller(client: ClusterClient) -> int:
    return describe_cluster(client).controller_id


def _broker(client: ClusterClient, broker: int) -> BrokerSettings:
    settings = describe_configs(client, Resource(ConfigResourceType.BROKER, str(broker)))
    return BrokerSettings(
        any(setting.name.startswith(_OURS) for setting in settings),
        {setting.name: setting.value for setting in settings},
        frozenset(setting.name for setting in settings if setting.source in _CHOSEN),
        frozenset(client.versions_of(broker)),
    )
