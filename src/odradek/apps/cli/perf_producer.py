"""The producer that `odradek perf produce` measures with: prebuilt batches, pipelined, to all partitions in turn."""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

from odradek.apps.cli.perf_stats import Sample
from odradek.apps.cli.producer_frames import FrameSettings, ProducerFrames, records_per_batch
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import ErrorCode, FatalError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.pipelined_connection import PipelinedConnection
from odradek.client.record_sender import ACKS_ALL, NOT_IDEMPOTENT, new_producer_id, produce_error
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.framing import decode_response
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.primitives import ProtocolError

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """Load of a producer test: records, their size, the rate, the producer's settings."""

    topic: str
    records: int
    record_size: int
    batch_size: int = 16 * 1024
    compression: Codec = Codec.NONE
    acks: int = ACKS_ALL
    idempotent: bool = True
    records_per_second: int | None = None  # as fast as possible unless given
    in_flight: int = 5  # requests per connection; Apache Kafka keeps the last five sequences of a producer


@dataclass(frozen=True, slots=True)
class _InFlight:
    sent_at: float
    tp: TopicPartition
    records: int


class PerfProducer:
    def __init__(self, client: ClusterClient, load: ProduceLoad) -> None:
        self._client = client
        self._load = load
        self._batch_records = records_per_batch(load.batch_size, load.record_size)
        self._submitted = 0
        self._correlation_id = 0
        self._connections: dict[int, PipelinedConnection[_InFlight]] = {}
        self._versions: dict[int, int] = {}
        self._frames: dict[int, list[tuple[TopicPartition, ProducerFrames]]] = {}
        self.samples: list[Sample] = []
        self.acknowledged = 0

    def run(self, on_progress: Callable[[int], None]) -> float:
        """Write all records and return the seconds. The callback gets the number of records so far."""
        with selectors.DefaultSelector() as selector:
            try:
                self._prepare(selector)
                started = time.monotonic()
                self._loop(selector, started, on_progress)
                return time.monotonic() - started
            finally:
                for connection in self._connections.values():
                    connection.close()

    def _prepare(self, selector: selectors.BaseSelector) -> None:
        load, client = self._load, self._client
        producer = new_producer_id(client) if load.idempotent else NOT_IDEMPOTENT
        topic = client.topic(load.topic)
        asked = [TopicPartition(load.topic, state.partition) for state in topic.partitions]
        for leader, partitions in client.leaders(asked).items():
            connected = BrokerClient(*client.address(leader), timeout_ms=client.timeout_ms, security=client.security)
            self._connections[leader] = PipelinedConnection(connected)
            self._versions[leader] = connected.best_version(ProduceRequest.KEY)
            settings = FrameSettings(
                version=self._versions[leader],
                client_id=client.client_id,
                acks=load.acks,
                timeout_ms=client.request_timeout_ms,
                compression=load.compression,
                record_size=load.record_size,
                batch_records=self._batch_records,
            )
            self._frames[leader] = [(tp, ProducerFrames(tp, settings, producer)) for tp in partitions]
            selector.register(self._connections[leader].socket, selectors.EVENT_READ, leader)

    def _loop(self, selector: selectors.BaseSelector, started: float, on_progress: Callable[[int], None]) -> None:
        turns = {leader: cycle(frames) for leader, frames in self._frames.items()}
        last_answer_at = started
        while self.acknowledged < self._load.records:
            for leader, connection in self._connections.items():
                while (
                    connection.in_flight < self._load.in_flight and not connection.wants_to_write and self._due(started)
                ):
                    self._submit(connection, *next(turns[leader]))
                interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
                selector.modify(connection.socket, interest, leader)
            for key, events in selector.select(self._pause(started)):
                last_answer_at = time.monotonic()
                self._serve(key.data, events)
            if time.monotonic() - last_answer_at > self._client.timeout_ms / 1000 and self._is_waiting():
                raise ConnectionFailed(f"no answer for {self._client.timeout_ms} ms; is the broker stuck?")
            on_progress(self.acknowledged)

    def _is_waiting(self) -> bool:
        return any(connection.in_flight or connection.wants_to_write for connection in self._connections.values())

    def _due(self, started: float) -> bool:
        if self._submitted >= self._load.records:
            return False
        rate = self._load.records_per_second
        return rate is None or self._submitted <= (time.monotonic() - started) * rate

    def _pause(self, started: float) -> float:
        """Return the time to wait for the sockets: until an answer, or until the throughput limit allows more."""
        rate = self._load.records_per_second
        if rate is None or self._submitted >= self._load.records:
            return _POLL_SECONDS
        return min(_POLL_SECONDS, max(0.0, self._submitted / rate - (time.monotonic() - started)))

    def _submit(self, connection: PipelinedConnection[_InFlight], tp: TopicPartition, frames: ProducerFrames) -> None:
        count = min(self._batch_records, self._load.records - self._submitted)
        self._submitted += count
        self._correlation_id += 1
        now = time.monotonic()
        frame = frames.next(self._correlation_id, SYSTEM_CLOCK.now_ms(), count)
        if self._load.acks == 0:
            connection.submit_unanswered(frame)
            self.acknowledged += count
        else:
            connection.submit(frame, _InFlight(now, tp, count))

    def _serve(self, leader: int, events: int) -> None:
        connection = self._connections[leader]
        if events & selectors.EVENT_WRITE:
            connection.write()
        if not events & selectors.EVENT_READ:
            return
        now = time.monotonic()
        for sent, frame in connection.read():
            self._check(frame, self._versions[leader], sent.tp)
            self.samples.append(Sample((now - sent.sent_at) * 1000, sent.records))
            self.acknowledged += sent.records

    def _check(self, frame: memoryview, version: int, tp: TopicPartition) -> None:
        try:
            _, response = decode_response(ProduceResponse, frame, version)
        except ProtocolError as error:
            raise FatalError(f"an answer to Produce can't be read: {error}") from error
        for topic in response.responses:
            for result in topic.partition_responses:
                if result.error_code:
                    # No retry: with further requests in flight it would change the measurement.
                    raise produce_error(ErrorCode(result.error_code), tp, result.error_message)
