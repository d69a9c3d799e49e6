"""Faults within a transaction: it ends, nothing of it is torn, and readers of committed records go on in time."""

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from odradek.base.errors import ErrorCode
from odradek.client.cluster_client import ClusterClient
from odradek.client.elections import ElectionType, elect_leaders
from odradek.client.producer_transaction import ProducerTransaction
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.client.topic_admin import add_partitions, delete_topic
from odradek.client.transaction_admin import describe_transaction
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from waiting import eventually

from .conftest import unused_name
from .own_broker import run_odradek
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .stable_offset_monitor import SLACK_S, stable_offsets
from .transactional_client import TransactionalClient

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnCluster]:
    directory: Path = tmp_path_factory.mktemp("transactions")
    settings = {
        "transaction_state_log_num_partitions": "1",
        "transaction_state_log_replication_factor": "3",
        "transaction_state_log_min_isr": "1",
        "offsets_topic_num_partitions": "1",
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": "500",
        "odradek_metrics_port": "0",
    }
    with running_cluster(directory, zookeeper, **settings) as running:
        yield running


@pytest.fixture
def cluster(shared: OwnCluster) -> Iterator[OwnCluster]:
    yield shared
    shared.mend()


def producer(cluster: OwnCluster, name: str | None = None, timeout_ms: int = 60_000) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name or unused_name(),
            "transaction.timeout.ms": timeout_ms,
            "log_level": 0,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def write(made: Producer, topic: str, *values: str) -> None:
    for value in values:
        made.produce(topic, value=value)
    assert made.flush(PATIENCE_S) == 0


def committed(cluster: OwnCluster, topic: str, until: str, partition: int = 0) -> list[str]:
    """The records that a reader of committed ones gets, up to and with `until`."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": unused_name()}
    # it commits nothing: its close would wait for a coordinator, for which three brokers have to be there
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([Position(topic, partition, 0)])  # without a group: its topic may not be there yet
    found: list[str] = []

    def is_there() -> bool:
        record = consumer.poll(1)
        if record is not None and not record.error():
            value = record.value()
            assert isinstance(value, bytes)
            found.append(value.decode())
        return until in found

    try:
        eventually(is_there, PATIENCE_S)
        return found
    finally:
        consumer.close()


def coordinator(cluster: OwnCluster) -> int:
    return cluster.leader(TRANSACTIONS_TOPIC)


@pytest.mark.soak  # librdkafka looks for its coordinator with pauses that grow
@pytest.mark.parametrize("commit", [True, False])
def test_killed_while_a_transaction_is_open(cluster: OwnCluster, commit: bool) -> None:
    made, topic = producer(cluster), unused_name()
    killed = coordinator(cluster)
    cluster.create_topic(topic, tuple(broker for broker in (0, 1, 2) if broker != killed))
    made.begin_transaction()
    write(made, topic, "1", "2")
    cluster.kill(killed)
    try:
        (made.commit_transaction if commit else made.abort_transaction)(PATIENCE_S)
        made.begin_transaction()
        write(made, topic, "end")
        made.commit_transaction(PATIENCE_S)
        assert committed(cluster, topic, "end") == (["1", "2", "end"] if commit else ["end"])
    finally:
        cluster.restart(killed)
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def test_killed_between_the_decision_and_the_markers(cluster: OwnCluster) -> None:
    """The only replica of the topic is away: the decision is in the log, the marker can't be written."""
    made, topic = producer(cluster), unused_name()
    killed = coordinator(cluster)
    away = next(broker for broker in (0, 1, 2) if broker != killed)
    cluster.create_topic(topic, (away,))
    made.begin_transaction()
    write(made, topic, "1", "2")
    cluster.kill(away)
    try:
        made.commit_transaction(PATIENCE_S)
        cluster.kill(killed)
        try:
            cluster.await_leader_other_than(killed, TRANSACTIONS_TOPIC)
        finally:
            cluster.restart(killed)
    finally:
        cluster.restart(away)
    assert committed(cluster, topic, "2") == ["1", "2"]
    made.begin_transaction()
    write(made, topic, "end")
    made.commit_transaction(PATIENCE_S)
    assert committed(cluster, topic, "end") == ["1", "2", "end"]
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def test_a_producer_that_goes_away_holds_readers_up_no_longer_than_its_timeout(cluster: OwnCluster) -> None:
    topic, name = unused_name(), unused_name()
    gone = producer(cluster, name, timeout_ms=1_000)
    cluster.create_topic(topic, (0, 1, 2))
    with stable_offsets(cluster.bootstrap, TopicPartition(topic, 0)) as monitor:
        gone.begin_transaction()
        write(gone, topic, "never")
        other = producer(cluster)
        other.begin_transaction()
        write(other, topic, "end")
        other.commit_transaction(PATIENCE_S)
        monitor.await_beyond(TopicPartition(topic, 0), 0, 1 + SLACK_S)
        assert committed(cluster, topic, "end") == ["end"]
    places = [word for broker in cluster.brokers for each in broker.log_dirs for word in ("--data", each)]
    told = run_odradek("recorder", "why", "txn", name, *places).stdout
    events = ["Initialized", "Begun", "TimedOut", "PrepareAbort", "MarkersWritten", "CompleteAbort"]
    assert [line.split()[1] for line in told.splitlines()[:-1]] == events, told
    assert "epoch 1 fences epoch 0" in told


