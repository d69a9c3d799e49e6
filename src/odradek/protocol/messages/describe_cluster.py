"""DescribeCluster (key 60): cluster id, controller and brokers.

v1 brokers or controllers.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, string


class DescribeClusterRequest(Request, key=60, versions="0-1", flexible="0+"):
    include_cluster_authorized_operations: bool = bool_()
    endpoint_type: int = int8("1+", default=1)  # 1 brokers, 2 controllers


class DescribeClusterBroker(Struct):
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class DescribeClusterResponse(Response, key=60, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)  # 1 brokers, 2 controllers
    cluster_id: str = string()
    controller_id: int = int32(default=-1)  # -1: not known
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)  # bits by operation, or not asked for
