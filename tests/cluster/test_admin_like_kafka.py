"""Administration beyond configuration: the same requests to Odradek and to Apache Kafka have the same answers.

Error messages are our own, everything else must be equal.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from apache_kafka import KafkaPeer
from odradek.client.broker_client import BrokerClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import alter_client_quotas as alter
from odradek.protocol.messages import alter_replica_log_dirs as move
from odradek.protocol.messages import alter_user_scram_credentials as scram
from odradek.protocol.messages import delete_records as delete
from odradek.protocol.messages import describe_client_quotas as describe
from odradek.protocol.messages import describe_log_dirs as log_dirs
from odradek.protocol.messages import describe_producers as producers
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

from .conftest import Cluster
from .kafka_pair import KafkaPair

# Not there: security, and what only a cluster on its way to KRaft uses.
LEFT_OUT = {
    ApiKey.ENVELOPE,
}  # fmt: skip
# One version more than Kafka 3.9 has: version 2 of transactions.
NEWER = {ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS, ApiKey.TXN_OFFSET_COMMIT}


def test_the_same_requests_are_understood_at_the_same_versions(pair: KafkaPair) -> None:
    assert {ApiKey(key) for key in pair.theirs.versions.keys() - pair.ours.versions.keys()} == LEFT_OUT
    ours = {key: range(offered.stop - (key in NEWER)) for key, offered in pair.ours.versions.items()}
    assert {key: pair.theirs.versions[key] for key in ours} == ours


# ---- quotas

USER, CLIENT, ADDRESS, RATE = "user", "client-id", "ip", "producer_byte_rate"
Entity = list[tuple[str, str | None]]
QUOTAS: list[tuple[Entity, dict[str, float | None]]] = [
    ([(USER, "u1")], {RATE: 1000.0}),
    ([(USER, "u1")], {"consumer_byte_rate": 2.5}),
    ([(CLIENT, "c1")], {RATE: 5.0}),
    ([(USER, "u1"), (CLIENT, "c1")], {RATE: 7.0, "request_percentage": 33.3}),
    ([(USER, None)], {RATE: 1e12}),
    ([(CLIENT, None)], {"controller_mutation_rate": 100_000.5}),
    ([(USER, None), (CLIENT, None)], {RATE: 1e12}),
    ([(USER, "u2"), (CLIENT, None)], {RATE: 12.0}),
    ([(USER, None), (CLIENT, "c2")], {RATE: 13.0}),
    ([(ADDRESS, "127.0.0.77")], {"connection_creation_rate": 14.0}),
    ([(ADDRESS, None)], {"connection_creation_rate": 100_000.0}),
    ([(ADDRESS, "no.such.host.invalid")], {"connection_creation_rate": 14.0}),
    ([(ADDRESS, "127.0.0.77"), (USER, "u")], {"connection_creation_rate": 14.0}),
    ([(ADDRESS, "127.0.0.77")], {RATE: 14.0}),
    ([(ADDRESS, "127.0.0.77")], {"connection_creation_rate": 1.5}),
    ([(USER, "u1")], {"nope": 1.0}),
    ([(USER, "u1")], {"connection_creation_rate": 1.0}),
    ([(USER, "u1")], {RATE: -1.0}),
    ([(USER, "u1")], {RATE: 1e20}),
    ([(USER, "u3")], {RATE: 0.0}),
    ([("foo", "u1")], {RATE: 1.0}),
    ([], {RATE: 1.0}),
    ([(USER, "")], {RATE: 1.0}),
    ([(USER, "a b/ü%*~")], {RATE: 77.0}),
    ([(USER, "<default>")], {RATE: 3.0}),
    ([(USER, "nobody")], {RATE: None, "nope": None}),
    ([(CLIENT, "c1")], {RATE: None}),
]
FILTERS: list[list[tuple[str, int, str | None]]] = [
    [],
    [(USER, 2, None)],
    [(USER, 0, "u1")],
    [(USER, 0, "<default>")],
    [(USER, 0, "a b/ü%*~")],
    [(USER, 1, None)],
    [(CLIENT, 2, None)],
    [(CLIENT, 1, None)],
    [(USER, 2, None), (CLIENT, 2, None)],
    [(USER, 0, "u1"), (CLIENT, 2, None)],
    [(USER, 1, None), (CLIENT, 1, None)],
    [(USER, 1, None), (CLIENT, 0, "c2")],
    [(ADDRESS, 2, None)],
    [(ADDRESS, 0, "127.0.0.77")],
    [(ADDRESS, 1, None)],
    [(ADDRESS, 2, None), (USER, 2, None)],
    [("foo", 2, None)],
    [("", 2, None)],
    [(USER, 2, None), (USER, 0, "u1")],
]


def alteration(entity: Entity, quotas: dict[str, float | None]) -> alter.EntryData:
    return alter.EntryData(
        entity=[alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[alter.OpData(key=key, value=value or 0, remove=value is None) for key, value in quotas.items()],
    )


def quotas_of(client: BrokerClient, components: list[tuple[str, int, str | None]], strict: bool) -> Any:
    asked = [describe.ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = client.send(describe.DescribeClientQuotasRequest(components=asked, strict=strict))
    if answer.entries is None:
        return answer.error_code
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
        for entry in answer.entries
    }


@pytest.fixture(scope="module")
def with_quotas(pair: KafkaPair) -> Iterator[KafkaPair]:
    """Both have been told the same story."""
    try:
        for entity, quotas in QUOTAS:
            request = alter.AlterClientQuotasRequest(entries=[alteration(entity, quotas)])
            ours, theirs = pair.ask(request)
            assert [e.error_code for e in ours.entries] == [e.error_code for e in theirs.entries], (entity, quotas)
            checked, _ = pair.ask(alter.AlterClientQuotasRequest(entries=request.entries, validate_only=True))
            assert [e.error_code for e in checked.entries] == [e.error_code for e in ours.entries]
        yield pair
    finally:
        for client in (pair.ours, pair.theirs):
            set_now = quotas_of(client, [], False)
            undone = [alteration(list(entity), dict.fromkeys(quotas)) for entity, quotas in set_now.items()]
            client.send(alter.AlterClientQuotasRequest(entries=undone))
            assert quotas_of(client, [], False) == {}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("components", FILTERS, ids=str)
def test_quotas_are_set_and_told_alike(
    with_quotas: KafkaPair, components: list[tuple[str, int, str | None]], strict: bool
) -> None:
    pair = with_quotas
    assert quotas_of(pair.ours, components, strict) == quotas_of(pair.theirs, components, strict)


# ---- the rest


def test_producers_of_partitions(pair: KafkaPair, odradek_cluster: Cluster, kafka_peer: KafkaPeer) -> None:
    for cluster in (odradek_cluster, kafka_peer):
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        producer = Producer(settings)
        for _ in range(3):
            producer.produce(pair.topic, b"x", partition=0)
            assert producer.flush(60) == 0
    topics = [
        producers.TopicRequest(name=pair.topic, partition_indexes=[0, 1, 9]),
        producers.TopicRequest(name="no-such-topic", partition_indexes=[0]),
        producers.TopicRequest(name="not/a/name", partition_indexes=[0]),
    ]
    answers = pair.ask(producers.DescribeProducersRequest(topics=topics))
    for answer in answers:
        (state,) = answer.topics[0].partitions[0].active_producers
        assert abs(state.last_timestamp / 1000 - time.time()) < 3600
        state.last_timestamp = state.producer_id = 0
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.error_message = None
    assert answers[0] == answers[1]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("level", [0, 5])
@pytest.mark.parametrize("feature", ["metadata.version", ""])
def test_features(pair: KafkaPair, feature: str, level: int, version: int) -> None:
    update = FeatureUpdateKey(feature=feature, max_version_level=level)
    ours, theirs = pair.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    assert ours.error_code == theirs.error_code
    assert [(r.feature, r.error_code) for r in ours.results] == [(r.feature, r.error_code) for r in theirs.results]


@pytest.mark.parametrize(
    "request_",
    [
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="", member_epoch=0),
        ConsumerGroupDescribeRequest(group_ids=["g", ""]),
        ListTransactionsRequest(producer_id_filters=[-7]),
        ListTransactionsRequest(state_filters=["Dead", "Foo"]),
        ListGroupsRequest(types_filter=["consumer"]),
        ListGroupsRequest(types_filter=["foo"]),
        DescribeUserScramCredentialsRequest(users=[]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_neither_has(pair: KafkaPair, request_: Any) -> None:
    ours, theirs = pair.ask(request_)
    assert ours == theirs


def test_credentials_of_nobody(pair: KafkaPair) -> None:
    users = [UserName(name="nobody"), UserName(name="twice"), UserName(name="twice")]
    told = [
        [(result.user, result.error_code) for result in answer.results]
        for answer in pair.ask(DescribeUserScramCredentialsRequest(users=users))
    ]
    assert sorted(told[0]) == sorted(told[1])


def test_credentials_are_set_and_removed(pair: KafkaPair) -> None:
    def wanted(name: str, mechanism: int = 1, iterations: int = 4096) -> scram.ScramCredentialUpsertion:
        return scram.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
        )

    set_all = scram.AlterUserScramCredentialsRequest(
        upsertions=[
            *(wanted("alice"), wanted("alice", 2, 16384), wanted("a b/ü%*~"), wanted("")),
            *(wanted("few", 1, 4095), wanted("many", 2, 16385), wanted("unknown", 3)),
        ],
        deletions=[scram.ScramCredentialDeletion(name="nobody", mechanism=1)],
    )
    remove = scram.AlterUserScramCredentialsRequest(
        deletions=[
            scram.ScramCredentialDeletion(name="alice", mechanism=1),
            scram.ScramCredentialDeletion(name="a b/ü%*~", mechanism=1),
        ]
    )
    described = DescribeUserScramCredentialsRequest(users=None)
    for request in (set_all, remove):
        ours, theirs = ({r.user: r.error_code for r in answer.results} for answer in pair.ask(request))
        assert ours == theirs
        ours, theirs = pair.ask(described)
        assert ours.results == theirs.results
    last = scram.AlterUserScramCredentialsRequest(deletions=[scram.ScramCredentialDeletion(name="alice", mechanism=2)])
    assert [answer.results[0].error_code for answer in pair.ask(last)] == [0, 0]


@pytest.mark.parametrize("version", range(5))
def test_directories(pair: KafkaPair, version: int) -> None:
    asked = log_dirs.DescribableLogDirTopic(topic=pair.topic, partitions=[0, 1, 9])
    ours, theirs = pair.ask(log_dirs.DescribeLogDirsRequest(topics=[asked]), version)
    for answer in (ours, theirs):
        (result,) = answer.results
        result.log_dir = ""
        if version >= 4:
            assert 0 < result.usable_bytes <= result.total_bytes
        result.usable_bytes = result.total_bytes = 0
        for partition in result.topics[0].partitions:
            partition.partition_size = 0
        result.topics[0].partitions.sort(key=lambda partition: partition.partition_index)
    assert ours == theirs


@pytest.mark.parametrize("path", ["/no/such/directory", "relative"])
def test_moves_to_nowhere(pair: KafkaPair, path: str) -> None:
    topics = [
        move.AlterReplicaLogDirTopic(name=pair.topic, partitions=[0, 9]),
        move.AlterReplicaLogDirTopic(name="no-such-topic", partitions=[0]),
    ]
    request = move.AlterReplicaLogDirsRequest(dirs=[move.AlterReplicaLogDir(path=path, topics=topics)])
    told = [
        {(t.topic_name, p.partition_index): p.error_code for t in answer.results for p in t.partitions}
        for answer in pair.ask(request)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("offset", [-2, 0, 1, 1000, -1])
@pytest.mark.parametrize("version", range(3))
def test_deleted_records(pair: KafkaPair, offset: int, version: int) -> None:
    def topic(name: str, *indexes: int) -> delete.DeleteRecordsTopic:
        partitions = [delete.DeleteRecordsPartition(partition_index=index, offset=offset) for index in indexes]
        return delete.DeleteRecordsTopic(name=name, partitions=partitions)

    topics = [topic(pair.topic, 1, 9), topic("no-such-topic", 0)]
    told = [
        {(t.name, p.partition_index): (p.error_code, p.low_watermark) for t in answer.topics for p in t.partitions}
        for answer in pair.ask(delete.DeleteRecordsRequest(topics=topics, timeout_ms=30_000), version)
    ]
    assert told[0] == told[1]