# ---- by a client that finds its coordinator again at once


@pytest.fixture
def client(cluster: OwnCluster) -> Iterator[ClusterClient]:
    with ClusterClient(cluster.bootstrap, timeout_ms=PATIENCE_S * 1_000) as made:
        yield made


def send(client: ClusterClient, transaction: ProducerTransaction, topic: str, *values: str, partition: int = 0) -> None:
    sender = RecordSender(client, topic, transaction=transaction)
    sender.send({partition: [NewRecord(None, value.encode()) for value in values]})


def begin(client: ClusterClient) -> ProducerTransaction:
    return ProducerTransaction(client, unused_name(), timeout_ms=60_000)


@pytest.mark.parametrize("commit", [True, False])
def test_a_clean_stop_of_the_coordinator(cluster: OwnCluster, client: ClusterClient, commit: bool) -> None:
    topic, transaction = unused_name(), begin(client)
    stopped = coordinator(cluster)
    cluster.create_topic(topic, (0, 1, 2))
    with stable_offsets(cluster.bootstrap, TopicPartition(topic, 0)) as monitor:
        send(client, transaction, topic, "1", "2")
        assert cluster.brokers[stopped].stop() == 0
        try:
            transaction.end(commit=commit)
            monitor.await_beyond(TopicPartition(topic, 0), 2, SLACK_S)
        finally:
            cluster.restart(stopped)
        after = begin(client)
        send(client, after, topic, "end")
        after.end(commit=True)
        assert committed(cluster, topic, "end") == (["1", "2", "end"] if commit else ["end"])
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def test_a_leader_is_frozen_before_it_has_the_marker(cluster: OwnCluster, client: ClusterClient) -> None:
    """The next leader gets it when the session of the frozen one is over, and not when the request to that one is."""
    begin(client)  # the topic of the coordinator's state is there
    topic, name = unused_name(), unused_name()
    state, kept = TopicPartition(TRANSACTIONS_TOPIC, 0), coordinator(cluster)
    frozen = next(broker for broker in (0, 1, 2) if broker not in (kept, cluster.controller()))
    move_replicas(client, state, [kept, *{0, 1, 2} - {kept, frozen}])
    cluster.create_topic(topic, (frozen, kept))
    cluster.await_isr(topic, (frozen, kept))
    tp = TopicPartition(topic, 0)
    with (
        cluster.client(kept) as to_coordinator,
        cluster.client(frozen) as to_leader,
        stable_offsets(cluster.bootstrap, tp) as monitor,
    ):
        me, writer = TransactionalClient(to_coordinator, topic, name), TransactionalClient(to_leader, topic, name)
        assert [me.find(1, name), me.init(), *me.add(0)] == [ErrorCode.NONE] * 3
        writer.id, writer.epoch = me.id, me.epoch
        assert writer.write("1", 0) is ErrorCode.NONE
        cluster.freeze(frozen)
        try:
            assert me.end(commit=True) is ErrorCode.NONE
            cluster.await_leader_other_than(frozen, topic)
            monitor.await_beyond(tp, 1, SLACK_S)
        finally:
            cluster.thaw(frozen)
    assert committed(cluster, topic, "1") == ["1"]
    cluster.await_isr(topic, (frozen, kept))
    move_replicas(client, state, [kept, *{0, 1, 2} - {kept}])
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))


def move_replicas(client: ClusterClient, tp: TopicPartition, replicas: list[int]) -> None:
    alter_reassignments(client, {tp: replicas})
    eventually(lambda: tp not in ongoing_reassignments(client), PATIENCE_S)


def test_a_topic_is_deleted_within_a_transaction(cluster: OwnCluster, client: ClusterClient) -> None:
    """Its markers are dropped with it: the transaction is complete, and the next one begins."""
    kept, deleted, transaction = unused_name(), unused_name(), begin(client)
    cluster.create_topic(kept, (0, 1, 2))
    cluster.create_topic(deleted, (1, 2, 0), (2, 0, 1))
    with stable_offsets(cluster.bootstrap, TopicPartition(kept, 0)) as monitor:
        send(client, transaction, kept, "1")
        send(client, transaction, deleted, "lost", partition=1)
        delete_topic(client, deleted)
        transaction.end(commit=True)
        monitor.await_beyond(TopicPartition(kept, 0), 1, SLACK_S)
        name = transaction.transactional_id
        eventually(lambda: describe_transaction(client, name).state == "CompleteCommit", PATIENCE_S)
    assert committed(cluster, kept, "1") == ["1"]


