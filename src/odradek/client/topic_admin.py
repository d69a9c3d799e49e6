"""Topics, for the tools: create, add partitions, delete, read configs.

Each function returns when the cluster reports success, and raises the cluster's error otherwise.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from odradek.base.config.definition import ConfigSource
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient, TopicState
from odradek.client.config_admin import Resource, ask_configs
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.describe_configs import ConfigResourceType, DescribeConfigsResourceResult

CLUSTER_DEFAULT = -1  # of partitions or replicas: as the cluster is configured
MIN_ISR = "min.insync.replicas"


def create_topic(
    client: ClusterClient,
    name: str,
    *,
    partitions: int = CLUSTER_DEFAULT,
    replication_factor: int = CLUSTER_DEFAULT,
    configs: Mapping[str, str] | None = None,
    assignment: Sequence[list[int]] = (),
) -> TopicState:
    """Create the topic and wait until the cluster shows it with leaders."""
    creatable = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in enumerate(assignment)
        ],
    )
    request = CreateTopicsRequest(topics=[creatable], timeout_ms=client.request_timeout_ms)
    client.retrying(partial(_create, client, request), NOT_YET_DONE)
    return client.retrying(partial(_with_leaders, client, name))


def _with_leaders(client: ClusterClient, name: str) -> TopicState:
    state = client.topic(name)
    client.leaders(TopicPartition(name, partition.partition) for partition in state.partitions)
    return state


def add_partitions(client: ClusterClient, name: str, count: int, assignment: Sequence[list[int]] = ()) -> None:
    """Raise the number of partitions to `count`; `assignment` has the brokers of the new ones only."""
    added = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignment]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=added or None)],
        timeout_ms=client.request_timeout_ms,
    )
    client.retrying(partial(_create_partitions, client, request), NOT_YET_DONE)


def delete_topic(client: ClusterClient, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=client.request_timeout_ms)
    client.retrying(partial(_delete, client, request), NOT_YET_DONE)


def topic_configs(client: ClusterClient, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Overrides of each topic."""
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {
        name: {config.name: config.value for config in configs if config.config_source == own}
        for name, configs in describe_topic_configs(client, names).items()
    }


def min_isr(client: ClusterClient, names: Sequence[str]) -> dict[str, int]:
    """Return min.insync.replicas of each topic."""
    found = describe_topic_configs(client, names, [MIN_ISR])
    return {name: int(next((config.value or "1" for config in configs), "1")) for name, configs in found.items()}


def describe_topic_configs(
    client: ClusterClient, names: Sequence[str], keys: list[str] | None = None
) -> dict[str, list[DescribeConfigsResourceResult]]:
    """Return the effective configs of each topic, all of them or these keys. A topic that went while it was asked for
    has nothing.
    """
    found: dict[str, list[DescribeConfigsResourceResult]] = {name: [] for name in names}
    wanted = {Resource(ConfigResourceType.TOPIC, name): keys for name in names}
    for result in ask_configs(client, wanted):
        if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            _raise_for(result.resource_name, result.error_code, result.error_message)
        found[result.resource_name] = result.configs
    return found


def _create(client: ClusterClient, request: CreateTopicsRequest) -> None:
    for result in client.ask_controller(request, CreateTopicsResponse).topics:
        _raise_for(result.name, result.error_code, result.error_message)


def _create_partitions(client: ClusterClient, request: CreatePartitionsRequest) -> None:
    for result in client.ask_controller(request, CreatePartitionsResponse).results:
        _raise_for(result.name, result.error_code, result.error_message)


def _delete(client: ClusterClient, request: DeleteTopicsRequest) -> None:
    for result in client.ask_controller(request, DeleteTopicsResponse).responses:
        _raise_for(result.name or "", result.error_code, result.error_message)


def _raise_for(topic: str, code: int, message: str | None) -> None:
    error = ErrorCode(code)
    if error is ErrorCode.TOPIC_ALREADY_EXISTS:
        raise KafkaError(
            error, f"topic '{topic}' exists already", message, advice="with --if-not-exists that is no error"
        )
    if error is not ErrorCode.NONE:
        raise KafkaError(error, f"topic '{topic}': {message or error.name}", message)
