"""Clients that write and read while a cluster is broken, and record what they were told.

librdkafka's, through confluent-kafka, because it is nobody of ours: an idempotent producer with acks=all that keeps on
trying, and a consumer that is assigned all partitions and reads them from the start.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from chaos.client_logs import DEBUG, debug_logger
from chaos.history import UNKNOWN_OFFSET, History, Polled, Sent
from odradek.model.topology import TopicPartition

# Errors after which a record is surely not in the log: it never left the client, or was refused before it was written.
_DEFINITE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._QUEUE_FULL})
_FLUSH_S_MAX = 120.0
_POLL_S = 0.2


def _ignore_error(error: KafkaError) -> None:
    """Without a callback of ours, a fatal error is raised in the middle of other callbacks; `produce` raises it too."""


class ClientThread:
    """Runs `_live`, which ends when it is told to stop. `fault` is why it ended by itself, if it did."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fault: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._live()
        except Exception as error:  # the client's C code raises a fatal error out of its callbacks, in several shapes
            self.fault = f"{type(error).__name__}: {error}"

    def _live(self) -> None:
        raise NotImplementedError


class ChaosProducer(ClientThread):
    """One record after the other, round robin over the partitions, `rate` per second at most."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        partitions: Sequence[TopicPartition],
        history: History,
        *,
        rate: float = 200.0,
        settings: dict[str, Any] | None = None,
        debug_log: Path | None = None,
    ) -> None:
        super().__init__(name)
        self._partitions = partitions
        self._history = history
        self._interval_s = 1 / rate
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "log_level": 0,
                "error_cb": _ignore_error,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2_000,
                **(settings or {}),
                **(DEBUG if debug_log is not None else {}),
            },
            **({} if debug_log is None else {"logger": debug_logger(debug_log)}),
        )

    def _live(self) -> None:
        """A client that meets a fatal error is of no more use: what it still holds is left undecided."""
        number = 0
        while not self._stopping.is_set():
            self._send(Sent(self.name, number, self._partitions[number % len(self._partitions)]))
            number += 1
            self._producer.poll(0)
            time.sleep(self._interval_s)
        self._producer.flush(_FLUSH_S_MAX)

    def _send(self, sent: Sent) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None:
                self._history.record_acknowledged(sent, UNKNOWN_OFFSET if offset is None else offset)
            else:
                self._history.record_failed(sent, str(error), definite=error.code() in _DEFINITE)

        self._history.record_sent(sent)
        tp = sent.partition
        try:
            self._producer.produce(tp.topic, sent.value, partition=tp.partition, on_delivery=delivered)
        except BufferError:
            self._history.record_failed(sent, "the client's queue is full", definite=True)
            self._producer.poll(1.0)


class ChaosConsumer(ClientThread):
    def __init__(
        self,
        name: str,
        bootstrap: str,
        partitions: Sequence[TopicPartition],
        history: History,
        *,
        settings: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name)
        self._partitions = partitions
        self._history = history
        self.positions = dict.fromkeys(partitions, 0)
        """The offset that each partition is to be read from next."""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "log_level": 0,
                "error_cb": _ignore_error,
                "group.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2_000,
                "fetch.wait.max.ms": 100,
                **(settings or {}),
            }
        )

    def _live(self) -> None:
        self._consumer.assign([Position(tp.topic, tp.partition, 0) for tp in self._partitions])
        try:
            while not self._stopping.is_set():
                for message in self._consumer.consume(500, _POLL_S):
                    self._take(message)
        finally:
            self._consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise KafkaException(error)
            return
        tp = TopicPartition(message.topic() or "", message.partition() or 0)
        offset = message.offset() or 0
        value = (message.value() or b"").decode().replace(".", "-", 1)  # Kafka's VerifiableProducer writes NAME.NUMBER
        self._history.record_polled(Polled(self.name, tp, offset, value))
        self.positions[tp] = offset + 1


def drain(consumer: ChaosConsumer, history: History, limit_s: float) -> bool:
    """Wait until the consumer is past every acknowledged offset."""
    return await_condition(lambda: _is_past(consumer, history), limit_s)


def _is_past(consumer: ChaosConsumer, history: History) -> bool:
    ends: dict[TopicPartition, int] = {}
    for ack in list(history.acknowledged):
        ends[ack.sent.partition] = max(ends.get(ack.sent.partition, 0), ack.offset + 1)
    return consumer.fault is not None or all(consumer.positions[tp] >= end for tp, end in ends.items())


def await_condition(holds: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