def test_partitions_are_added_and_replicas_moved_within_a_transaction(
    cluster: OwnCluster, client: ClusterClient
) -> None:
    topic, transaction = unused_name(), begin(client)
    cluster.create_topic(topic, (0,))
    moved = TopicPartition(topic, 0)
    with stable_offsets(cluster.bootstrap, moved) as monitor:
        send(client, transaction, topic, "1")
        add_partitions(client, topic, 2)
        for broker in cluster.brokers:
            with ClusterClient(broker.bootstrap) as known_there:
                eventually(lambda: len(known_there.topic(topic).partitions) == 2, PATIENCE_S)
        send(client, transaction, topic, "2", partition=1)
        alter_reassignments(client, {moved: [1]})
        eventually(lambda: moved not in ongoing_reassignments(client), PATIENCE_S)
        assert cluster.leader(topic) == 1
        monitor.await_beyond(moved, -1, PATIENCE_S)
        assert monitor.offsets[moved] == 0
        transaction.end(commit=True)
        monitor.await_beyond(moved, 1, SLACK_S)
        assert committed(cluster, topic, "1") == ["1"]
        assert committed(cluster, topic, "2", partition=1) == ["2"]


def scraped(cluster: OwnCluster) -> Counter[str]:
    """The figures of all brokers added up, by name; those with labels are left out."""
    found: Counter[str] = Counter()
    for broker in cluster.brokers:
        address = re.findall(r"http://\S+/metrics", broker.log)[-1]
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            for name, value in re.findall(r"^(\w+) (\S+)$", answer.read().decode(), re.MULTILINE):
                found[name] += float(value)
    return found


def test_the_metrics_of_transactions_have_kafkas_names(cluster: OwnCluster, client: ClusterClient) -> None:
    topic, transaction = unused_name(), begin(client)
    cluster.create_topic(topic, (0, 1, 2))
    before = scraped(cluster)
    send(client, transaction, topic, "1")
    transaction.end(commit=True)
    after = scraped(cluster)
    verifications = "kafka_server_addpartitionstotxnmanager_verificationtimems_count"
    assert after[verifications] > before[verifications]
    producer_ids = "kafka_server_replicamanager_produceridcount"
    assert after[producer_ids] > before[producer_ids]
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    loads = "kafka_server_transaction_coordinator_metrics_partition_load_time"
    assert after[f"{loads}_max"] >= after[f"{loads}_avg"] >= 0
    assert "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count" in after
    for waiting in (
        f"{markers}_unknowndestinationqueuesize",
        f"{markers}_logappendretryqueuesize",
        "kafka_server_replicamanager_partitionswithlatetransactionscount",
    ):
        eventually(lambda name=waiting: scraped(cluster)[name] == 0, PATIENCE_S)


def test_a_replica_that_is_moved_while_its_broker_is_away_is_set_aside(
    cluster: OwnCluster, client: ClusterClient
) -> None:
    topic = unused_name()
    cluster.create_topic(topic, (0, 1, 2))
    moved = TopicPartition(topic, 0)
    cluster.await_isr(topic, (0, 1, 2))
    cluster.kill_with_session(2)  # else the controller may still have it delete its replica
    try:
        cluster.await_isr(topic, (0, 1))
        alter_reassignments(client, {moved: [0, 1]})
        eventually(lambda: moved not in ongoing_reassignments(client), PATIENCE_S)
    finally:
        cluster.restart(2)
    (disk,) = cluster.brokers[2].log_dirs
    eventually(lambda: not (disk / str(moved)).exists(), PATIENCE_S)
    assert len(list(disk.glob(f"{moved}.*-stray"))) == 1
    cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))
    alter_reassignments(client, {moved: [0, 1, 2]})
    cluster.await_isr(topic, (0, 1, 2))


@pytest.mark.parametrize("changes", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_a_storm_of_leader_changes_of_the_state_topic(cluster: OwnCluster, client: ClusterClient, changes: int) -> None:
    """Each transaction meets a change of its coordinator; every one is seen whole or, aborted, not at all."""
    topic, state = unused_name(), TopicPartition(TRANSACTIONS_TOPIC, 0)
    begin(client)  # the topic of the coordinator's state is there
    cluster.create_topic(topic, (0, 1, 2))
    told: list[str] = []
    with stable_offsets(cluster.bootstrap, TopicPartition(topic, 0)):
        for number in range(changes):
            transaction = begin(client)
            send(client, transaction, topic, f"{number}-a", f"{number}-b")
            follower = (coordinator(cluster) + 1) % 3
            cluster.await_isr(TRANSACTIONS_TOPIC, (0, 1, 2))
            alter_reassignments(client, {state: [follower, (follower + 1) % 3, (follower + 2) % 3]})
            eventually(lambda: not ongoing_reassignments(client), PATIENCE_S)
            elect_leaders(client, ElectionType.PREFERRED, [state])
            eventually(lambda follower=follower: coordinator(cluster) == follower, PATIENCE_S)  # type: ignore[misc]
            transaction.end(commit=number % 2 == 0)
            told += [f"{number}-a", f"{number}-b"] if number % 2 == 0 else []
        last = begin(client)
        send(client, last, topic, "end")
        last.end(commit=True)
        assert committed(cluster, topic, "end") == [*told, "end"]
