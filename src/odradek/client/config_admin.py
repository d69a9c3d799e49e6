"""Configs of topics and brokers, for the tools: read them, check a change, make it.

A broker's own settings are requested from that broker, others from any broker. The cluster validates a change as a
whole before it applies it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from odradek.base.config.definition import ConfigSource
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient, R, unknown_topic
from odradek.protocol.messages.describe_configs import (
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    ConfigOperation,
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
    def is_of_one_broker(self) -> bool:
        """True if that broker alone can describe and change it."""
        of_a_broker = self.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        return of_a_broker and self.name.isdecimal()

    @property
    def own_source(self) -> ConfigSource | None:
        """Source of the values set on the resource itself; None where every value is."""
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


_KEY = re.compile(r"[a-zA-Z0-9._-]+")
# a comma or an equals sign that stands outside of square brackets
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


def ask_configs(
    client: ClusterClient, wanted: Mapping[Resource, Sequence[str] | None], *, include_synonyms: bool = False
) -> list[DescribeConfigsResult]:
    """Send one DescribeConfigs: the keys wanted of each resource, or all of them where None.

    Only the broker itself describes resources that belong to it: a call names one such broker at most.
    """
    if not wanted:
        return []
    resources = [
        DescribeConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configuration_keys=None if keys is None else list(keys),
        )
        for resource, keys in wanted.items()
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=include_synonyms)
    return _ask(client, wanted, request, DescribeConfigsResponse).results


def ask_alteration(
    client: ClusterClient,
    changes: Mapping[Resource, Mapping[str, str | None]],
    *,
    validate_only: bool = False,
) -> list[AlterConfigsResourceResponse]:
    """Send one IncrementalAlterConfigs: values to set, None to delete. Addressed as `ask_configs` is."""
    resources = [
        AlterConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configs=[
                AlterableConfig(
                    name=name,
                    config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
                    value=value or "",
                )
                for name, value in values.items()
            ],
        )
        for resource, values in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    return _ask(client, changes, request, IncrementalAlterConfigsResponse).responses


def broker_values(client: ClusterClient, broker: int, keys: Sequence[str]) -> dict[str, str]:
    """Values of these keys on one broker; a key without a value is left out."""
    results = ask_configs(client, {Resource(ConfigResourceType.BROKER, str(broker)): keys})
    return {config.name: config.value for result in results for config in result.configs if config.value}


def describe_configs(client: ClusterClient, resource: Resource) -> list[Setting]:
    """Return all settings of a resource, by name."""
    (result,) = ask_configs(client, {resource: None}, include_synonyms=True)
    _raise_for(resource, result.error_code, result.error_message)
    return sorted(map(_setting, result.configs), key=lambda setting: setting.name)


def own_configs(client: ClusterClient, resource: Resource) -> list[Setting]:
    """Return the settings that were set on the resource itself."""
    source = resource.own_source
    return [setting for setting in describe_configs(client, resource) if source is None or setting.source is source]


def own_values(client: ClusterClient, resources: Sequence[Resource]) -> dict[str, dict[str, str]]:
    """Return the settings of each resource itself, by its name, in one request."""
    found: dict[str, dict[str, str]] = {}
    for result in ask_configs(client, dict.fromkeys(resources)):
        resource = Resource(ConfigResourceType(result.resource_type), result.resource_name)
        _raise_for(resource, result.error_code, result.error_message)
        found[resource.name] = {
            setting.name: setting.value
            for setting in map(_setting, result.configs)
            if setting.value is not None and resource.own_source in (None, setting.source)
        }
    return found


def alter_configs(
    client: ClusterClient,
    resource: Resource,
    changes: Mapping[str, str],
    deletions: Sequence[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    wanted = {**changes, **dict.fromkeys(deletions)}
    client.retrying(partial(_alter, client, resource, wanted, validate_only), NOT_YET_DONE)


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


def _alter(client: ClusterClient, resource: Resource, changes: Mapping[str, str | None], validate_only: bool) -> None:
    for result in ask_alteration(client, {resource: changes}, validate_only=validate_only):
        _raise_for(resource, result.error_code, result.error_message)


def _ask(client: ClusterClient, resources: Iterable[Resource], request: Request, answer: type[R]) -> R:
    brokers = {int(resource.name) for resource in resources if resource.is_of_one_broker}
    if brokers:
        (broker,) = brokers
        return client.ask_broker(broker, request, answer)
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
