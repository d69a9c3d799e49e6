"""confluent-kafka (librdkafka): what it writes, it reads back; what it administers, changes."""

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from .conftest import COMPRESSIONS, TopicMaker, unused_name

HEADERS: list[tuple[str, str | bytes | None]] = [
    ("trace", b"\x00\xff"),
    ("empty", b""),
    ("null", None),
    ("trace", b"again"),
]


def consumer_of(bootstrap: str) -> Consumer:
    """librdkafka wants a group id even of a consumer that assigns its partitions itself."""
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})


def read(bootstrap: str, topic: str, count: int, offset: int = OFFSET_BEGINNING) -> list[Message]:
    consumer = consumer_of(bootstrap)
    consumer.assign([TopicPartition(topic, 0, offset)])
    messages: list[Message] = []
    end = time.monotonic() + 90
    while len(messages) < count and time.monotonic() < end:
        messages += [message for message in consumer.consume(count, timeout=1.0) if not message.error()]
    consumer.close()
    return messages


def write(bootstrap: str, topic: str, count: int, first_timestamp: int = 0, **settings: object) -> list[int | None]:
    """Writes numbered records; gives the offsets that were acknowledged."""
    offsets: list[int | None] = []
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            offsets.append(message.offset())

    producer = Producer(
        {"bootstrap.servers": bootstrap} | {key.replace("_", "."): value for key, value in settings.items()}
    )
    for number in range(count):
        timestamp = first_timestamp + number if first_timestamp else 0
        producer.produce(
            topic, f"value {number} {'x' * 200}", f"key {number}", on_delivery=delivered, timestamp=timestamp
        )
    assert producer.flush(30) == 0
    assert not failures
    return offsets


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_reads_back_in_order(bootstrap: str, new_topic: TopicMaker, compression: str) -> None:
    topic = new_topic()
    assert write(bootstrap, topic, 500, compression_type=compression) == list(range(500))
    messages = read(bootstrap, topic, 500)
    assert [message.key() for message in messages] == [f"key {number}".encode() for number in range(500)]
    assert [message.offset() for message in messages] == list(range(500))


def test_idempotent_producer_with_many_small_batches(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    settings = {"enable_idempotence": True, "batch_num_messages": 7, "linger_ms": 0}
    assert write(bootstrap, topic, 2000, **settings) == list(range(2000))
    assert [message.key() for message in read(bootstrap, topic, 2000)] == [
        f"key {number}".encode() for number in range(2000)
    ]


def test_keys_headers_timestamps_and_nulls_are_preserved(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value=b"v", key=b"\x00k", headers=HEADERS, timestamp=1_700_000_000_123)
    producer.produce(topic, value=None, key=b"tombstone", timestamp=1_600_000_000_000)
    producer.produce(topic, value=b"", key=None)
    assert producer.flush(30) == 0
    full, tombstone, bare = read(bootstrap, topic, 3)
    assert (full.key(), full.value(), full.headers()) == (b"\x00k", b"v", HEADERS)
    assert full.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_123)
    assert (tombstone.key(), tombstone.value(), tombstone.timestamp()[1]) == (b"tombstone", None, 1_600_000_000_000)
    assert (bare.key(), bare.value()) == (None, b"")


def test_seeks_by_offset_and_by_timestamp(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, first_timestamp = new_topic(), int(time.time() * 1000) - 60_000
    write(bootstrap, topic, 300, first_timestamp, compression_type="lz4")
    assert [message.offset() for message in read(bootstrap, topic, 10, offset=137)[:10]] == list(range(137, 147))
    consumer = consumer_of(bootstrap)
    for timestamp, offset in ((first_timestamp - 1, 0), (first_timestamp + 210, 210), (first_timestamp + 300, -1)):
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=10)
        assert found.offset == offset
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 300)
    consumer.close()


