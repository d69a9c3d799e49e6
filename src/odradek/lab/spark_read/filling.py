"""The topic that everybody reads: records of 100 bytes with keys, in four partitions."""

from typing import Final

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

PARTITIONS: Final = 4
VALUE_BYTES: Final = 100


def fill(bootstrap: str, topic: str, records: int) -> bool:
    """Whether it had to: a topic with so many records is left as it is."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic in admin.list_topics(timeout=30).topics:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        partitions = {TopicPartition(topic, number): latest for number in range(PARTITIONS)}
        kept = sum(future.result(30).offset for future in admin.list_offsets(partitions).values())
        if kept != records:
            raise SystemExit(f"{topic} has {kept:,} records, not {records:,}: give another --directory")
        return False
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
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
