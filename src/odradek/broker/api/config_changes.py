"""Base of the three config requests: resource names, the entities that may be altered, the change of their
overrides."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from odradek.base.config.topic_config import validate_topic_overrides
from odradek.base.errors import ConfigError, ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, denial, require_on_cluster
from odradek.broker.api.context import BrokerServices, RequestContext
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.messages.describe_configs import ConfigResourceType


class Resource(Protocol):
    resource_type: int
    resource_name: str


_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


def broker_id_of(resource_name: str) -> int | None:
    """Return the broker id of a resource name; None if it isn't a number."""
    return int(resource_name) if _INTEGER.fullmatch(resource_name) else None


def require_on_config(ctx: RequestContext, operation: AclOperation, resource: Resource) -> None:
    """Check the right to a configuration: on the topic for topics, otherwise on the cluster. KafkaError without it."""
    if resource.resource_type == ConfigResourceType.TOPIC:
        if not authorized(ctx, operation, ResourceType.TOPIC, resource.resource_name):
            raise denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    else:
        require_on_cluster(ctx, operation)


ResourceT = TypeVar("ResourceT", bound=Resource)


def outcomes(
    resources: list[ResourceT], alter: Callable[[ResourceT], None]
) -> Iterable[tuple[ResourceT, KafkaError | None]]:
    """Alter resources; return the error of each. A resource that is named twice isn't altered."""
    times_named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if times_named[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            alter(resource)
            yield resource, None
        except KafkaError as error:
            yield resource, error


def check_keys(names: list[str], nulls: list[str]) -> None:
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def current_overrides(broker: BrokerServices, topic: str) -> dict[str, str]:
    if not topic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    try:
        return broker.configs.of_topic(topic)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(error.code, f"The topic '{topic}' does not exist.") from error
        raise


def set_overrides(broker: BrokerServices, topic: str, overrides: Mapping[str, str], *, validate_only: bool) -> None:
    try:
        validate_topic_overrides(overrides, broker.config.topic_defaults)
    except KafkaError as error:
        if isinstance(error.__cause__, ConfigError):
            where = f"ConfigResource(type=TOPIC, name='{topic}')"
            raise KafkaError(error.code, f"Invalid config value for resource {where}: {error.message}") from error
        raise
    if not validate_only:
        broker.configs.set_topic(topic, overrides)


def set_broker_values(broker: BrokerServices, name: str, values: Mapping[str, str], *, validate_only: bool) -> None:
    try:
        broker.live.check(values, for_all=not name)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if not validate_only:
        broker.configs.set_broker(name, values)


def check_broker_name(broker: BrokerServices, name: str) -> None:
    """An empty name means all brokers; any other must be this broker's id."""
    if name and (broker_id := broker_id_of(name)) != broker.id:
        if broker_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        message = f"Unexpected broker id, expected {broker.id}, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def refuse(resource: Resource) -> None:
    """Raise the error for a resource that isn't a topic or a broker."""
    if resource.resource_type == ConfigResourceType.CLIENT_METRICS:
        message = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
    else:
        message = f"Unknown resource type {resource.resource_type}"
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
