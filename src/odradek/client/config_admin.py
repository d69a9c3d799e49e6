"""What the tools ask of a cluster about settings of topics and brokers: read them, check a change, make it.

A broker is asked about its own settings, any broker about others. The cluster checks a change as a whole before it
makes any of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from odradek.base.config.definition import ConfigSource
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient, R, unknown_topic
from odradek.protocol.messages.describe_configs import (
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.schema import Request


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic, a broker, or, with an empty name, the defaults of all brokers."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} '{self.name}'" if self.name else f"the {kind} defaults"

    @property
    def own_source(self) -> ConfigSource | None:
        """What was set on it itself; None where everything was."""
        match self.type:
            case ConfigResourceType.TOPIC:
                return ConfigSource.DYNAMIC_TOPIC_CONFIG
            case ConfigResourceType.BROKER:
                return ConfigSource.DYNAMIC_BROKER_CONFIG if self.name else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            case ConfigResourceType.CLIENT_METRICS:
                return ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
            case ConfigResourceType.BROKER_LOGGER:
                return None


@dataclass(frozen=True, slots=True)
class Synonym:
    source: ConfigSource
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]


_SET, _DELETE = 0, 1
_KEY = re.compile(r"[a-zA-Z0-9._-]+")
# a comma or an equals sign that stands outside of square brackets
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


def describe_configs(client: ClusterClient, resource: Resource) -> list[Setting]:
    """Every setting of it, by name."""
    wanted = DescribeConfigsResource(resource_type=resource.type, resource_name=resource.name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=True)
    (result,) = _ask(client, resource, request, DescribeConfigsResponse).results
    _raise_for(resource, result.error_code, result.error_message)
    return sorted(map(_setting, result.configs), key=lambda setting: setting.name)


def own_configs(client: ClusterClient, resource: Resource) -> list[Setting]:
    """What was set on it itself."""
    source = resource.own_source
    return [setting for setting in describe_configs(client, resource) if source is None or setting.source is source]


def alter_configs(
    client: ClusterClient,
    resource: Resource,
    changes: Mapping[str, str],
    deletions: Sequence[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    configs = [AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in changes.items()]
    configs += [AlterableConfig(name=name, config_operation=_DELETE, value="") for name in deletions]
    altered = AlterConfigsResource(resource_type=resource.type, resource_name=resource.name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=validate_only)
    client.retrying(partial(_alter, client, resource, request), NOT_YET_DONE)


def parse_changes(text: str) -> dict[str, str]:
    """`k1=v1,k2=[a,b]` as Kafka's tool takes it: brackets hold values with commas. ValueError for other texts."""
    changes: dict[str, str] = {}
    for item in re.split(f",{_OUTSIDE_BRACKETS}", text):
        key, *values = re.split(rf"\s*=\s*{_OUTSIDE_BRACKETS}", item)
        if len(values) != 1:
            raise ValueError('Invalid entity config: all configs to be added must be in the format "key=val".')
        changes[key.strip()] = re.sub(r"[\[\]]", "", values[0]).strip()
    for key in changes:
        if not _KEY.fullmatch(key):
            raise ValueError(f"Invalid character found for config key: {key}")
    return changes


def _alter(client: ClusterClient, resource: Resource, request: IncrementalAlterConfigsRequest) -> None:
    for result in _ask(client, resource, request, IncrementalAlterConfigsResponse).responses:
        _raise_for(resource, result.error_code, result.error_message)


def _ask(client: ClusterClient, resource: Resource, request: Request, answer: type[R]) -> R:
    is_of_one_broker = (
        resource.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and resource.name.isdecimal()
    )
    if is_of_one_broker:
        return client.ask_broker(int(resource.name), request, answer)
    return client.ask_any(request, answer)


def _setting(config: DescribeConfigsResourceResult) -> Setting:
    return Setting(
        name=config.name,
        value=config.value,
        source=ConfigSource(max(config.config_source, 0)),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            Synonym(ConfigSource(synonym.source), synonym.name, synonym.value) for synonym in config.synonyms
        ),
    )


def _raise_for(resource: Resource, code: int, message: str | None) -> None:
    error = ErrorCode(code)
    if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise unknown_topic(resource.name)
    if error is not ErrorCode.NONE:
        raise KafkaError(error, f"{resource}: {message or error.name}", message)
