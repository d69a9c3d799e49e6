"""DescribeLogDirs (key 35): what lies in each log directory, and how much room there is.

Versions 0-4. v3 adds an error for the whole, v4 the size of the volume. A replica that moves is listed twice: where it
is, and as the copy that will take its place, with how far that is behind. Not done: nothing.
"""

from collections import defaultdict
from pathlib import Path

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.partition import Partition
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

NOT_KNOWN = -1


@handles(ApiKey.DESCRIBE_LOG_DIRS, versions="0-4", may_block=True)
def describe_log_dirs(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse:
    if not authorized_on_cluster(ctx, AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, p) for topic in request.topics for p in topic.partitions}
    return DescribeLogDirsResponse(
        results=[_directory(directory, wanted, ctx) for directory in ctx.broker.logs.table.directories]
    )


def _directory(directory: Path, wanted: set[TopicPartition] | None, ctx: RequestContext) -> DescribeLogDirsResult:
    logs = ctx.broker.logs
    if not logs.table.is_online(directory):
        return DescribeLogDirsResult(log_dir=str(directory), error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for is_future, found in ((False, logs.table.logs_in(directory)), (True, logs.table.futures_in(directory))):
        for tp, log in found.items():
            if wanted is None or tp in wanted:
                partition = DescribeLogDirsPartition(
                    partition_index=tp.partition,
                    partition_size=log.files.size_bytes,
                    offset_lag=_lag(ctx.broker.replicas.partitions.get(tp), log, is_future=is_future),
                    is_future_key=is_future,
                )
                topics[tp.topic].append(partition)
    total_bytes, usable_bytes = logs.table.volume_bytes(directory)
    return DescribeLogDirsResult(
        log_dir=str(directory),
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _lag(partition: Partition | None, log: PartitionLog, *, is_future: bool) -> int:
    """Lag of a copy behind its replica, of a replica behind the high watermark; -1 when it isn't served."""
    if partition is None:
        return NOT_KNOWN
    known = partition.log.log_end_offset if is_future else partition.high_watermark
    return max(known - log.log_end_offset, 0)
