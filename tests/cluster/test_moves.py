"""Three brokers, real ZooKeeper: partitions move, leaders go home, topics go; by request and by old tools' znodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from odradek.broker.zk.znodes import DeletedTopic, PreferredElection, Reassignments
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectionType, ElectLeadersRequest, TopicPartitions
from waiting import eventually

from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .test_cluster import Writer, read_all

ORDERS_0 = TopicPartition("orders", 0)


def test_a_partition_moves_and_its_records_with_it(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper) as cluster, znodes(tmp_path, zookeeper) as tool:
        cluster.create_topic("orders", (0, 1))
        writer = Writer(cluster, "orders")
        writer.write(50)

        reassign(cluster, (2, 1))
        await_replicas(cluster, (2, 1))
        eventually(lambda: not holds(cluster, 0), PATIENCE_S)
        writer.write(50)

        tool.create(Reassignments.path, Reassignments.encode({ORDERS_0: (1, 0)}))
        await_replicas(cluster, (1, 0))
        eventually(lambda: tool.exists(Reassignments.path) is None, PATIENCE_S)
        writer.write(50)
        assert read_all(cluster, "orders") == list(range(150))


def test_leaders_go_home_and_a_topic_goes_when_its_last_replica_is_back(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper) as cluster, znodes(tmp_path, zookeeper) as tool:
        cluster.create_topic("orders", (1, 2), (1, 2))
        cluster.kill(1)
        for number in (0, 1):
            assert cluster.await_leader_other_than(1, "orders", number) == 2
        cluster.restart(1)
        for number in (0, 1):
            cluster.await_isr("orders", (1, 2), number)
        elect_preferred(cluster, 0)
        tool.create(PreferredElection.path, PreferredElection.encode([TopicPartition("orders", 1)]))
        for number in (0, 1):
            assert cluster.await_leader_other_than(2, "orders", number) == 1
        eventually(lambda: tool.exists(PreferredElection.path) is None, PATIENCE_S)

        cluster.kill(2)
        cluster.await_isr("orders", (1,))
        tool.create(DeletedTopic.path("orders"))
        eventually(lambda: not holds(cluster, 1), PATIENCE_S)
        assert tool.exists(DeletedTopic.path("orders")) is not None
        cluster.restart(2)
        eventually(lambda: tool.exists(DeletedTopic.path("orders")) is None, PATIENCE_S)
        assert "orders" not in cluster.store.topics.load_topics()
        eventually(lambda: not holds(cluster, 2), PATIENCE_S)


@contextmanager
def znodes(tmp_path: Path, zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(f"{zookeeper}/{tmp_path.name}", timeout=PATIENCE_S)
    client.start(timeout=PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def holds(cluster: OwnCluster, broker_id: int) -> bool:
    return any((directory / "orders-0").exists() for directory in cluster.brokers[broker_id].log_dirs)


def reassign(cluster: OwnCluster, replicas: tuple[int, ...]) -> None:
    moved = ReassignableTopic(name="orders", partitions=[ReassignablePartition(replicas=list(replicas))])
    with cluster.client(cluster.controller()) as client:
        answer = client.send(AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[moved]))
    assert answer.error_code == 0, answer
    assert answer.responses[0].partitions[0].error_code == 0, answer


def await_replicas(cluster: OwnCluster, replicas: tuple[int, ...]) -> None:
    eventually(
        lambda: cluster.store.topics.load_topics()["orders"].partitions[0] == ReplicaAssignment(replicas), PATIENCE_S
    )
    cluster.await_isr("orders", replicas)
    assert cluster.leader("orders") in replicas


def elect_preferred(cluster: OwnCluster, partition: int) -> None:
    wanted = [TopicPartitions(topic="orders", partitions=[partition])]
    request = ElectLeadersRequest(election_type=ElectionType.PREFERRED, topic_partitions=wanted, timeout_ms=30_000)
    with cluster.client(cluster.controller()) as client:
        answer = client.send(request)
    assert answer.error_code == 0, answer
