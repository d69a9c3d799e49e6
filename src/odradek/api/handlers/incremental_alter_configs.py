"""IncrementalAlterConfigs (key 44): a topic's overrides are set, deleted, appended to or subtracted from, one by one.

Versions 0-1. Of brokers only the limits of a move of replicas can be altered. Not done: the other settings of
brokers, and broker loggers, which are refused with INVALID_REQUEST.
"""

from collections.abc import Sequence
from enum import IntEnum

from odradek.api.config_changes import (
    ResourceType,
    check_keys,
    current_overrides,
    is_dynamic,
    outcomes,
    refuse,
    set_broker_values,
    set_overrides,
)
from odradek.api.context import BrokerServices, RequestContext
from odradek.api.registry import handles
from odradek.base.config.definition import ConfigType, format_value
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Operation(IntEnum):
    """Numbers fixed by the Kafka protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", may_block=True)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext
) -> IncrementalAlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        _alter(ctx.broker, resource, validate_only=request.validate_only)

    answers = [_answer(*outcome) for outcome in outcomes(request.resources, alter)]
    return IncrementalAlterConfigsResponse(responses=answers)


def _alter(broker: BrokerServices, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    nulls = [c.name for c in resource.configs if c.value is None and c.config_operation != Operation.DELETE]
    check_keys(names, nulls)
    if is_dynamic(broker, resource, names):
        values = broker.configs.of_broker(resource.resource_name)
        apply_operations(values, resource.configs)
        set_broker_values(broker, resource.resource_name, values, validate_only=validate_only)
        return
    if resource.resource_type != ResourceType.TOPIC:
        refuse(broker, resource, names)
    overrides = current_overrides(broker, resource.resource_name)
    apply_operations(overrides, resource.configs)
    set_overrides(broker, resource.resource_name, overrides, validate_only=validate_only)


def apply_operations(overrides: dict[str, str], changes: Sequence[AlterableConfig]) -> None:
    """Changes the overrides in place."""
    for change in changes:
        name, value = change.name, change.value or ""
        match change.config_operation:
            case Operation.SET:
                overrides[name] = value
            case Operation.DELETE:
                overrides.pop(name, None)
            case Operation.APPEND:
                old = _elements(overrides, name, "append")
                overrides[name] = ",".join(old + [element for element in value.split(",") if element not in old])
            case Operation.SUBTRACT:
                gone = value.split(",")
                overrides[name] = ",".join(e for e in _elements(overrides, name, "subtract") if e not in gone)
            case unknown:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown}")


def _elements(overrides: dict[str, str], name: str, verb: str) -> list[str]:
    """What a list key holds now: the topic's own list, or else Kafka's default, whatever the broker's is."""
    key = TOPIC_KEYS.get(name)
    if key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if key.type is not ConfigType.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}")
    text = overrides.get(name, format_value(key.default))
    return text.split(",") if text else []


def _answer(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
