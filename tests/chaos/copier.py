"""A program that copies a topic exactly once: librdkafka's consumer and transactional producer, by confluent-kafka.

    python -m chaos.copier NAME BOOTSTRAP SOURCE TARGET

It is a member of a group, whose offsets it commits in its transactions, so that it needs a group coordinator and a
transaction coordinator. After an error it begins anew from the committed offsets, with its transactional id, which
fences the producer before. It prints what it is about to do, and what is committed, and ends when its standard input
does.
"""

import os
import select
import sys
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

CALL_S: Final = 30.0
"""How long a call may take, as librdkafka is told."""
OFFSETS, COMMITTED = "offsets", "committed"
_TRANSACTION_RECORDS = 50
_POLL_S = 0.5


class _Copier:
    def __init__(self, name: str, bootstrap: str, source: str, target: str) -> None:
        self._name = name
        self._common = {"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0}
        self._source = source
        self._target = target

    def run(self) -> None:
        while not _is_over():
            consumer = Consumer(
                {
                    **self._common,
                    "group.id": self._name,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "session.timeout.ms": 10_000,
                    "reconnect.backoff.max.ms": 500,
                }
            )
            try:
                self._copy(consumer)
            except KafkaException as error:
                _tell(f"begins anew: {error}")
            finally:
                consumer.close()

    def _copy(self, consumer: Consumer) -> None:
        producer = Producer(
            {
                **self._common,
                "transactional.id": self._name,
                "transaction.timeout.ms": 15_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        producer.init_transactions(CALL_S)
        consumer.subscribe([self._source])
        while not _is_over():
            found = [each for each in consumer.consume(_TRANSACTION_RECORDS, _POLL_S) if each.error() is None]
            if found:
                self._transact(consumer, producer, found)

    def _transact(self, consumer: Consumer, producer: Producer, found: Sequence[Message]) -> None:
        producer.begin_transaction()
        ends: dict[int, int] = {}
        for message in found:
            partition, offset = message.partition() or 0, message.offset() or 0
            producer.produce(self._target, message.value(), partition=partition)
            ends[partition] = offset + 1
        positions = [Position(self._source, partition, end) for partition, end in ends.items()]
        _tell(OFFSETS)
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), CALL_S)
        _tell("commit")
        producer.commit_transaction(CALL_S)
        _tell(COMMITTED)


def _is_over() -> bool:
    return bool(select.select([0], [], [], 0)[0])


def _tell(line: str) -> None:
    """Write a line before the next step begins: a kill loses nothing of it."""
    os.write(1, f"{line}\n".encode())


def committed_values(bootstrap: str, topic: str, partitions: int) -> dict[int, list[str]]:
    """The values that a reader of committed records gets, to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": f"reader-of-{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: dict[int, list[str]] = {partition: [] for partition in range(partitions)}
    waiting = set(found)
    consumer.assign([Position(topic, partition, 0) for partition in found])
    try:
        while waiting:
            message = consumer.poll(CALL_S)
            if message is None:
                raise TimeoutError(f"partitions {sorted(waiting)} of {topic} are not read to their end")
            partition = message.partition() or 0
            if message.error() is not None:
                waiting.discard(partition)
            else:
                found[partition].append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


if __name__ == "__main__":
    _Copier(*sys.argv[1:]).run()
