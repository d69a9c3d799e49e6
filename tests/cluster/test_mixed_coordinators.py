"""Every pair of kinds as controller, coordinator and follower: kill -9, freezes and moves, judged by what was copied.

Broker 0 is the controller; broker 1 leads __consumer_offsets, __transaction_state, the records and their copies; broker
2 follows. librdkafka's copier is a member of a group, Kafka's TransactionalMessageCopier takes a partition by hand;
both commit their offsets in their transactions. Each copy has to be a beginning of its source, each record once.

librdkafka's copier may hang in send_offsets_to_transaction, long after its timeout, when a coordinator has died (its
issues 5511 and 5456, docs/migration.md). It is killed then, and its successor goes on. Only this is forgiven: a copier
that stands still in any other step fails the test.

    ODRADEK_MATRIX=FILE         each cell adds its row of the table in docs/migration.md to the file
"""

import os
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from apache_kafka import broker_command, kafka_jars
from chaos.clients import await_condition
from chaos.copier import CALL_S, COMMITTED, OFFSETS, committed_values
from chaos.operations import elect_preferred, reassign, reassigning
from chaos.story import PARTITIONS, TOPIC, Story
from chaos.transactions import copy_faults
from java_program import java
from odradek.apps.lab.cluster import ChaosCluster
from odradek.client.broker_client import BrokerClient
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

from .faults.foreign.transactional_clients import TransactionalClient
from .test_migration import await_expiry
from .test_mixed_cluster import ours
from .test_transactional_copier import COPIER

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
KINDS = ("Odradek", "Kafka")
CONTROLLER, COORDINATOR, FOLLOWER = range(3)
COPIES, JAVA_COPIES = "copies", "java-copies"
INTERNAL = [TopicPartition(OFFSETS_TOPIC, 0), TopicPartition(TRANSACTIONS_TOPIC, 0)]
SETTINGS = {
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "zookeeper.session.timeout.ms": "6000",
    "auto.create.topics.enable": "false",
}
_FREEZE_S = 2.0  # shorter than a session
_COMMITS = 5
_GRACE_S = 10.0
_PATIENCE_S = 90.0


class _Copier(TransactionalClient):
    """librdkafka's copier, a process."""

    def command(self, name: str) -> list[str]:
        return [sys.executable, "-m", "chaos.copier", self.transactional_id, self._bootstrap, TOPIC, COPIES]

    @property
    def committed(self) -> int:
        """Number of transactions that are committed, as far as it was told."""
        return sum(life.printed.read_text().splitlines().count(COMMITTED) for life in self.lives)

    def hangs(self) -> bool:
        """Return whether it is in `send_offsets_to_transaction`, for longer than it had told librdkafka to try."""
        printed = self.lives[-1].printed
        age_s = time.time() - printed.stat().st_mtime
        return printed.read_text().splitlines()[-1:] == [OFFSETS] and age_s > CALL_S + _GRACE_S


@pytest.mark.parametrize(("controller", "coordinator", "follower"), list(product(KINDS, repeat=3)))
def test_roles(
    controller: str, coordinator: str, follower: str, tmp_path: Path, zookeeper: str, kafka_lib: Path
) -> None:
    kinds = (controller, coordinator, follower)
    launch = {number: broker_command(kafka_lib) for number, kind in enumerate(kinds) if kind == "Kafka"}
    with ChaosCluster(
        tmp_path / "cluster", zookeeper, launch=launch, first=(CONTROLLER,), settings=SETTINGS
    ) as cluster:
        assert await_condition(lambda: cluster.controller() == CONTROLLER, 60)
        cluster.start(COORDINATOR, FOLLOWER)
        with Story(cluster, replication_factor=2, rate=50) as story:
            _create_copies(cluster)
            copier = _Copier("copier", tmp_path, cluster.bootstrap)
            with java(f"{kafka_jars()}/*", tmp_path / "java-copier", *_java_copier(cluster)):
                copier.start()
                try:
                    faults = _do_harm(cluster, story, copier)
                    copier.begin_stop()
                    copier.stop()
                finally:
                    copier.kill_all()
            assert copier.faults == []
        copied = {topic: committed_values(cluster.bootstrap, topic, PARTITIONS) for topic in (COPIES, JAVA_COPIES)}
        source = committed_values(cluster.bootstrap, TOPIC, PARTITIONS)
    anomalies = [str(each) for topic, values in copied.items() for each in _faults(source, values, topic)]
    counts = [sum(map(len, values.values())) for values in copied.values()]
    if table := os.environ.get("ODRADEK_MATRIX"):
        cells = (
            *kinds,
            len(story.history.acknowledged),
            *counts,
            faults,
            len(copier.lives) - 1,
            ", ".join(anomalies) or "none",
        )
        with Path(table).open("a") as file:
            file.write(f"| {' | '.join(map(str, cells))} |\n")
    assert ours(story.verdict) == []
    assert anomalies == []
    assert all(counts), f"records copied by librdkafka and Java: {counts}"


