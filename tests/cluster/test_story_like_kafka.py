"""One story, told by Kafka's own tools on Apache Kafka and on Odradek: it must read the same, word for word.

As Apache Kafka tells it, it is in story_like_kafka.txt: a soak run tells it again, and with ODRADEK_REGENERATE=1 writes
it. Every other run tells ours alone.

Create, kill broker 0, see the ISR shrink, bring it back, elect preferred leaders, reassign with a throttle, groups,
configs, deletion. What can't be the same (ids, ports, times, directories, the order in which replicas got in sync) is
written as a placeholder. The story waits for conditions, never for a time.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from kazoo.client import KazooClient

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.operations import reassigning
from kafka_tools import KafkaTools
from odradek.apps.lab.cluster import ChaosCluster
from odradek.model.topology import TopicPartition

pytestmark = pytest.mark.timeout(900)

Launch = Callable[[Path], Sequence[str]]
WAIT_S = 90.0
AS_WRITTEN = Path(__file__).with_name("story_like_kafka.txt")
ORDERS = [TopicPartition("orders", n) for n in range(3)]
MOVED = [TopicPartition("moved", n) for n in range(2)]
PLAN = {
    "version": 1,
    "partitions": [
        {"topic": "moved", "partition": 0, "replicas": [1, 2]},
        {"topic": "moved", "partition": 1, "replicas": [2, 1]},
    ],
}
# Sessions and lags of a machine that stalls for seconds: only what the story does is to be told.
SETTINGS = {
    "zookeeper.session.timeout.ms": "18000",
    "replica.lag.time.max.ms": "30000",
    "min.insync.replicas": "1",
}
PLACEHOLDERS = (
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r'"topic_id":"[^"]+"'), '"topic_id":"ID"'),
    (re.compile(r'"leader_epoch":\d+'), '"leader_epoch":E'),  # a new controller of Kafka's raises it twice
    (re.compile(r'"timestamp":"\d+"'), '"timestamp":"T"'),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"DIR"'),
    (re.compile(r'"size":\d+'), '"size":N'),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r'"port":\d+'), '"port":P'),
    (re.compile(r"ADDRESS +\(\d\)"), "ADDRESS (ID)"),  # the groups' topic is placed from any broker on
    (re.compile(r"(console-consumer|rdkafka)-[-0-9a-f]{36}"), "MEMBER"),
    (re.compile(r"(Proposed partition reassignment configuration)\n.*"), r"\1\nPROPOSAL"),  # drawn by the tool itself
    (re.compile(r"^\tat .*\n", re.MULTILINE), ""),
    (re.compile(r" +"), " "),
    (re.compile(r"-{2,}"), "--"),
)


class Teller:
    """Runs the tools on one cluster and writes down what they print."""

    def __init__(self, tools: KafkaTools, cluster: ChaosCluster, zookeeper: KazooClient, directory: Path) -> None:
        self.cluster = cluster
        self.lines: list[str] = []
        self._tools = tools
        self._zookeeper = zookeeper
        self._directory = directory

    def tool(self, name: str, *arguments: str, stdin: str = "", in_any_order: bool = False) -> None:
        printed = self._tools.run(name, "--bootstrap-server", self.cluster.bootstrap, *arguments, stdin=stdin)
        text = "\n".join(sorted(printed.text.splitlines())) if in_any_order else printed.text
        self._write(f"$ {name} {' '.join(arguments)}", text, f"[exit {printed.status}]")

    def znode(self, path: str) -> None:
        content, _ = self._zookeeper.get(path)
        self._write(f"zk> get {path}", content.decode())

    def expire(self, broker: int) -> None:
        """Delete what the session of a dead broker, which is the controller, holds: at once and together, as at its
        end, for which nobody has to wait."""
        ending = self._zookeeper.transaction()
        ending.delete(f"/brokers/ids/{broker}")
        ending.delete("/controller")
        assert ending.commit() == [True, True]

    def children(self, path: str) -> list[str]:
        found: list[str] = self._zookeeper.get_children(path)
        return found

    def brokers(self) -> None:
        self._write("zk> ls /brokers/ids", str(sorted(self.children("/brokers/ids"))))

    def file(self, name: str, content: str) -> str:
        path = self._directory / name
        path.write_text(content)
        return str(path)

    def await_condition(self, what: str, holds: Callable[[], bool]) -> None:
        assert await_condition(holds, WAIT_S), f"{what}: not within {WAIT_S:.0f} s"
        self.lines.append(f"({what})")

    def _write(self, *parts: str) -> None:
        text = "\n".join(part.rstrip("\n") for part in parts).replace(self.cluster.bootstrap, "BOOTSTRAP")
        text = text.replace(str(self._directory), "DIRECTORY")
        for pattern, placeholder in PLACEHOLDERS:
            text = pattern.sub(placeholder, text)
        text = re.sub(r"Isr: ([\d,]+)", lambda found: "Isr: " + ",".join(sorted(found[1].split(","))), text)
        self.lines += [line.rstrip() for line in text.splitlines()]

    def isr(self, tps: Sequence[TopicPartition], size: int) -> Callable[[], bool]:
        def holds() -> bool:
            views = self.cluster.all_views(tps).values()
            return all(len(v) == 1 and len(next(iter(v))[2]) == size and next(iter(v))[0] >= 0 for v in views)

        return holds


def create_topics(teller: Teller) -> None:
    teller.brokers()
    for path in ("/brokers/ids/0", "/controller", "/controller_epoch"):
        teller.znode(path)
    assignment = ("--replica-assignment", "0:1:2,1:2:0,2:0:1", "--config", "min.insync.replicas=2")
    teller.tool("kafka-topics", "--create", "--topic", "orders", *assignment)
    teller.await_condition("every broker knows of orders", teller.isr(ORDERS, 3))
    teller.tool("kafka-topics", "--list")
    teller.tool("kafka-topics", "--describe", "--topic", "orders")
    teller.tool("kafka-topics", "--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "3")
    teller.tool("kafka-topics", "--create", "--topic", "toomany", "--partitions", "1", "--replication-factor", "4")
    teller.tool("kafka-topics", "--create", "--topic", "twice", "--replica-assignment", "0:0")
    teller.tool("kafka-topics", "--create", "--topic", "wrong", "--config", "retention.ms=soon")
    teller.tool("kafka-topics", "--describe", "--topic", "absent")
    for path in ("", "/partitions/0/state"):
        teller.znode(f"/brokers/topics/orders{path}")
    teller.znode("/config/topics/orders")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    lines = "".join(f"k{n}:v{n}\n" for n in range(1, 31))
    teller.tool("kafka-console-producer", "--topic", "orders", *keyed, stdin=lines)
    teller.tool("kafka-get-offsets", "--topic", "orders")


def kill_and_bring_back(teller: Teller) -> None:
    teller.cluster.brokers[0].kill()
    teller.expire(0)
    teller.await_condition("the ISR of orders has shrunk", teller.isr(ORDERS, 2))
    teller.tool("kafka-topics", "--describe", "--topic", "orders")
    teller.tool("kafka-topics", "--describe", "--under-replicated-partitions", "--topic", "orders")
    teller.tool("kafka-topics", "--describe", "--at-min-isr-partitions")
    teller.tool("kafka-topics", "--describe", "--unavailable-partitions")
    teller.brokers()
    for path in ("/brokers/topics/orders/partitions/0/state", "/controller_epoch"):
        teller.znode(path)
    teller.cluster.start(0)
    teller.await_condition("broker 0 follows again", teller.isr(ORDERS, 3))
    teller.tool("kafka-topics", "--describe", "--topic", "orders")
    teller.tool("kafka-topics", "--describe", "--under-replicated-partitions")


def elect(teller: Teller) -> None:
    election = ("--election-type", "PREFERRED")
    teller.tool("kafka-leader-election", *election, "--all-topic-partitions")
    teller.await_condition("broker 0 leads", lambda: teller.cluster.leader(ORDERS[0]) == 0)
    teller.tool("kafka-topics", "--describe", "--topic", "orders")
    teller.tool("kafka-leader-election", *election, "--topic", "orders", "--partition", "0")
    teller.tool("kafka-leader-election", "--election-type", "UNCLEAN", "--topic", "orders", "--partition", "0")
    teller.tool("kafka-leader-election", *election, "--topic", "absent", "--partition", "0")
    teller.znode("/brokers/topics/orders/partitions/0/state")
    teller.tool("kafka-topics", "--create", "--topic", "auto", "--partitions", "3", "--replication-factor", "3")


def move(teller: Teller) -> None:
    teller.tool("kafka-topics", "--create", "--topic", "moved", "--replica-assignment", "0:1,0:1")
    teller.await_condition("every broker knows of moved", teller.isr(MOVED, 2))
    records = "".join(f"{n:01000d}\n" for n in range(4000))
    teller.tool("kafka-console-producer", "--topic", "moved", stdin=records)
    teller.tool("kafka-topics", "--describe", "--topic", "moved")
    topics = teller.file("topics.json", '{"version":1,"topics":[{"topic":"moved"}]}')
    generated = ("--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2")
    teller.tool("kafka-reassign-partitions", *generated)
    plan = teller.file("plan.json", json.dumps(PLAN))
    reassignment = ("--reassignment-json-file", plan)
    teller.tool("kafka-reassign-partitions", "--execute", *reassignment, "--throttle", "10000")
    assert await_condition(lambda: knows_replicas(teller.cluster, "moved", 3), WAIT_S)
    teller.tool("kafka-topics", "--describe", "--topic", "moved")
    teller.tool("kafka-reassign-partitions", "--list")
    teller.tool("kafka-reassign-partitions", "--verify", *reassignment, "--preserve-throttles")
    teller.tool("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "0")
    teller.tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "moved")
    teller.znode("/brokers/topics/moved")
    teller.znode("/config/topics/moved")
    teller.tool("kafka-reassign-partitions", "--execute", "--additional", *reassignment, "--throttle", "100000000")
    teller.await_condition("the replicas have moved", lambda: reassigning(teller.cluster) == 0)
    teller.await_condition("both are in sync", teller.isr(MOVED, 2))
    teller.tool("kafka-reassign-partitions", "--verify", *reassignment)
    teller.tool("kafka-reassign-partitions", "--list")
    teller.tool("kafka-topics", "--describe", "--topic", "moved")
    teller.tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "moved")
    teller.znode("/brokers/topics/moved")


def knows_replicas(cluster: ChaosCluster, topic: str, count: int) -> bool:
    """Return whether every broker has heard of so many replicas of each partition of the topic."""
    topics = [known for broker in cluster.brokers if (answer := broker.metadata()) for known in answer.topics]
    partitions = [each for known in topics if known.name == topic for each in known.partitions]
    return all(len(each.replica_nodes) == count for each in partitions)


def consume(teller: Teller) -> None:
    group = ("--group", "shop")
    limits = ("--from-beginning", "--max-messages", "30", "--timeout-ms", "60000")
    teller.tool("kafka-console-consumer", "--topic", "orders", *group, *limits, in_any_order=True)
    teller.tool("kafka-consumer-groups", "--list")
    teller.tool("kafka-consumer-groups", "--list", "--state", "--type")
    teller.tool("kafka-consumer-groups", "--list", "--state", "stable")
    for view in ((), ("--members", "--verbose"), ("--state",)):
        teller.tool("kafka-consumer-groups", "--describe", *group, *view)
    with_a_member(teller, group)
    orders = ("--reset-offsets", *group, "--topic", "orders")
    teller.tool("kafka-consumer-groups", *orders, "--shift-by", "-1", "--dry-run")
    teller.tool("kafka-consumer-groups", *orders, "--to-datetime", "2000-01-01T00:00:00.000", "--dry-run")
    teller.tool("kafka-consumer-groups", *orders, "--to-offset", "1000000", "--dry-run")
    teller.tool("kafka-consumer-groups", *orders, "--to-earliest", "--execute")
    teller.tool("kafka-consumer-groups", "--describe", *group, "--offsets")
    teller.tool("kafka-consumer-groups", "--delete-offsets", *group, "--topic", "orders:1")
    teller.tool("kafka-consumer-groups", "--delete-offsets", *group, "--topic", "absent")
    teller.tool("kafka-consumer-groups", "--describe", *group)
    teller.tool("kafka-consumer-groups", "--delete", *group)
    teller.tool("kafka-consumer-groups", "--delete", *group)
    teller.tool("kafka-consumer-groups", "--describe", *group)


def with_a_member(teller: Teller, group: tuple[str, str]) -> None:
    settings = {"bootstrap.servers": teller.cluster.bootstrap, "group.id": group[1], "log_level": 0}
    member = Consumer(settings)
    try:
        member.subscribe(["orders"])

        def has_all() -> bool:
            member.poll(0.2)
            return len(member.assignment()) == len(ORDERS)

        teller.await_condition("one live member has all partitions", has_all)
        for view in ((), ("--members", "--verbose"), ("--state",)):
            teller.tool("kafka-consumer-groups", "--describe", *group, *view)
        teller.tool(
            "kafka-consumer-groups", "--reset-offsets", *group, "--topic", "orders", "--to-earliest", "--execute"
        )
    finally:
        member.close()


def configure_and_delete(teller: Teller) -> None:
    orders = ("--entity-type", "topics", "--entity-name", "orders")
    teller.tool("kafka-configs", "--alter", *orders, "--add-config", "retention.ms=3600000,segment.bytes=1048576")
    teller.tool("kafka-configs", "--describe", *orders)
    teller.tool("kafka-configs", "--alter", *orders, "--delete-config", "segment.bytes")
    teller.tool("kafka-configs", "--alter", *orders, "--add-config", "no.such.key=1")
    teller.tool("kafka-topics", "--alter", "--topic", "orders", "--partitions", "5")
    teller.tool("kafka-topics", "--alter", "--topic", "orders", "--partitions", "2")
    grown = [TopicPartition("orders", n) for n in range(5)]
    teller.await_condition("five partitions have leaders", teller.isr(grown, 3))
    teller.tool("kafka-topics", "--describe", "--topic", "orders")
    teller.tool("kafka-log-dirs", "--describe", "--topic-list", "moved", "--broker-list", "1")
    for topic in ("orders", "moved", "auto"):
        teller.tool("kafka-topics", "--delete", "--topic", topic)
    teller.await_condition("the topics are gone", lambda: not teller.children("/admin/delete_topics"))
    teller.tool("kafka-topics", "--list", "--exclude-internal")


def tell(name: str, tools: KafkaTools, launch: Mapping[int, Launch], zookeeper: str, directory: Path) -> list[str]:
    directory.mkdir()
    with ChaosCluster(directory / name, zookeeper, launch=launch, first=(0,), settings=SETTINGS) as cluster:
        cluster.start(1, 2)
        client = KazooClient(cluster.zookeeper)
        client.start(30)
        try:
            teller = Teller(tools, cluster, client, directory)
            for chapter in (create_topics, kill_and_bring_back, elect, move, consume, configure_and_delete):
                teller.lines.append(f"### {chapter.__name__}")
                chapter(teller)
            return teller.lines
        finally:
            client.stop()
            client.close()


def differences(expected: list[str], told: list[str], by: str) -> str:
    return "\n".join(difflib.unified_diff(expected, told, "Apache Kafka, as written", by, lineterm="", n=4))


def test_the_story_reads_the_same(tmp_path: Path, zookeeper: str, kafka_tools: KafkaTools) -> None:
    ours = tell("odradek", kafka_tools, {}, zookeeper, tmp_path / "o")
    differing = differences(AS_WRITTEN.read_text().splitlines(), ours, "Odradek")
    assert not differing, differing


@pytest.mark.soak
def test_it_is_the_story_of_apache_kafka(
    tmp_path: Path, zookeeper: str, kafka_lib: Path, kafka_tools: KafkaTools
) -> None:
    kafka = dict.fromkeys(range(3), broker_command(kafka_lib))
    theirs = tell("kafka", kafka_tools, kafka, zookeeper, tmp_path / "k")
    if os.environ.get("ODRADEK_REGENERATE"):
        AS_WRITTEN.write_text("\n".join(theirs) + "\n")
    differing = differences(AS_WRITTEN.read_text().splitlines(), theirs, "Apache Kafka")
    assert not differing, differing
