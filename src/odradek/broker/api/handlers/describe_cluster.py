"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

Versions 0-1. v1 can ask for the endpoints of controllers instead, which only KRaft has.
Not done: nothing; who may do what comes with authorization.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import NOT_ASKED, operations_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


@handles(ApiKey.DESCRIBE_CLUSTER, versions="0-1", may_block=False)
def describe_cluster(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    if ctx.version >= 1 and request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if request.endpoint_type == CONTROLLERS
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            ),
            error_message="This is a broker. The cluster has brokers only: ZooKeeper keeps its metadata.",
        )
    image = ctx.broker.metadata.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        cluster_authorized_operations=(
            operations_on_cluster(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
        brokers=[
            DescribeClusterBroker(broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for broker, endpoint in image.reached_by(ctx.connection.listener_name)
        ],
    )
