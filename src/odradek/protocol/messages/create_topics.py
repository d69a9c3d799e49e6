"""CreateTopics (key 19): new topics, by counts or with their assignment.

v1 dry run, v4 defaults by -1, v5 answers the configuration, v7 the topic id.
"""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Struct):
    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


class CreatableTopicConfig(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")


class CreatableTopic(Struct):
    name: str = string()
    num_partitions: int = int32()  # -1: by assignments, or the broker's default
    replication_factor: int = int16()  # -1: by assignments, or the broker's default
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)  # empty: placed for you
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)  # how long to wait for the controller
    validate_only: bool = bool_("1+")  # check, change nothing


class CreatableTopicConfigs(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = bool_()
    config_source: int = int8(default=-1)  # 1 topic, 2 dynamic broker, 3 dynamic default, 4 static broker, 5 default
    is_sensitive: bool = bool_()  # then value is None


class CreatableTopicResult(Struct):
    name: str = string()
    topic_id: UUID = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)  # why the configuration is not shown
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, "5+", nullable="5+", ignorable=True)


class CreateTopicsResponse(Response, key=19, versions="0-7", flexible="5+"):
    throttle_time_ms: int = int32("2+", ignorable=True)  # how long the client should pause for its quota
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
