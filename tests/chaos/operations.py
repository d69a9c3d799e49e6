"""Operations of an administrator in a story: moving replicas, electing preferred leaders. Asked until taken."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from odradek.apps.lab.cluster import ChaosCluster
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.schema import Request

ASK_S_MAX = 90.0
_RETRY_S = 0.3
_TRANSIENT = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT})


def ask_controller(cluster: ChaosCluster, request: Request) -> Any:
    """The controller's answer; while there is none, or it is dying, again."""
    deadline = time.monotonic() + ASK_S_MAX
    while time.monotonic() < deadline:
        controller = cluster.controller()
        if controller is not None and controller >= 0:
            try:
                with BrokerClient(*cluster.brokers[controller].address, timeout_ms=30_000) as client:
                    answer = client.send(request)
                if getattr(answer, "error_code", ErrorCode.NONE) not in _TRANSIENT:
                    return answer
            except ConnectionFailed:
                pass
        time.sleep(_RETRY_S)
    raise TimeoutError(f"no controller took {type(request).__name__} within {ASK_S_MAX:.0f} s")


def reassign(cluster: ChaosCluster, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Start moving replicas to these brokers; None cancels an ongoing move."""
    by_topic: dict[str, list[ReassignablePartition]] = {}
    for tp, replicas in wanted.items():
        partition = ReassignablePartition(
            partition_index=tp.partition, replicas=None if replicas is None else list(replicas)
        )
        by_topic.setdefault(tp.topic, []).append(partition)
    topics = [ReassignableTopic(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    answer = ask_controller(cluster, AlterPartitionReassignmentsRequest(timeout_ms=20_000, topics=topics))
    errors = [p.error_message for response in answer.responses for p in response.partitions if p.error_code]
    if answer.error_code or errors:
        raise RuntimeError(f"the reassignment was refused: {answer.error_message or errors}")


def reassigning(cluster: ChaosCluster) -> int:
    """Return the number of partitions under reassignment."""
    answer = ask_controller(cluster, ListPartitionReassignmentsRequest(timeout_ms=20_000, topics=None))
    return sum(len(topic.partitions) for topic in answer.topics)


def elect_preferred(cluster: ChaosCluster) -> None:
    preferred = 0
    ask_controller(cluster, ElectLeadersRequest(election_type=preferred, topic_partitions=None, timeout_ms=20_000))
