"""IncrementalAlterConfigs (key 44): change single keys of resources' configuration."""

from enum import IntEnum

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, string


class ConfigOperation(IntEnum):
    """Changes of one value; append and subtract are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterableConfig(Struct):
    name: str = string()
    config_operation: int = int8()  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None = string(nullable="0+")  # None: back to the default


class AlterConfigsResource(Struct):
    resource_type: int = int8()  # 2 topic, 4 broker, 8 broker logger, 16 client metrics
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = bool_()  # check, change nothing


class AlterConfigsResourceResponse(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
