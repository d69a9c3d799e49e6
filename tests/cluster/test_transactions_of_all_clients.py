"""The same story with every client that has transactions: one committed, one aborted, one with an offset of a group.

librdkafka has more stories in `test_transactions`; Java's clients have theirs in `test_committed_reads` and
`test_transaction_version_2`.
"""

import asyncio
import json
import subprocess
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from foreign_clients import go_transactions_program, kafkajs_program
from obtaining import skipped_if_unobtainable
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import committed_offsets
from odradek.model.topology import TopicPartition as Partition

from .conftest import TopicMaker, unused_name

LIMIT_S = 60
COMMITTED = ["one", "two", "three"]
POSITION = 7


def position(bootstrap: str, group: str, topic: str) -> int:
    with ClusterClient(bootstrap) as cluster:
        return committed_offsets(cluster, group, stable=True)[Partition(topic, 0)]


def test_kafka_python(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, group = new_topic(), unused_name()
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=unused_name()) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"one")
        producer.send(topic, b"two")
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"aborted").get(timeout=LIMIT_S)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"three")
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(POSITION, "", -1)}
        producer.send_offsets_to_transaction(offsets, group)
        producer.commit_transaction()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    consumer.assign([TopicPartition(topic, 0)])
    assert [next(consumer).value.decode() for _ in COMMITTED] == COMMITTED
    consumer.close()
    assert position(bootstrap, group, topic) == POSITION


def test_aiokafka(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, group = new_topic(), unused_name()

    async def story() -> list[str]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=unused_name()) as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"one")
                await producer.send_and_wait(topic, b"two")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"three")
                await producer.send_offsets_to_transaction({AioPartition(topic, 0): POSITION}, group)
        settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings) as consumer:
            consumer.assign([AioPartition(topic, 0)])
            return [(await consumer.getone()).value.decode() for _ in COMMITTED]

    assert asyncio.run(asyncio.wait_for(story(), LIMIT_S)) == COMMITTED
    assert position(bootstrap, group, topic) == POSITION


def told_by(program: Callable[[], list[str]], bootstrap: str, topic: str, group: str) -> list[str]:
    with skipped_if_unobtainable():
        command = program()
    words = [*command, bootstrap, topic, unused_name(), group, str(POSITION)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, result.stderr
    read: list[str] = json.loads(result.stdout)
    return read


@pytest.mark.timeout(300)
def test_kafkajs(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, group = new_topic(), unused_name()
    assert told_by(lambda: kafkajs_program("transactions.js"), bootstrap, topic, group) == COMMITTED
    assert position(bootstrap, group, topic) == POSITION


@pytest.mark.soak  # compiling the clients takes a minute
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", ["franz-go", "sarama"])
def test_clients_in_go(bootstrap: str, new_topic: TopicMaker, client: str) -> None:
    topic, group = new_topic(), unused_name()
    assert told_by(lambda: [*go_transactions_program(), client], bootstrap, topic, group) == COMMITTED
    assert position(bootstrap, group, topic) == POSITION
