"""Topics for experiments."""

import time

from odradek.apps.lab.cluster import ChaosCluster
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

_CREATE_S_MAX = 60.0
_TIMEOUT_MS = 60_000
_RETRIED = (ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.REQUEST_TIMED_OUT)


def create_topic(cluster: ChaosCluster, name: str, partitions: int, replication_factor: int = 1) -> ErrorCode:
    """Creates it, as soon as the cluster has a controller and enough brokers."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
    deadline = time.monotonic() + _CREATE_S_MAX
    while True:
        code = _ask(cluster, CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS))
        if code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return ErrorCode.NONE
        if code not in _RETRIED or time.monotonic() > deadline:
            return code
        time.sleep(0.2)


def _ask(cluster: ChaosCluster, request: CreateTopicsRequest) -> ErrorCode:
    controller = cluster.controller()
    if controller is None or controller < 0:
        return ErrorCode.NOT_CONTROLLER
    try:
        with BrokerClient(*cluster.brokers[controller].address, "lab", 2 * _TIMEOUT_MS) as client:
            return ErrorCode(client.send(request).topics[0].error_code)
    except ConnectionFailed:
        return ErrorCode.NOT_CONTROLLER
