"""AlterConfigs (key 33): all of a topic's overrides are replaced by those given.

Versions 0-2. Of brokers only the limits of a move of replicas can be altered. Not done: the other settings of
brokers, which are refused with INVALID_REQUEST.
"""

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
from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@handles(ApiKey.ALTER_CONFIGS, versions="0-2", may_block=True)
def alter_configs(request: AlterConfigsRequest, ctx: RequestContext) -> AlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        _alter(ctx.broker, resource, validate_only=request.validate_only)

    return AlterConfigsResponse(responses=[_answer(*outcome) for outcome in outcomes(request.resources, alter)])


def _alter(broker: BrokerServices, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    check_keys(names, [config.name for config in resource.configs if config.value is None])
    match resource.resource_type:
        case ResourceType.TOPIC:
            current_overrides(broker, resource.resource_name)
            overrides = {config.name: config.value for config in resource.configs if config.value is not None}
            set_overrides(broker, resource.resource_name, overrides, validate_only=validate_only)
        case ResourceType.BROKER if is_dynamic(broker, resource, names):
            values = {config.name: config.value for config in resource.configs if config.value is not None}
            set_broker_values(broker, resource.resource_name, values, validate_only=validate_only)
        case ResourceType.BROKER_LOGGER:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
        case _:
            refuse(broker, resource, names)


def _answer(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
