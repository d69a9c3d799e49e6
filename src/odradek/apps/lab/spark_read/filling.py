"""Topic of the experiment: records of 100 bytes with keys, in four partitions."""

import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from odradek.apps.lab.bench.systems import START_LIMIT_S

PARTITIONS: Final = 4
VALUE_BYTES: Final = 100


def fill(bootstrap: str, topic: str, records: int) -> bool:
    """Fill the topic and return whether it was needed: a topic with so many records is left as it is."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        kept = count(admin, topic)
        if kept != records:
            raise SystemExit(f"{topic} has {kept:,} records, not {records:,}: give another --directory") from None
        return False
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 131072, "acks": "all"})
    value = b"x" * VALUE_BYTES
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, b"%09d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise SystemExit("not all records were acknowledged")
    return True


def count(admin: AdminClient, topic: str) -> int:
    """Count the records of a topic, as soon as its leaders are known."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    partitions = {TopicPartition(topic, number): latest for number in range(PARTITIONS)}
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return sum(future.result(30).offset for future in admin.list_offsets(partitions).values())
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
