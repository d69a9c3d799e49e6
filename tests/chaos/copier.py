"""A program that copies topics exactly once: librdkafka's consumer and transactional producer, through confluent-kafka.

It is a member of a group, whose offsets it commits in its transactions, so that it needs a group coordinator and a
transaction coordinator. After an error it goes back to the committed offsets; after a fatal one it begins anew, with
its transactional id, which fences the producer before.
"""

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from chaos.clients import ClientThread

_TRANSACTION_RECORDS = 50
_POLL_S = 0.5
_CALL_S = 30.0


class ChaosCopier(ClientThread):
    def __init__(self, name: str, bootstrap: str, source: str, target: str) -> None:
        super().__init__(name)
        self.committed = 0
        """Number of transactions that are committed, as far as it was told."""
        self._common = {"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0}
        self._source = source
        self._target = target

    def _live(self) -> None:
        while not self._stopping.is_set():
            consumer = Consumer(
                {
                    **self._common,
                    "group.id": self.name,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "session.timeout.ms": 10_000,
                    "reconnect.backoff.max.ms": 500,
                }
            )
            try:
                self._copy(consumer)
            except KafkaException:
                pass  # it begins anew from what is committed
            finally:
                consumer.close()

    def _copy(self, consumer: Consumer) -> None:
        producer = Producer(
            {
                **self._common,
                "transactional.id": self.name,
                "transaction.timeout.ms": 15_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        producer.init_transactions(_CALL_S)
        consumer.subscribe([self._source])
        while not self._stopping.is_set():
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
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _CALL_S)
        producer.commit_transaction(_CALL_S)
        self.committed += 1


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
            message = consumer.poll(_CALL_S)
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
