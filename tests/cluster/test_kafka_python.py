"""kafka-python, which is idempotent by default: what it writes, it reads back; what it administers, changes."""

import time
from collections.abc import Iterator

import kafka.codec
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import MessageSizeTooLargeError, TopicAlreadyExistsError

from .conftest import COMPRESSIONS, TopicMaker, unused_name


@pytest.fixture(scope="module")
def kafka_admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def read(consumer: KafkaConsumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    end = time.monotonic() + 20
    while len(records) < count and time.monotonic() < end:
        for batch in consumer.poll(timeout_ms=500).values():
            records += batch
    return records


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    yield client
    client.close()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_reads_back_in_order(
    bootstrap: str, new_topic: TopicMaker, consumer: KafkaConsumer, compression: str
) -> None:
    if compression != "none" and not getattr(kafka.codec, f"has_{compression}")():
        pytest.skip(f"kafka-python has no {compression} library (kafka-python[{compression}])")
    topic = new_topic()
    kind = None if compression == "none" else compression
    with KafkaProducer(bootstrap_servers=bootstrap, compression_type=kind) as producer:
        sent = [producer.send(topic, f"value {number} {'x' * 200}".encode()) for number in range(300)]
        assert [future.get(timeout=20).offset for future in sent] == list(range(300))
    consumer.assign([TopicPartition(topic, 0)])
    assert [record.value.split()[1] for record in read(consumer, 300)] == [b"%d" % number for number in range(300)]


def test_keys_headers_timestamps_and_nulls_are_preserved(
    bootstrap: str, new_topic: TopicMaker, consumer: KafkaConsumer
) -> None:
    topic = new_topic()
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(
            topic, b"v", b"k", headers=[("trace", b"\x00\xff"), ("trace", b"")], timestamp_ms=1_700_000_000_123
        )
        producer.send(topic, None, b"tombstone")
    consumer.assign([TopicPartition(topic, 0)])
    full, tombstone = read(consumer, 2)
    assert (full.key, full.value, full.timestamp) == (b"k", b"v", 1_700_000_000_123)
    assert list(full.headers) == [("trace", b"\x00\xff"), ("trace", b"")]
    assert (tombstone.key, tombstone.value) == (b"tombstone", None)


def test_seeks_by_offset_and_by_timestamp(bootstrap: str, new_topic: TopicMaker, consumer: KafkaConsumer) -> None:
    partition, stamp = TopicPartition(new_topic(), 0), int(time.time() * 1000) - 60_000
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            producer.send(partition.topic, b"%d" % number, timestamp_ms=stamp + number)
    consumer.assign([partition])
    consumer.seek(partition, 61)
    assert read(consumer, 39)[0].offset == 61
    consumer.seek_to_beginning(partition)
    assert read(consumer, 100)[0].offset == 0
    assert consumer.offsets_for_times({partition: stamp + 42})[partition].offset == 42
    assert consumer.offsets_for_times({partition: stamp + 100})[partition] is None
    assert (consumer.beginning_offsets([partition]), consumer.end_offsets([partition])) == (
        {partition: 0},
        {partition: 100},
    )


def test_record_beyond_the_greatest_size_is_refused(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    with KafkaProducer(bootstrap_servers=bootstrap, max_request_size=5_000_000) as producer:
        assert producer.send(topic, b"x" * 1_000_000).get(timeout=20).offset == 0
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, b"x" * 1_100_000).get(timeout=20)


def test_unknown_topic_is_created_on_first_use(bootstrap: str, consumer: KafkaConsumer) -> None:
    topic = unused_name()
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(topic, b"first").get(timeout=20).offset == 0
    consumer.assign([TopicPartition(topic, 0)])
    assert [record.value for record in read(consumer, 1)] == [b"first"]


def test_admin_creates_grows_and_deletes_topics(kafka_admin: KafkaAdminClient) -> None:
    name = unused_name()
    kafka_admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
    with pytest.raises(TopicAlreadyExistsError):
        kafka_admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
    kafka_admin.create_partitions({name: 4})
    (described,) = kafka_admin.describe_topics([name])
    assert sorted(partition["partition_index"] for partition in described["partitions"]) == [0, 1, 2, 3]
    kafka_admin.delete_topics([name])
    assert name not in kafka_admin.list_topics()


@pytest.mark.parametrize("incremental", [True, False])
def test_admin_describes_and_alters_configs(
    kafka_admin: KafkaAdminClient, new_topic: TopicMaker, incremental: bool
) -> None:
    topic = new_topic(retention_ms="12345")
    change = ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.bytes": "1000000"})
    kafka_admin.alter_configs([change], incremental=incremental)
    configs = kafka_admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
    entries = configs["topic"][topic]
    values = [entries[key]["value"] for key in ("retention.ms", "segment.bytes", "cleanup.policy")]
    assert values == ["12345", "1000000", "delete"]


def test_admin_changes_a_broker_while_it_runs(kafka_admin: KafkaAdminClient) -> None:
    key = "log.flush.interval.messages"

    def told() -> str:
        resource = ConfigResource(ConfigResourceType.BROKER, "0")
        return str(kafka_admin.describe_configs([resource], config_filter="all")["broker"]["0"][key]["value"])

    default = told()
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "0", {key: "77"})])
    assert told() == "77"
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "0", {key: ("DELETE", None)})])
    assert told() == default


def test_admin_deletes_records_and_lists_offsets(
    bootstrap: str, kafka_admin: KafkaAdminClient, new_topic: TopicMaker
) -> None:
    partition = TopicPartition(new_topic(), 0)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(20):
            producer.send(partition.topic, b"%d" % number)
    kafka_admin.delete_records({partition: 5})
    for spec, offset in ((OffsetSpec.EARLIEST, 5), (OffsetSpec.LATEST, 20)):
        assert kafka_admin.list_partition_offsets({partition: spec})[partition].offset == offset


def test_admin_describes_the_cluster_and_its_log_directories(
    kafka_admin: KafkaAdminClient, new_topic: TopicMaker
) -> None:
    cluster, topic = kafka_admin.describe_cluster(), new_topic()
    assert cluster["cluster_id"]
    assert len(cluster["brokers"]) == 1
    (broker,) = kafka_admin.describe_log_dirs()
    assert topic in [each["name"] for directory in broker["log_dirs"] for each in directory["topics"]]
