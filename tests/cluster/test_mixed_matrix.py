"""Every pair of kinds as controller, leader and follower, with kill -9 and freezes, judged by the history checker.

Broker 0 is the controller, broker 1 leads every partition, broker 2 follows; two librdkafka producers and Kafka's Java
producer write. What explains an anomaly is kept: traces and logs of the brokers, debug lines of the clients, and
`summary.txt` with the batches in question.

    ODRADEK_MATRIX=FILE         each cell adds its row of the table in docs/migration.md to the file
    ODRADEK_MATRIX_DIR=DIR      where the cells keep everything
"""

import os
import shutil
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from apache_kafka import broker_command
from chaos.client_logs import out_of_order_answers
from chaos.clients import await_condition
from chaos.judge import Kind, judge
from chaos.operations import elect_preferred, reassign, reassigning
from chaos.story import TOPIC, Story
from odradek.apps.lab.cluster import ChaosCluster

from .faults.foreign.evidence import explain, write_history
from .faults.foreign.producers import JavaProducer
from .mixed_evidence import led_by_odradek, not_by_kafka, out_of_order_traced, tracing
from .test_migration import await_expiry

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
KINDS = ("Odradek", "Kafka")
CONTROLLER, LEADER, FOLLOWER = range(3)
JAVA = "1000"
CHANGES = 15
"""How often leadership goes there and back."""
SETTINGS = {
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "zookeeper.session.timeout.ms": "6000",
    "auto.create.topics.enable": "false",
}


@pytest.mark.parametrize(("controller", "leader", "follower"), list(product(KINDS, repeat=3)))
def test_roles(controller: str, leader: str, follower: str, tmp_path: Path, zookeeper: str, kafka_lib: Path) -> None:
    _judge_cell((controller, leader, follower), _do_harm, tmp_path, zookeeper, kafka_lib)


@pytest.mark.parametrize(
    ("controller", "leader", "follower"),
    [("Odradek", "Kafka", "Odradek"), ("Kafka", "Kafka", "Kafka"), ("Odradek", "Odradek", "Odradek")],
)
def test_leaders_change_places(
    controller: str, leader: str, follower: str, tmp_path: Path, zookeeper: str, kafka_lib: Path
) -> None:
    """Nothing fails, but leadership goes to and fro: clients meet brokers that lead no longer, or not yet."""
    _judge_cell((controller, leader, follower), _change_places, tmp_path, zookeeper, kafka_lib)


def _judge_cell(
    kinds: tuple[str, ...],
    happens: Callable[[ChaosCluster, Story], int],
    directory: Path,
    zookeeper: str,
    kafka_lib: Path,
) -> None:
    kafka = broker_command(kafka_lib)
    launch = {number: kafka for number, kind in enumerate(kinds) if kind == "Kafka"}
    own = Path(os.environ.get("ODRADEK_MATRIX_DIR", directory)) / f"{'-'.join(kinds)}-{time.time_ns()}"
    with ChaosCluster(
        own / "cluster", zookeeper, launch=launch, first=(CONTROLLER,), settings=SETTINGS, environment=tracing()
    ) as cluster:
        assert await_condition(lambda: cluster.controller() == CONTROLLER, 60)
        cluster.start(LEADER, FOLLOWER)
        with Story(cluster, replication_factor=2, debug_logs=own) as story:
            java = JavaProducer(JAVA, own, cluster.bootstrap, kafka_lib, topic=TOPIC, rate=100)
            try:
                faults = happens(cluster, story)
            finally:
                java.stop()
            java.tell(story.history)
        assert java.fault is None
        assert any(ack.sent.producer == JAVA for ack in story.history.acknowledged)
        line = _row(cluster, story, own, kinds, faults)
        if table := os.environ.get("ODRADEK_MATRIX"):
            with Path(table).open("a") as file:
                file.write(line + "\n")
        if story.verdict:
            _keep(own, cluster, story, line)
        replicas = {tp: story.replicas(tp) for tp in story.partitions}
        duplicates = [anomaly for anomaly in judge(story.history) if anomaly.kind is Kind.DUPLICATE]
        by_odradek = not_by_kafka(duplicates, story.history, cluster, replicas)
        others = [each for each in story.verdict if not each.startswith(Kind.DUPLICATE.name)]
        assert [*map(str, by_odradek), *others] == [], f"everything is in {own}"
    if not story.verdict:
        shutil.rmtree(own, ignore_errors=True)


