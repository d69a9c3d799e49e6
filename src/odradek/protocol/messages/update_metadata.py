"""UpdateMetadata (key 6): the controller pushes the cluster's state, from which brokers answer Metadata.

v1 many endpoints per broker, v2 racks, v5 partitions by topic, v7 topic ids.
"""

from typing import Final
from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, int64, string, uuid

UPDATE_UNKNOWN: Final = 0
UPDATE_OF_ALL: Final = 2
"""Values of `type`. An update of all names every partition of the cluster."""


class UpdateMetadataPartitionState(Struct):
    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()  # of the controller that wrote the state
    leader: int = int32()  # -1 none, -2 the topic is being deleted
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    zk_version: int = int32()  # of the state's znode
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "4+", ignorable=True)  # those on dead brokers or in failed directories


class UpdateMetadataTopicState(Struct):
    topic_name: str = string()
    topic_id: UUID = uuid("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    port: int = int32()
    host: str = string()
    listener: str = string("3+", ignorable=True)
    security_protocol: int = int16()  # 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class UpdateMetadataBroker(Struct):
    id: int = int32()
    v0_host: str = string("0", ignorable=True)  # instead of endpoints
    v0_port: int = int32("0", ignorable=True)  # instead of endpoints
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", nullable="0+", ignorable=True)


class UpdateMetadataRequest(Request, key=6, versions="0-8", flexible="6+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("8+")  # while a cluster migrates from ZooKeeper
    type: int = int8("8+", tag=0)  # 0 unknown, 1 some partitions, 2 all of the cluster
    controller_epoch: int = int32()  # an older one than known is refused
    broker_epoch: int = int64("5+", default=-1, ignorable=True)  # of the broker's registration; -1: don't check
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "0-4")
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Response, key=6, versions="0-8", flexible="6+"):
    error_code: int = int16()
