"""What the three config requests have in common: resource types, who may be altered, how a topic's overrides change."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Protocol, TypeVar

from odradek.api.context import BrokerServices
from odradek.base.config.definition import UpdateMode
from odradek.base.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from odradek.base.config.topic_config import validate_topic_overrides
from odradek.base.errors import ConfigError, ErrorCode, KafkaError


class ResourceType(IntEnum):
    """Numbers fixed by the Kafka protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


class Resource(Protocol):
    resource_type: int
    resource_name: str


_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


def broker_id_of(resource_name: str) -> int | None:
    """The broker that a resource name means, or None where it isn't a number."""
    return int(resource_name) if _INTEGER.fullmatch(resource_name) else None


ResourceT = TypeVar("ResourceT", bound=Resource)


def outcomes(
    resources: list[ResourceT], alter: Callable[[ResourceT], None]
) -> Iterable[tuple[ResourceT, KafkaError | None]]:
    """Each resource altered, or why not. One that is named twice isn't altered at all."""
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
    for key, text in values.items():
        try:
            DYNAMIC_ONLY_KEYS[key].parse(text)
        except ConfigError as error:
            where = f"ConfigResource(type=BROKER, name='{name}')"
            message = f"Invalid config value for resource {where}: {error}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
    if not validate_only:
        broker.configs.set_broker(name, values)


def is_dynamic(broker: BrokerServices, resource: Resource, names: Iterable[str]) -> bool:
    """Whether this is a change of this broker, or of all, that can be made while they run."""
    is_ours = not resource.resource_name or broker_id_of(resource.resource_name) == broker.id
    return resource.resource_type == ResourceType.BROKER and is_ours and DYNAMIC_ONLY_KEYS.keys() >= set(names)


def refuse(broker: BrokerServices, resource: Resource, names: Iterable[str]) -> None:
    """Says why a resource that isn't a topic can't be altered."""
    raise KafkaError(ErrorCode.INVALID_REQUEST, _refusal(broker, resource, names))


def _refusal(broker: BrokerServices, resource: Resource, names: Iterable[str]) -> str:
    match resource.resource_type:
        case ResourceType.BROKER:
            return _broker_refusal(broker, resource.resource_name, names)
        case ResourceType.BROKER_LOGGER:
            return "Altering broker loggers is not supported yet."
        case ResourceType.CLIENT_METRICS:
            return "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
        case other:
            return f"Unknown resource type {other}"


def _broker_refusal(broker: BrokerServices, resource_name: str, names: Iterable[str]) -> str:
    if resource_name and (broker_id := broker_id_of(resource_name)) != broker.id:
        if broker_id is None:
            return f"Node id must be an integer, but it is: {resource_name}"
        return f"Unexpected broker id, expected {broker.id}, but received {resource_name}"
    fixed = [name for name in names if name in BROKER_KEYS and BROKER_KEYS[name].update_mode is UpdateMode.READ_ONLY]
    if fixed:
        return f"Cannot update these configs dynamically: Set({', '.join(fixed)})"
    return "Altering broker configs is not supported yet: set them in server.properties and restart the broker."
