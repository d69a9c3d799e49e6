"""Consumer groups by clients of every kind: they share partitions, come and go, and find their offsets again."""

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription  # type: ignore[attr-defined]
from kafka import KafkaConsumer

from odradek.local.zookeeper_server import port_is_taken
from waiting import PATIENCE_S

from .conftest import JavaTool, TopicMaker, unused_name

PARTITIONS = 6
RECORDS = 120
ASK_AGAIN = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE)


class ClusterWithProcesses(Protocol):
    def kill(self, broker_id: int) -> None: ...

    def start(self, broker_id: int) -> None: ...


@pytest.fixture(scope="module")
def topic(bootstrap: str, new_topic: TopicMaker) -> str:
    """A topic with records, as many in each partition."""
    name = new_topic(partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    producer.flush()
    return name


NewConsumer = Callable[..., Consumer]


@pytest.fixture
def new_consumer(bootstrap: str) -> Iterator[NewConsumer]:
    """Makes consumers that notice a rebalance soon; closes what the test leaves open."""
    made: list[Consumer] = []

    def make(group: str, topic: str | None = None, **settings: object) -> Consumer:
        config: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 300,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        consumer = Consumer(config)
        made.append(consumer)
        if topic is not None:
            consumer.subscribe([topic])
        return consumer

    yield make
    for consumer in made:
        consumer.close()


def owned(consumer: Consumer) -> list[int]:
    return sorted(each.partition for each in consumer.assignment())


def poll_until(consumers: Sequence[Consumer], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, [owned(consumer) for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.02)


def shared_fairly(consumers: Sequence[Consumer]) -> bool:
    """Every partition has one owner, and every member has as many."""
    parts = [owned(consumer) for consumer in consumers]
    everything = sorted(partition for part in parts for partition in part)
    return everything == list(range(PARTITIONS)) and len({len(part) for part in parts}) == 1


def test_members_come_and_go_eagerly_and_cooperatively(topic: str, new_consumer: NewConsumer) -> None:
    groups = {
        strategy: [new_consumer(group, topic, partition_assignment_strategy=strategy) for _ in range(3)]
        for strategy in ("range", "cooperative-sticky")
        for group in (unused_name(),)
    }
    everybody = [consumer for consumers in groups.values() for consumer in consumers]
    poll_until(everybody, lambda: all(map(shared_fairly, groups.values())))
    for consumers in groups.values():
        consumers.pop(0).close()
    remaining = [consumer for consumers in groups.values() for consumer in consumers]
    poll_until(remaining, lambda: all(map(shared_fairly, groups.values())))


def test_a_static_member_comes_back_to_its_partitions(
    topic: str, new_consumer: NewConsumer, admin: AdminClient
) -> None:
    group = unused_name()
    first, other = (new_consumer(group, topic, group_instance_id=name) for name in ("one", "two"))
    poll_until([first, other], lambda: shared_fairly([first, other]))
    before, others = owned(first), owned(other)
    first.close()
    again = new_consumer(group, topic, group_instance_id="one")
    poll_until([again, other], lambda: owned(again) == before)
    assert owned(other) == others
    description = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert {member.group_instance_id for member in description.members} == {"one", "two"}
    fenced = new_consumer(group, topic, group_instance_id="two")
    poll_until([again, fenced], lambda: owned(fenced) == others)
    with pytest.raises(Exception, match=r"(?i)fenced"):
        other.commit(offsets=[TopicPartition(topic, others[0], 1)], asynchronous=False)


def describe(bootstrap: str, group: str) -> ConsumerGroupDescription:
    """By a client of its own: one that has seen its broker go may wait long before it looks for it again.

    A broker that is back is known to be the coordinator a little before it knows so itself.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() not in ASK_AGAIN or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def commits(consumer: Consumer, position: TopicPartition) -> bool:
    """False while the client hasn't found its coordinator again."""
    try:
        consumer.commit(offsets=[position], asynchronous=False)
    except KafkaException as error:
        if error.args[0].retriable() or error.args[0].code() == KafkaError._WAIT_COORD:
            return False
        raise
    return True


def test_a_crash_of_the_broker_loses_neither_offsets_nor_members(
    bootstrap: str, topic: str, new_consumer: NewConsumer, odradek_cluster: ClusterWithProcesses
) -> None:
    group, simple = unused_name(), unused_name()
    member = new_consumer(group, topic)
    poll_until([member], lambda: owned(member) == list(range(PARTITIONS)))
    positions = [TopicPartition(topic, partition, 10 + partition, f"at {partition}") for partition in range(PARTITIONS)]
    member.commit(offsets=positions, asynchronous=False)
    new_consumer(simple).commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    (before,) = describe(bootstrap, group).members
    odradek_cluster.kill(0)
    while port_is_taken(int(bootstrap.rpartition(":")[2])):
        time.sleep(0.01)  # the kernel closes a dead process's sockets after it takes it off the list
    odradek_cluster.start(0)
    description = describe(bootstrap, group)
    assert description.state.name == "STABLE"
    (after,) = description.members
    assert after.member_id == before.member_id
    assert after.assignment.topic_partitions == before.assignment.topic_partitions
    asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    found = new_consumer(group).committed(asked, timeout=PATIENCE_S)
    assert [(each.offset, each.metadata) for each in found] == [(each.offset, each.metadata) for each in positions]
    assert [each.offset for each in new_consumer(simple).committed(asked[:1], timeout=PATIENCE_S)] == [7]
    poll_until([member], lambda: commits(member, TopicPartition(topic, 0, 20)))
    assert describe(bootstrap, group).members[0].member_id == before.member_id


async def read_with_aiokafka(bootstrap: str, topic: str, group: str) -> int:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    await consumer.start()
    try:
        count = 0
        while count < RECORDS:
            count += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
        await consumer.commit()
        return count
    finally:
        await consumer.stop()


def read_with_kafka_python(bootstrap: str, topic: str, group: str) -> int:
    """Polls don't time out: kafka-python 3.0.12 never applies an assignment that arrives as one does."""
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    count = 0
    while count < RECORDS:
        count += sum(map(len, consumer.poll(1000 * PATIENCE_S).values()))
    consumer.commit()
    consumer.close()
    return count


def test_other_clients_read_and_commit(bootstrap: str, topic: str, new_consumer: NewConsumer) -> None:
    groups = [unused_name(), unused_name()]

    async def read_both() -> tuple[int, int]:
        async with asyncio.timeout(PATIENCE_S):
            first, second = await asyncio.gather(
                read_with_aiokafka(bootstrap, topic, groups[0]),
                asyncio.to_thread(read_with_kafka_python, bootstrap, topic, groups[1]),
            )
            return first, second

    assert asyncio.run(read_both()) == (RECORDS, RECORDS)
    for group in groups:
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        committed = new_consumer(group).committed(partitions, timeout=PATIENCE_S)
        assert [each.offset for each in committed] == [RECORDS // PARTITIONS] * PARTITIONS


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is absent (apt-get install kcat)")
def test_kcat_as_a_member(bootstrap: str, topic: str) -> None:
    command = ["kcat", "-b", bootstrap, "-G", unused_name(), "-o", "beginning", "-q", "-e", topic]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout.split()
    assert sorted(map(int, lines)) == list(range(RECORDS))


def test_kafkas_own_tools(bootstrap: str, topic: str, java_tool: JavaTool) -> None:
    group = unused_name()

    def groups(*arguments: object) -> str:
        return java_tool("kafka-consumer-groups", "--bootstrap-server", bootstrap, *arguments)

    reads = ["--group", group, "--from-beginning", "--max-messages", RECORDS, "--timeout-ms", 1000 * PATIENCE_S]
    read = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic, *reads
    )
    assert sorted(map(int, read.split())) == list(range(RECORDS))
    assert re.search(rf"^{group} +Classic +Empty *$", groups("--list", "--type", "--state", "empty"), re.MULTILINE)
    each = RECORDS // PARTITIONS
    described = groups("--describe", "--group", group)
    assert len(re.findall(rf"^{group} +{topic} +\d +{each} +{each} +0 +- +- +-", described, re.MULTILINE)) == PARTITIONS
    reset = groups("--group", group, "--reset-offsets", "--to-earliest", "--topic", f"{topic}:0,1", "--execute")
    assert len(re.findall(rf"{topic} +[01] +0 ", reset)) == 2
    assert "successful" in groups("--delete", "--group", group).lower()


def test_kafkas_own_tools_see_a_group_that_lives(
    bootstrap: str, topic: str, java_tool: JavaTool, new_consumer: NewConsumer
) -> None:
    group = unused_name()
    member = new_consumer(group, topic, client_id="reader", partition_assignment_strategy="range")
    poll_until([member], lambda: owned(member) == list(range(PARTITIONS)))
    member.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)

    def groups(*arguments: object) -> str:
        return java_tool("kafka-consumer-groups", "--bootstrap-server", bootstrap, "--group", group, *arguments)

    members = groups("--describe", "--members", "--verbose")
    assert re.search(rf"^{group} +reader-\S+ +/127\.0\.0\.1 +reader +6 +\S*\(0,1,2,3,4,5\)", members, re.MULTILINE)
    assert re.search(
        rf"^{group} +{bootstrap} +\(0\) +range +Stable +1 *$", groups("--describe", "--state"), re.MULTILINE
    )
    assert "The group is not empty." in groups("--delete")
    refused = groups("--delete-offsets", "--topic", topic)
    assert refused.count("while the consumer group is actively subscribed to it") == PARTITIONS
    assert member.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)[0].offset == 3


def test_kafkas_own_formatter_reads_what_is_kept(
    bootstrap: str, topic: str, java_tool: JavaTool, new_consumer: NewConsumer
) -> None:
    group, kept_in = "formatted", 1  # which of 5 partitions, by the hash of Java's strings
    consumer = new_consumer(group)
    consumer.commit(offsets=[TopicPartition(topic, 3, 17)], asynchronous=False)
    low, high = consumer.get_watermark_offsets(TopicPartition("__consumer_offsets", kept_in), timeout=PATIENCE_S)
    shown = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", "--partition", kept_in),
        *("--offset", "earliest", "--max-messages", high - low, "--timeout-ms", 1000 * PATIENCE_S),
        *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
    )
    (line,) = [line for line in shown.splitlines() if f'"group":"{group}"' in line]
    assert f'"topic":"{topic}","partition":3' in line
    assert '"offset":17,"leaderEpoch":-1,"metadata":""' in line