def _row(cluster: ChaosCluster, story: Story, directory: Path, kinds: tuple[str, ...], faults: int) -> str:
    found, refused = _kinds(story.verdict), _refused(cluster, directory, kinds)
    cells = (*kinds, len(story.history.acknowledged), faults, found or "none", refused or "none")
    return f"| {' | '.join(map(str, cells))} |"


def _refused(cluster: ChaosCluster, directory: Path, kinds: tuple[str, ...]) -> str:
    """How often batches were refused as out of order, by the kind of the broker."""
    by_broker = out_of_order_traced(cluster)
    for log in directory.glob("p*.log"):
        answers = out_of_order_answers(log)
        by_broker.update({broker: count for broker, count in answers.items() if kinds[broker] == "Kafka"})
    counts = {kind: sum(count for broker, count in by_broker.items() if kinds[broker] == kind) for kind in KINDS}
    return ", ".join(f"{count} by {kind}" for kind, count in counts.items() if count)


def _keep(directory: Path, cluster: ChaosCluster, story: Story, row: str) -> None:
    write_history(story.history, directory / "history.jsonl")
    replicas = {tp: story.replicas(tp) for tp in story.partitions}
    led = [f"broker {broker} led {tp} in epoch {epoch}" for (tp, epoch), broker in led_by_odradek(cluster).items()]
    lines = [row, "", *story.verdict, "", *explain(judge(story.history), story.history, cluster, replicas), *led]
    (directory / "summary.txt").write_text("\n".join(lines) + "\n")


def _kinds(verdict: list[str]) -> str:
    names = [line.split()[0] for line in verdict]
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))


def _do_harm(cluster: ChaosCluster, story: Story) -> int:
    """Freeze the leader; kill the follower, the leader and the controller; move the replicas. Return the faults."""
    _place(cluster, story, (LEADER, FOLLOWER))
    story.let_it_work(150)
    cluster.brokers[LEADER].pause()
    time.sleep(2)  # shorter than its session
    cluster.brokers[LEADER].resume()
    story.let_it_work(100)
    for victim in (FOLLOWER, LEADER):
        cluster.brokers[victim].kill()
        await_expiry(cluster, victim)
        cluster.start(victim)
        story.await_isr(2)
        story.let_it_work(100)
    elect_preferred(cluster)
    assert cluster.controller() == CONTROLLER
    _place(cluster, story, (FOLLOWER, LEADER))
    cluster.brokers[CONTROLLER].kill()
    await_expiry(cluster, CONTROLLER)
    assert await_condition(lambda: cluster.controller() in (LEADER, FOLLOWER), 60)
    cluster.start(CONTROLLER)
    story.let_it_work(100)
    _place(cluster, story, (CONTROLLER, FOLLOWER))
    story.let_it_work(100)
    return 4


def _change_places(cluster: ChaosCluster, story: Story) -> int:
    """Return the number of faults, which is none."""
    for leaders in [(LEADER, FOLLOWER), (FOLLOWER, LEADER)] * CHANGES:
        _place(cluster, story, leaders)
        story.let_it_work(30)
    return 0


def _place(cluster: ChaosCluster, story: Story, replicas: tuple[int, ...]) -> None:
    reassign(cluster, dict.fromkeys(story.partitions, replicas))
    assert await_condition(lambda: reassigning(cluster) == 0, 90)
    story.await_isr(2)
    elect_preferred(cluster)
    assert await_condition(lambda: {cluster.leader(tp) for tp in story.partitions} == {replicas[0]}, 60)
