"""AlterConfigs (key 33): replaces all overrides of a topic, of this broker or of all brokers by the given ones.

Versions 0-2. Settings that a running broker can't change are refused with INVALID_REQUEST. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.config_changes import (
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
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from odradek.protocol.messages.describe_configs import ConfigResourceType


@handles(ApiKey.ALTER_CONFIGS, versions="0-2", may_block=True)
def alter_configs(request: AlterConfigsRequest, ctx: RequestContext) -> AlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        require_on_config(ctx, AclOperation.ALTER_CONFIGS, resource)
        _alter(ctx.broker, resource, validate_only=request.validate_only)

    return AlterConfigsResponse(responses=[_answer(*outcome) for outcome in outcomes(request.resources, alter)])


def _alter(broker: BrokerServices, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    check_keys(names, [config.name for config in resource.configs if config.value is None])
    values = {config.name: config.value for config in resource.configs if config.value is not None}
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            current_overrides(broker, resource.resource_name)
            set_overrides(broker, resource.resource_name, values, validate_only=validate_only)
        case ConfigResourceType.BROKER:
            check_broker_name(broker, resource.resource_name)
            set_broker_values(broker, resource.resource_name, values, validate_only=validate_only)
        case _:
            refuse(resource)


def _answer(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
