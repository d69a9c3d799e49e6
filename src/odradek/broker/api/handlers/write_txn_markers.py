"""WriteTxnMarkers (key 27): a transaction coordinator ends transactions in the partitions that this broker leads.

Versions 0-2. v1 is flexible; v2 says whether the end raised the producer's epoch, by which a late marker is known
(KIP-1228). A marker is answered when all in-sync replicas have it. One with an older epoch of the producer gets
INVALID_PRODUCER_EPOCH, one of an older coordinator TRANSACTION_COORDINATOR_FENCED. A repeated marker, whose
transaction is over, is answered as done and not written again. For brokers (CLUSTER_ACTION on the cluster), and
for administrators that end a hanging transaction (ALTER). Not done: nothing.
"""

from collections.abc import Iterable
from functools import partial
from itertools import repeat

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_BUMP_VERSION
from odradek.broker.replication.leader.marker_writer import MarkerToWrite
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.transaction_markers import EndTransactionMarker


@handles(ApiKey.WRITE_TXN_MARKERS, versions="0-2", may_block=False)
def write_txn_markers(request: WriteTxnMarkersRequest, ctx: RequestContext) -> WriteTxnMarkersResponse | Outcome:
    is_allowed = authorized_on_cluster(ctx, AclOperation.ALTER, log_denied=False)
    if not is_allowed and not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return _response(request, repeat(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if ctx.connection.peer_closed:
        # The request was unread in the socket of a frozen broker. The coordinator has sent its markers again since, and
        # the producer may be in its next transaction, which these would end.
        return _response(request, repeat(ErrorCode.NETWORK_EXCEPTION))
    markers = [
        MarkerToWrite(
            EndTransactionMarker(
                asked.producer_id,
                asked.producer_epoch,
                asked.coordinator_epoch,
                asked.transaction_result,
                asked.transaction_version >= EPOCH_BUMP_VERSION,
            ),
            TopicPartition(topic.name, index),
        )
        for asked in request.markers
        for topic in asked.topics
        for index in topic.partition_indexes
    ]
    ctx.is_from_broker = True
    ctx.broker.markers.write(markers, ctx.reply_with(partial(_response, request)))
    return LATER


def _response(request: WriteTxnMarkersRequest, codes: Iterable[ErrorCode]) -> WriteTxnMarkersResponse:
    in_order = iter(codes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=asked.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(in_order))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in asked.topics
                ],
            )
            for asked in request.markers
        ]
    )
