"""DescribeConfigs (key 32): the configuration of topics, brokers and loggers.

v1 the source of a value and its synonyms, v3 types and documentation.
"""

from enum import IntEnum

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, string


class ConfigResourceType(IntEnum):
    """Kinds of resources that have a configuration."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


class DescribeConfigsResource(Struct):
    resource_type: int = int8()  # a ConfigResourceType
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")  # None: all


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = bool_("1+")  # with the values that a lower level has
    include_documentation: bool = bool_("3+")


class DescribeConfigsSynonym(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()  # as config_source


class DescribeConfigsResourceResult(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = bool_()
    is_default: bool = bool_("0")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = bool_()  # then value is None
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)  # strongest first
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Response, key=32, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
