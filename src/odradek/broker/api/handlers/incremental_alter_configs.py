"""IncrementalAlterConfigs (key 44): sets, deletes, appends to or subtracts from single overrides of a topic, of this
broker or of all brokers; and sets the levels of this broker's loggers.

Versions 0-1. Settings that a running broker can't change are refused with INVALID_REQUEST. Not done: nothing.
"""

from collections.abc import Mapping, Sequence

from odradek.base.config.definition import ConfigKey, ConfigType, format_value
from odradek.base.config.keys import BROKER_KEYS, TOPIC_KEYS
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.logger_levels import set_levels
from odradek.broker.api.config_changes import (
    broker_id_of,
    check_broker_name,
    check_keys,
    current_overrides,
    outcomes,
    refuse,
    require_on_config,
    set_broker_values,
    set_overrides,
)
from odradek.broker.api.context import BrokerServices, RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_configs import ConfigResourceType
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    ConfigOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", may_block=True)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext
) -> IncrementalAlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        require_on_config(ctx, AclOperation.ALTER_CONFIGS, resource)
        _alter(ctx.broker, resource, validate_only=request.validate_only)

    answers = [_answer(*outcome) for outcome in outcomes(request.resources, alter)]
    return IncrementalAlterConfigsResponse(responses=answers)


def _alter(broker: BrokerServices, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    nulls = [c.name for c in resource.configs if c.value is None and c.config_operation != ConfigOperation.DELETE]
    check_keys(names, nulls)
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            overrides = current_overrides(broker, resource.resource_name)
            apply_operations(overrides, resource.configs, TOPIC_KEYS)
            set_overrides(broker, resource.resource_name, overrides, validate_only=validate_only)
        case ConfigResourceType.BROKER:
            check_broker_name(broker, resource.resource_name)
            values = broker.configs.of_broker(resource.resource_name)
            apply_operations(values, resource.configs, BROKER_KEYS)
            set_broker_values(broker, resource.resource_name, values, validate_only=validate_only)
        case ConfigResourceType.BROKER_LOGGER:
            _check_logger_broker(broker, resource.resource_name)
            set_levels(_levels(resource.configs), validate_only=validate_only)
        case _:
            refuse(resource)


def _check_logger_broker(broker: BrokerServices, name: str) -> None:
    broker_id = broker_id_of(name)
    if broker_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if broker_id != broker.id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {broker.id}, but received {name}")


def _levels(changes: Sequence[AlterableConfig]) -> dict[str, str | None]:
    levels: dict[str, str | None] = {}
    for change in changes:
        match change.config_operation:
            case ConfigOperation.SET:
                levels[change.name] = change.value
            case ConfigOperation.DELETE:
                levels[change.name] = None
            case other:
                verb = ConfigOperation(other).name if other in set(ConfigOperation) else f"Unknown ({other})"
                message = f"{verb} operation is not allowed for the BROKER_LOGGER resource"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return levels


def apply_operations(
    overrides: dict[str, str], changes: Sequence[AlterableConfig], keys: Mapping[str, ConfigKey]
) -> None:
    """Changes the overrides in place."""
    for change in changes:
        name, value = change.name, change.value or ""
        match change.config_operation:
            case ConfigOperation.SET:
                overrides[name] = value
            case ConfigOperation.DELETE:
                overrides.pop(name, None)
            case ConfigOperation.APPEND:
                old = _elements(overrides, name, "append", keys)
                overrides[name] = ",".join(old + [element for element in value.split(",") if element not in old])
            case ConfigOperation.SUBTRACT:
                gone = value.split(",")
                overrides[name] = ",".join(e for e in _elements(overrides, name, "subtract", keys) if e not in gone)
            case unknown:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown}")


def _elements(overrides: dict[str, str], name: str, verb: str, keys: Mapping[str, ConfigKey]) -> list[str]:
    """Return the current elements of a list key: the entity's own list, or else Kafka's default, also where the
    broker's differs."""
    key = keys.get(name)
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
