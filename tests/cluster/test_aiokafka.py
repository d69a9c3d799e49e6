"""aiokafka: what it writes, it reads back; what it administers, changes."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.structs import ConsumerRecord

from waiting import PATIENCE_S

from .conftest import COMPRESSIONS, TopicMaker, unused_name

LIMIT_S = 60


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), LIMIT_S))


@asynccontextmanager
async def assigned(bootstrap: str, topic: str) -> AsyncIterator[tuple[AIOKafkaConsumer, TopicPartition]]:
    partition = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        yield consumer, partition


async def read(consumer: AIOKafkaConsumer, count: int) -> list[ConsumerRecord]:
    return [await asyncio.wait_for(consumer.getone(), PATIENCE_S) for _ in range(count)]


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_reads_back_in_order(
    bootstrap: str, new_topic: TopicMaker, compression: str, idempotent: bool
) -> None:
    topic = new_topic()
    kind = None if compression == "none" else compression

    async def story() -> None:
        settings = {"compression_type": kind, "enable_idempotence": idempotent}
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
            sent = [await producer.send(topic, f"value {number} {'x' * 200}".encode()) for number in range(300)]
            assert [(await future).offset for future in sent] == list(range(300))
        async with assigned(bootstrap, topic) as (consumer, _):
            values = [record.value.split()[1] for record in await read(consumer, 300)]
        assert values == [b"%d" % number for number in range(300)]

    run(story)


def test_keys_headers_timestamps_and_nulls_are_preserved(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    headers = [("trace", b"\x00\xff"), ("trace", b"")]

    async def story() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"v", b"k", headers=headers, timestamp_ms=1_700_000_000_123)
            await producer.send_and_wait(topic, None, b"tombstone")
        async with assigned(bootstrap, topic) as (consumer, _):
            full, tombstone = await read(consumer, 2)
        assert (full.key, full.value, full.timestamp, list(full.headers)) == (b"k", b"v", 1_700_000_000_123, headers)
        assert (tombstone.key, tombstone.value) == (b"tombstone", None)

    run(story)


def test_seeks_by_offset_and_by_timestamp(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, stamp = new_topic(), int(time.time() * 1000) - 60_000

    async def story() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            for number in range(100):
                await producer.send(topic, b"%d" % number, timestamp_ms=stamp + number)
        async with assigned(bootstrap, topic) as (consumer, partition):
            consumer.seek(partition, 61)
            assert (await consumer.getone()).offset == 61
            await consumer.seek_to_beginning(partition)
            assert (await consumer.getone()).offset == 0
            assert (await consumer.offsets_for_times({partition: stamp + 42}))[partition].offset == 42
            assert (await consumer.offsets_for_times({partition: stamp + 100}))[partition] is None
            assert await consumer.end_offsets([partition]) == {partition: 100}

    run(story)


def test_record_beyond_the_greatest_size_is_refused(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()

    async def story() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=5_000_000) as producer:
            assert (await producer.send_and_wait(topic, b"x" * 1_000_000)).offset == 0
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, b"x" * 1_100_000)

    run(story)


def test_unknown_topic_is_created_and_a_waiting_consumer_is_woken(bootstrap: str) -> None:
    topic = unused_name()

    async def story() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"first")
            async with assigned(bootstrap, topic) as (consumer, _):
                assert (await consumer.getone()).value == b"first"
                waiting = asyncio.create_task(consumer.getone())
                await asyncio.sleep(0.2)
                assert not waiting.done()
                await producer.send_and_wait(topic, b"second")
                assert (await asyncio.wait_for(waiting, PATIENCE_S)).value == b"second"

    run(story)


def test_admin_creates_grows_changes_and_deletes_topics(bootstrap: str) -> None:
    name = unused_name()

    async def story() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "12345"})])
        await admin.create_partitions({name: NewPartitions(3)})
        (described,) = await admin.describe_topics([name])
        assert sorted(partition["partition"] for partition in described["partitions"]) == [0, 1, 2]
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"segment.bytes": "1000000"})])
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        # AlterConfigs replaces the whole configuration of the topic.
        assert (values["segment.bytes"], values["retention.ms"]) == ("1000000", "604800000")
        await admin.delete_topics([name])
        assert name not in await admin.list_topics()
        await admin.close()

    run(story)


def test_admin_deletes_records_and_describes_the_cluster(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()

    async def story() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(20):
                await producer.send_and_wait(topic, b"%d" % number)
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        deleted = await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=5)})
        assert deleted == {TopicPartition(topic, 0): 5}
        assert len((await admin.describe_cluster())["brokers"]) == 1
        await admin.close()
        async with assigned(bootstrap, topic) as (consumer, _):
            assert (await consumer.getone()).offset == 5

    run(story)
