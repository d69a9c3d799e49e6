"""AlterReplicaLogDirs (key 34): move replicas of this broker to other directories.

Versions 0-2. A replica that isn't hosted yet is made in the directory when it comes; the answer is
REPLICA_NOT_AVAILABLE, and tools ask again. Not done: nothing.
"""

from collections import defaultdict

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", may_block=True)
def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, number): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for number in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    allowed = authorized_on_cluster(ctx, AclOperation.ALTER)
    for tp, path in wanted.items():
        error = ctx.broker.moves.move(tp, path) if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        results[tp.topic].append(AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=error))
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )
