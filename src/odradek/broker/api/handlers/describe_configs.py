"""DescribeConfigs (key 32): the configuration of topics, of this broker and its loggers, and the dynamic defaults of
all brokers; with the source of each value.

Versions 0-4. v1 adds sources and synonyms, v3 types and documentation. v0 says only whether a value is the default;
Kafka 3.9 forgot to, and calls none one. Differs from Kafka: a resource that is asked for very often in the same
words is described at most 10 times. Not done: nothing.
"""

from collections.abc import Callable, Container, Sequence
from functools import cached_property

from odradek.base.config.definition import ConfigSource, ConfigType
from odradek.base.config.describe import ConfigEntry, describe_all_brokers, describe_broker, describe_topic
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import thresholds
from odradek.base.value_classes import dataclass
from odradek.broker.api.config_changes import broker_id_of, require_on_config
from odradek.broker.api.context import BrokerServices, RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.model.acls import AclOperation
from odradek.model.topic_names import check_topic_name
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_configs import (
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_UNKNOWN_TYPE = "The request has a resource whose type can't be described."


@handles(ApiKey.DESCRIBE_CONFIGS, versions="0-4", may_block=True)
def describe_configs(request: DescribeConfigsRequest, ctx: RequestContext) -> DescribeConfigsResponse:
    known = all(resource.resource_type in _DESCRIBERS for resource in request.resources)
    topics = _Topics(
        ctx.broker, [r.resource_name for r in request.resources if r.resource_type == ConfigResourceType.TOPIC]
    )
    repetitions = Repetitions()
    return DescribeConfigsResponse(
        results=[
            _describe(ctx, topics, resource, request)
            if known
            else _failed(resource, ErrorCode.INVALID_REQUEST, _UNKNOWN_TYPE)
            for resource in request.resources
            if repetitions.may_answer(_question(resource))
        ]
    )


def _question(resource: DescribeConfigsResource) -> tuple[int, str, frozenset[str]]:
    return resource.resource_type, resource.resource_name, frozenset(resource.configuration_keys or ())


class _Topics:
    """Overrides of the topics that one request asks about, read in one go with the first of them."""

    def __init__(self, broker: BrokerServices, names: Sequence[str]) -> None:
        self._broker = broker
        self._names = names

    @cached_property
    def _overrides(self) -> dict[str, dict[str, str]]:
        return self._broker.configs.of_topics(self._names)

    def describe(self, name: str, wanted: Container[str] | None) -> "_Description":
        check_topic_name(name)
        try:
            overrides = self._overrides[name]
        except KeyError:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
        except KafkaError as error:
            raise KafkaError(error.code) from error
        return _Description(describe_topic(self._broker.live, overrides, wanted), _topic_documentation)


@dataclass(frozen=True, slots=True)
class _Description:
    entries: list[ConfigEntry]
    documentation: Callable[[str], str | None]


def _describe(
    ctx: RequestContext, topics: _Topics, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    wanted = resource.configuration_keys or None
    try:
        require_on_config(ctx, AclOperation.DESCRIBE_CONFIGS, resource)
        describer = _DESCRIBERS[resource.resource_type]
        if describer is None:
            description = topics.describe(resource.resource_name, wanted)
        else:
            description = describer(ctx.broker, resource.resource_name)
    except KafkaError as error:
        return _failed(resource, error.code, error.message)
    configs = []
    for entry in description.entries:
        if wanted is None or entry.name in wanted:
            result = _result(entry, request, description.documentation)
            result.is_default = ctx.version == 0 and entry.source is ConfigSource.DEFAULT_CONFIG
            configs.append(result)
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
    )


def _failed(resource: DescribeConfigsResource, code: ErrorCode, message: str | None) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _result(
    entry: ConfigEntry, request: DescribeConfigsRequest, documentation: Callable[[str], str | None]
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=entry.type,
        documentation=documentation(entry.name) if request.include_documentation else None,
    )


def _describe_broker(broker: BrokerServices, name: str) -> _Description:
    """Describe a broker; an empty name asks for the dynamic defaults of all brokers."""
    if name and _broker_id(name) != broker.id:
        message = f"Unexpected broker id, expected {broker.id} or empty string, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    entries = describe_broker(broker.live) if name else describe_all_brokers(broker.live)
    return _Description(entries, _broker_documentation)


def _describe_broker_logger(broker: BrokerServices, name: str) -> _Description:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if _broker_id(name) != broker.id:
        message = f"Unexpected broker id, expected {broker.id} but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    entries = [_logger_entry(logger, level) for logger, level in thresholds().items()]
    return _Description(entries, lambda name: None)


def _logger_entry(name: str, level: str) -> ConfigEntry:
    source, kind = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, ConfigType.UNKNOWN
    return ConfigEntry(name, level, kind, source, read_only=False, sensitive=False, synonyms=())


def _describe_client_metrics(broker: BrokerServices, name: str) -> _Description:
    """Subscriptions to clients' metrics belong to KRaft mode."""
    raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscriptions are not supported in ZooKeeper mode.")


def _broker_id(name: str) -> int:
    broker_id = broker_id_of(name)
    if broker_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return broker_id


def _broker_documentation(name: str) -> str | None:
    from odradek.base.config.docs import broker_documentation

    return broker_documentation().get(name)


def _topic_documentation(name: str) -> str | None:
    from odradek.base.config.docs import topic_documentation

    return topic_documentation().get(name)


_DESCRIBERS: dict[int, Callable[[BrokerServices, str], _Description] | None] = {
    ConfigResourceType.TOPIC: None,  # all those of a request together: see _Topics
    ConfigResourceType.BROKER: _describe_broker,
    ConfigResourceType.BROKER_LOGGER: _describe_broker_logger,
    ConfigResourceType.CLIENT_METRICS: _describe_client_metrics,
}
