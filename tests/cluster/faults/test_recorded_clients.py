"""Conversations of the real clients under faults are accepted by the rules of the simulator's clients.

With `ODRADEK_RECORDINGS=DIRECTORY` the recordings are kept; those in tests/unit/sim/clients/recordings were made so.
"""

import os
import time
from pathlib import Path

import pytest

from chaos.clients import await_condition
from chaos.operations import ask_controller, elect_preferred
from odradek.apps.lab.cluster import ChaosBroker, ChaosCluster
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.sim.clients.conversation import ClientKind, replay

from .conversation_recorder import ConversationRecorder
from .foreign.producers import ForeignProducer, JavaProducer, LibrdkafkaProducer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]
CLIENT, TOPIC, PARTITIONS, RATE = "7", "orders", 2, 40.0
GRACE_MS = 100


@pytest.mark.parametrize("kind", list(ClientKind), ids=lambda kind: kind.value)
def test_a_conversation_is_accepted(kind: ClientKind, tmp_path: Path, zookeeper: str, kafka_lib: Path) -> None:
    settings = {"min.insync.replicas": "2", "auto.create.topics.enable": "false"}
    cluster = ChaosCluster(tmp_path / "cluster", zookeeper, settings=settings)
    recorder = ConversationRecorder(CLIENT, {broker.id: broker.address for broker in cluster.brokers})
    for broker in cluster.brokers:
        with broker.properties.open("a") as file:
            file.write(f"advertised.listeners=PLAINTEXT://{recorder.address(broker.id)}\n")
    try:
        with cluster:
            _create_topic(cluster)
            producer = _start(kind, tmp_path, recorder, kafka_lib)
            try:
                _let_work(recorder)
                _do_harm(cluster, recorder)
            finally:
                producer.stop()
            assert producer.fault is None
    finally:
        recorder.close()
    if kept := os.environ.get("ODRADEK_RECORDINGS"):
        recorder.save(Path(kept) / f"{kind.value}.jsonl")
    conversation = replay(kind, recorder.events, GRACE_MS)
    assert conversation.requests > 50
    assert conversation.sent_again > 0


def _create_topic(cluster: ChaosCluster) -> None:
    rule = [CreatableTopicConfig(name="min.insync.replicas", value="2")]
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, configs=rule)
    ask_controller(cluster, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
    assert await_condition(lambda: all(cluster.leader(TopicPartition(TOPIC, n)) >= 0 for n in range(PARTITIONS)), 60)


def _start(kind: ClientKind, directory: Path, recorder: ConversationRecorder, kafka_lib: Path) -> ForeignProducer:
    bootstrap = ",".join(recorder.address(broker) for broker in range(3))
    if kind is ClientKind.JAVA:
        return JavaProducer(CLIENT, directory, bootstrap, kafka_lib, topic=TOPIC, rate=RATE)
    settings = {"log_level": 0, "request.timeout.ms": 2_000, "socket.timeout.ms": 3_000, "batch.num.messages": 5}
    producer = LibrdkafkaProducer(CLIENT, directory, bootstrap, rate=RATE, settings=settings)
    producer.write_to(TOPIC, PARTITIONS)
    return producer


def _let_work(recorder: ConversationRecorder) -> None:
    """Wait for twenty more acknowledged requests."""
    before = _acknowledged(recorder)
    assert await_condition(lambda: _acknowledged(recorder) > before + 20, 90)


def _acknowledged(recorder: ConversationRecorder) -> int:
    answers = [event for event in list(recorder.events) if event["event"] == "answered"]
    return sum(not any(event["batches"].values()) for event in answers)


def _do_harm(cluster: ChaosCluster, recorder: ConversationRecorder) -> None:
    """Cut connections, freeze and kill leaders, each with requests in flight, and move leaders back."""
    for _ in range(2):
        leader = _pause_with_requests(cluster, recorder)
        recorder.cut(leader.id)
        leader.resume()
        _let_work(recorder)
    frozen = _pause_with_requests(cluster, recorder)
    time.sleep(3)  # librdkafka gives up its requests meanwhile
    frozen.resume()
    _let_work(recorder)
    killed = _pause_with_requests(cluster, recorder)
    killed.kill()
    _let_work(recorder)
    cluster.start(killed.id)
    elect_preferred(cluster)
    _let_work(recorder)


def _pause_with_requests(cluster: ChaosCluster, recorder: ConversationRecorder) -> ChaosBroker:
    """Pause the broker to which the client has sent last, and wait until requests are in flight."""
    broker = cluster.brokers[next(e["broker"] for e in reversed(list(recorder.events)) if e["event"] == "sent")]
    broker.pause()
    assert await_condition(lambda: recorder.in_flight(broker.id) > 0, 60)
    return broker
