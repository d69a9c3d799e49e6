"""Everything that is in the partitions, read once from beginning to end by a librdkafka consumer."""

import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as Position

from chaos.history import History, Polled
from odradek.model.topology import TopicPartition

READ_S_MAX: Final = 180.0
_AT_ONCE: Final = 10_000


def read_everything(bootstrap: str, partitions: Sequence[TopicPartition], history: History) -> list[str]:
    """Add every record to the history. Answers which partitions could not be read to their end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "log_level": 0,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "error_cb": lambda error: None,
        }
    )
    left = {(tp.topic, tp.partition): tp for tp in partitions}
    names = dict(left)
    deadline = time.monotonic() + READ_S_MAX
    try:
        consumer.assign([Position(tp.topic, tp.partition, OFFSET_BEGINNING) for tp in partitions])
        while left and time.monotonic() < deadline:
            for message in consumer.consume(_AT_ONCE, 1.0):
                place = message.topic() or "", message.partition() or 0
                error = message.error()
                if error is None:
                    # Kafka's VerifiableProducer writes PREFIX.NUMBER
                    value = (message.value() or b"").decode().replace(".", "-", 1)
                    history.polled.append(Polled("reader", names[place], message.offset() or 0, value))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.pop(place, None)
    finally:
        consumer.close()
    return [f"UNREAD {tp}: not read to its end within {READ_S_MAX:.0f} s" for tp in left.values()]