def _create_copies(cluster: ChaosCluster) -> None:
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=2) for name in (COPIES, JAVA_COPIES)
    ]
    with BrokerClient(*cluster.brokers[CONTROLLER].address, timeout_ms=30_000) as client:
        answer = client.send(CreateTopicsRequest(topics=topics, timeout_ms=20_000))
    assert [topic.error_code for topic in answer.topics] == [0, 0]


def _java_copier(cluster: ChaosCluster) -> tuple[object, ...]:
    """It ends when it has copied what there was at its start, or at an error that its producer takes for fatal."""
    options = {
        "--broker-list": cluster.bootstrap,
        "--input-topic": TOPIC,
        "--input-partition": 0,
        "--output-topic": JAVA_COPIES,
        "--max-messages": 1_000_000,
        "--consumer-group": "java-copier",
        "--transaction-size": 50,
        "--transaction-timeout": 15_000,
        "--transactional-id": "java-copier",
    }
    return (COPIER, *(word for option in options.items() for word in option))


def _do_harm(cluster: ChaosCluster, story: Story, copier: _Copier) -> int:
    """Freeze and kill the coordinator, kill the follower, move everything, kill the controller. Return the faults."""
    _go_on(copier)
    _place(cluster, story, (COORDINATOR, FOLLOWER))
    _go_on(copier)
    cluster.brokers[COORDINATOR].pause()
    time.sleep(_FREEZE_S)
    cluster.brokers[COORDINATOR].resume()
    _go_on(copier)
    for victim in (FOLLOWER, COORDINATOR):
        cluster.brokers[victim].kill()
        await_expiry(cluster, victim)
        _go_on(copier)
        cluster.start(victim)
        story.await_isr(2)
    _place(cluster, story, (FOLLOWER, COORDINATOR))
    _go_on(copier)
    cluster.brokers[CONTROLLER].kill()
    await_expiry(cluster, CONTROLLER)
    assert await_condition(lambda: cluster.controller() in (COORDINATOR, FOLLOWER), 60)
    cluster.start(CONTROLLER)
    _place(cluster, story, (CONTROLLER, COORDINATOR))
    _go_on(copier)
    return 4


def _go_on(copier: _Copier) -> None:
    """Wait until it, or its successor if it hangs, has committed some more transactions."""
    goal = copier.committed + _COMMITS

    def goes_on() -> bool:
        return await_condition(lambda: copier.committed >= goal, _PATIENCE_S)

    if not goes_on():
        assert copier.hangs(), f"the copier does not get on: {copier.lives[-1].printed.read_text()[-200:]}"
        copier.kill()
        copier.start()
        assert goes_on(), "the copier's successor does not get on"


def _place(cluster: ChaosCluster, story: Story, replicas: tuple[int, ...]) -> None:
    """Move all partitions, those of the coordinators too: the first replica leads them."""
    copies = [TopicPartition(topic, number) for topic in (COPIES, JAVA_COPIES) for number in range(PARTITIONS)]
    wanted = [*story.partitions, *copies, *INTERNAL]
    reassign(cluster, dict.fromkeys(wanted, replicas))
    assert await_condition(lambda: reassigning(cluster) == 0, _PATIENCE_S)
    story.await_isr(2)
    elect_preferred(cluster)
    assert await_condition(lambda: {cluster.leader(tp) for tp in wanted} == {replicas[0]}, 60)


def _faults(source: dict[int, list[str]], copies: dict[int, list[str]], topic: str) -> list[object]:
    """Compare copies with as many records of their source."""
    begun = {partition: values[: len(copies[partition])] for partition, values in source.items()}
    return list(copy_faults(begun, copies, topic))
