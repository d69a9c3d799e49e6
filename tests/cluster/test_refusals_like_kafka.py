"""Impossible requests are refused with the error code that Apache Kafka gives, and with a sentence."""

from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.protocol.messages.alter_partition import AlterPartitionRequest
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .own_broker import batch_of, produce, produce_request

NOBODY = 99
WAIT_MS = 30_000


def told(answers: tuple[Any, Any]) -> ErrorCode:
    """Compare both answers. Kafka's sentence may be another, but where it has one, so have we."""
    ours, theirs = answers
    assert ErrorCode(ours.error_code) is ErrorCode(theirs.error_code), (ours, theirs)
    assert bool(ours.error_message) or not theirs.error_message, (ours, theirs)
    return ErrorCode(ours.error_code)


# ---- topics


def assigned(*replicas: list[int]) -> list[CreatableReplicaAssignment]:
    return [CreatableReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(replicas)]


@pytest.mark.parametrize(
    ("partitions", "factor", "assignments", "configs", "code"),
    [
        (1, 2, [], {}, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 0, [], {}, ErrorCode.INVALID_REPLICATION_FACTOR),
        (0, 1, [], {}, ErrorCode.INVALID_PARTITIONS),
        (-1, -1, assigned([0, 0]), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, assigned([0], [0, 0]), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, assigned([0], [0])[1:], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (1, 1, assigned([0]), {}, ErrorCode.INVALID_REQUEST),
        (1, 1, [], {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        (1, 1, [], {"no.such.key": "1"}, ErrorCode.INVALID_CONFIG),
        (1, 1, [], {"min.insync.replicas": "0"}, ErrorCode.INVALID_CONFIG),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_topics(
    pair: KafkaPair,
    partitions: int,
    factor: int,
    assignments: list[CreatableReplicaAssignment],
    configs: dict[str, str],
    code: ErrorCode,
    *,
    validate_only: bool,
) -> None:
    wanted = CreatableTopic(
        name=unused_name(),
        num_partitions=partitions,
        replication_factor=factor,
        assignments=assignments,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    answers = pair.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=WAIT_MS, validate_only=validate_only))
    assert told((answers[0].topics[0], answers[1].topics[0])) is code


@pytest.mark.parametrize("replicas", [[NOBODY], [0, NOBODY], [-1]])
def test_topics_for_nobody(pair: KafkaPair, replicas: list[int]) -> None:
    """With ZooKeeper, Apache Kafka takes brokers that aren't there yet. Only asked: such a topic has no leader."""
    wanted = CreatableTopic(
        name=unused_name(), num_partitions=-1, replication_factor=-1, assignments=assigned(replicas)
    )
    ours, theirs = pair.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=WAIT_MS, validate_only=True))
    told((ours.topics[0], theirs.topics[0]))


def test_a_partition_without_replicas(pair: KafkaPair) -> None:
    """Apache Kafka takes it when it has ZooKeeper; nobody could ever lead it, so here it is refused."""
    wanted = CreatableTopic(name=unused_name(), num_partitions=-1, replication_factor=-1, assignments=assigned([]))
    refused = pair.ours.send(CreateTopicsRequest(topics=[wanted], timeout_ms=WAIT_MS)).topics[0]
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.error_message


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[NOBODY]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0, 0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0], [0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_more_partitions(pair: KafkaPair, count: int, assignments: list[list[int]] | None, code: ErrorCode) -> None:
    homes = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    wanted = CreatePartitionsTopic(name=pair.topic, count=count, assignments=homes)
    answers = pair.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=WAIT_MS))
    assert told((answers[0].results[0], answers[1].results[0])) is code


# ---- moves and elections


@pytest.mark.parametrize(
    ("partition", "replicas", "code"),
    [
        (0, [NOBODY], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (7, [0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (7, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_moves(pair: KafkaPair, partition: int, replicas: list[int] | None, code: ErrorCode) -> None:
    wanted = ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [ReassignableTopic(name=pair.topic, partitions=[wanted])]
    ours, theirs = pair.ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=WAIT_MS))
    assert told((ours.responses[0].partitions[0], theirs.responses[0].partitions[0])) is code


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(
    ("partition", "code"), [(0, ErrorCode.ELECTION_NOT_NEEDED), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_elections(pair: KafkaPair, kind: int, partition: int, code: ErrorCode) -> None:
    wanted = [TopicPartitions(topic=pair.topic, partitions=[partition])]
    ours, theirs = pair.ask(ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=WAIT_MS))
    results = [answer.replica_election_results[0].partition_result[0] for answer in (ours, theirs)]
    assert told((results[0], results[1])) is code


# ---- controllers and brokers of the past


@pytest.mark.parametrize("request_", [LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest])
def test_controllers_of_the_past(pair: KafkaPair, request_: Any) -> None:
    answers = pair.ask(request_(controller_id=0, controller_epoch=0, broker_epoch=-1))
    assert [answer.error_code for answer in answers] == [ErrorCode.STALE_CONTROLLER_EPOCH] * 2
    answers = pair.ask(request_(controller_id=0, controller_epoch=1_000, broker_epoch=1))
    assert [answer.error_code for answer in answers] == [ErrorCode.STALE_BROKER_EPOCH] * 2


@pytest.mark.parametrize(
    "request_",
    [ControlledShutdownRequest(broker_id=0, broker_epoch=1), AlterPartitionRequest(broker_id=0, broker_epoch=1)],
)
def test_brokers_of_the_past(pair: KafkaPair, request_: Any) -> None:
    answers = pair.ask(request_)
    assert [answer.error_code for answer in answers] == [ErrorCode.STALE_BROKER_EPOCH] * 2


# ---- transactions


@pytest.mark.parametrize(("mark", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, None)])
def test_marks_that_a_version_does_not_know(pair: KafkaPair, mark: int, first_version: int | None) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=mark, current_leader_epoch=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=pair.topic, partitions=[asked])])
    for version in range(1, 10):
        codes = [answer.topics[0].partitions[0].error_code for answer in pair.ask(request, version)]
        is_known = first_version is not None and version >= first_version
        assert codes == [ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION] * 2, version


@pytest.mark.parametrize(("size", "code"), [(50, ErrorCode.NONE), (200, ErrorCode.RECORD_LIST_TOO_LARGE)])
def test_batches_larger_than_a_segment(pair: KafkaPair, size: int, code: ErrorCode) -> None:
    topic = unused_name()
    config = [CreatableTopicConfig(name="segment.bytes", value="200")]
    created = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=config)
    pair.ask(CreateTopicsRequest(topics=[created], timeout_ms=WAIT_MS))
    results = [produce(client, topic, batch_of(b"x" * size)).error_code for client in (pair.ours, pair.theirs)]
    assert results == [code] * 2


def test_kafka_14402_records_of_no_transaction_leave_none_hanging(pair: KafkaPair) -> None:
    """They would hold up readers of committed records for ever: nobody has begun the transaction, nobody ends it."""
    late = batch_of(b"late", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    ours, theirs = pair.ask(produce_request(pair.topic, late))
    results = [answer.responses[0].partition_responses[0].error_code for answer in (ours, theirs)]
    assert results == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    written = pair.ask(produce_request(pair.topic, batch_of(b"plain")))
    ends = [answer.responses[0].partition_responses[0].base_offset + 1 for answer in written]
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)
    topics = [ListOffsetsTopic(name=pair.topic, partitions=[latest])]
    stable = pair.ask(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=topics))
    assert [answer.topics[0].partitions[0].offset for answer in stable] == ends == [1, 1]
