"""Metadata (key 3): the brokers of the cluster, and leaders and replicas of topics.

All topics are asked for by an empty list in v0, by null since v1. v4 may forbid auto-creation, v12 asks by topic id.
"""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    topic_id: UUID = uuid("10+", ignorable=True)
    name: str | None = string(nullable="10+")  # None: asked for by id


class MetadataRequest(Request, key=3, versions="0-12", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")  # None: all (v0: empty)
    allow_auto_topic_creation: bool = bool_("4+", default=True)
    include_cluster_authorized_operations: bool = bool_("8-10")
    include_topic_authorized_operations: bool = bool_("8+")


class MetadataResponseBroker(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()  # -1: none
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)  # the replicas in sync
    offline_replicas: list[int] = array(int32, "5+", ignorable=True)  # those on dead brokers or in failed directories


class MetadataResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string(nullable="12+")  # None: an id that is not known
    topic_id: UUID = uuid("10+", ignorable=True)
    is_internal: bool = bool_("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)  # bits by operation, or not asked for


class MetadataResponse(Response, key=3, versions="0-12", flexible="9+"):
    throttle_time_ms: int = int32("3+", ignorable=True)  # how long the client should pause for its quota
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)  # -1: not known
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)  # bits by operation, or not asked for