def test_record_of_the_greatest_size_passes_and_a_greater_one_is_refused(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic(max_message_bytes="2000000")
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 5_000_000})
    for size in (1_999_900, 2_000_000):
        producer.produce(topic, b"x" * size, on_delivery=lambda error, _message: outcomes.append(error))
        producer.flush(30)
    assert outcomes[0] is None
    assert outcomes[1] is not None
    assert outcomes[1].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert [len(message.value() or b"") for message in read(bootstrap, topic, 1)] == [1_999_900]


def test_unknown_topic_is_created_on_first_use_and_an_empty_one_is_empty(bootstrap: str, new_topic: TopicMaker) -> None:
    assert write(bootstrap, topic := unused_name(), 3) == [0, 1, 2]
    assert len(read(bootstrap, topic, 3)) == 3
    consumer = consumer_of(bootstrap)
    assert consumer.get_watermark_offsets(TopicPartition(new_topic(), 0), timeout=10) == (0, 0)
    consumer.close()


def test_admin_creates_grows_and_deletes_topics(admin: AdminClient) -> None:
    name = unused_name()
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    with pytest.raises(KafkaException) as exists:
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    assert exists.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(name, 5)])[name].result(30)
    assert sorted(admin.list_topics(name, timeout=10).topics[name].partitions) == [0, 1, 2, 3, 4]
    admin.delete_topics([name])[name].result(30)
    assert name not in admin.list_topics(timeout=10).topics


def test_admin_describes_and_alters_configs(admin: AdminClient, new_topic: TopicMaker) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, new_topic(retention_ms="12345"))
    entries = admin.describe_configs([resource])[resource].result(30)
    assert (entries["retention.ms"].value, entries["retention.ms"].is_default) == ("12345", False)
    assert (entries["cleanup.policy"].value, entries["cleanup.policy"].is_default) == ("delete", True)
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    altered = ConfigResource(ConfigResource.Type.TOPIC, resource.name, incremental_configs=[change])
    admin.incremental_alter_configs([altered])[altered].result(30)
    entries = admin.describe_configs([resource])[resource].result(30)
    assert [entries[key].value for key in ("cleanup.policy", "retention.ms")] == ["compact", "12345"]
    broker = ConfigResource(ConfigResource.Type.BROKER, "0")
    assert admin.describe_configs([broker])[broker].result(30)["log.segment.bytes"].value == "1073741824"


def test_admin_deletes_records_and_lists_offsets(bootstrap: str, admin: AdminClient, new_topic: TopicMaker) -> None:
    topic, stamp = new_topic(), int(time.time() * 1000) - 60_000
    write(bootstrap, topic, 100, stamp)
    partition = TopicPartition(topic, 0, 40)
    assert admin.delete_records([partition])[partition].result(30).low_watermark == 40
    specs = (
        OffsetSpec.earliest(),
        OffsetSpec.latest(),
        OffsetSpec.for_timestamp(stamp + 70),
        OffsetSpec.max_timestamp(),
    )
    found = [
        next(iter(admin.list_offsets({TopicPartition(topic, 0): spec}).values())).result(30).offset for spec in specs
    ]
    assert found == [40, 100, 70, 99]


def test_admin_describes_the_cluster(bootstrap: str, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(30)
    assert f"{cluster.nodes[0].host}:{cluster.nodes[0].port}" == bootstrap.split(",")[0]
    assert cluster.controller.id == cluster.nodes[0].id
    assert cluster.cluster_id


def test_records_at_fault_are_told_from_those_beside_them(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic(cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2000, "log_level": 0})
    errors: dict[bytes | None, int] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        errors[message.value()] = 0 if error is None else error.code()

    # librdkafka tells them apart when there are two at fault
    for key, value in ((b"k", b"good"), (None, b"keyless"), (None, b"keyless too")):
        producer.produce(topic, value, key, on_delivery=delivered)
    assert producer.flush(60) == 0
    assert errors == {
        b"good": KafkaError._INVALID_DIFFERENT_RECORD,
        b"keyless": KafkaError.INVALID_RECORD,
        b"keyless too": KafkaError.INVALID_RECORD,
    }
