"""A leader on loopback for tests of followers: real logs behind it, and whatever misbehaviour a test asks for."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid5

from odradek.base.errors import ErrorCode
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import Endpoint, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import decode_request, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.offset_for_leader_epoch import EpochEndOffset as EpochEnd
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.schema import Request, Response

_POLL_S = 0.005
NAMESPACE = UUID(int=1)


def topic_id(topic: str) -> UUID:
    return uuid5(NAMESPACE, topic)


def make_log(directory: Path, tp: TopicPartition, *epochs: tuple[int, int]) -> PartitionLog:
    """A log with so many records of each (leader epoch, count), two to a batch."""
    log = PartitionLog.open(directory / str(tp), tp, LogConfig(segment_bytes=2000))
    for epoch, count in epochs:
        log.begin_epoch(epoch)
        write(log, epoch, count)
    return log


def write(log: PartitionLog, epoch: int, count: int) -> None:
    for number in range(0, count, 2):
        values = [f"{epoch}/{log.log_end_offset + n}".encode() for n in range(min(2, count - number))]
        batch = bytearray(build_batch([Record(n, 1, None, value) for n, value in enumerate(values)]))
        log.append_as_leader(memoryview(batch), leader_epoch=epoch, rules=BatchRules())


def bytes_of(log: PartitionLog) -> bytes:
    return b"".join(segment.path.read_bytes()[: segment.size] for segment in log.segments)


class ScriptedLeader:
    """Serves the logs without sessions. `refuse` and `spoil` are where tests interfere."""

    def __init__(self, *, epoch: int, fetch_version: int = 17) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.epoch = epoch
        self.asked: list[Request] = []
        self.refuse: dict[TopicPartition, ErrorCode] = {}
        self.spoil: set[TopicPartition] = set()
        self.connections = 0
        self._fetch_version = fetch_version
        self._is_stopping = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", self._listener.getsockname()[1])

    def fetches(self) -> list[FetchRequest]:
        return [request for request in self.asked if isinstance(request, FetchRequest)]

    def drop_connections(self) -> None:
        for connection in self._sockets[1:]:
            _shut(connection)

    def stop(self) -> None:
        self._is_stopping = True
        for connection in self._sockets:
            _shut(connection)
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        while not self._is_stopping:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(connection)
            thread = threading.Thread(target=self._serve, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                header, request = decode_request(memoryview(stream.read(int.from_bytes(size, "big"))))
                self.asked.append(request)
                chunks = encode_response(header.correlation_id, self._answer(request), header.api_version)
                connection.sendall(b"".join(c if isinstance(c, bytes) else c.read() for c in chunks))

    def _answer(self, request: Request) -> Response:
        if isinstance(request, FetchRequest):
            return self._fetched(request)
        if isinstance(request, ListOffsetsRequest):
            return self._offsets(request)
        if isinstance(request, OffsetForLeaderEpochRequest):
            return self._epoch_ends(request)
        keys = {ApiKey.API_VERSIONS: 3, ApiKey.LIST_OFFSETS: 9, ApiKey.OFFSET_FOR_LEADER_EPOCH: 4}
        keys[ApiKey.FETCH] = self._fetch_version
        return ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in keys.items()]
        )

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        deadline = time.monotonic() + request.max_wait_ms / 1000
        while True:
            topics = []
            names = {topic_id(tp.topic): tp.topic for tp in self.logs}
            for topic in request.topics:
                name = topic.topic or names[topic.topic_id]
                found = [self._read(TopicPartition(name, wanted.partition), wanted) for wanted in topic.partitions]
                topics.append(FetchableTopicResponse(topic=name, topic_id=topic.topic_id, partitions=found))
            news = any(data.records or data.error_code or data.diverging_epoch for t in topics for data in t.partitions)
            if news or self._is_stopping or time.monotonic() >= deadline:
                return FetchResponse(responses=topics)
            time.sleep(_POLL_S)

    def _read(self, tp: TopicPartition, wanted: FetchPartition) -> PartitionData:
        log = self.logs[tp]
        data = PartitionData(partition_index=tp.partition, log_start_offset=log.log_start_offset)
        data.high_watermark = log.log_end_offset
        data.error_code = self.refuse.get(tp, ErrorCode.NONE)
        if not data.error_code and wanted.current_leader_epoch != self.epoch:
            older = wanted.current_leader_epoch < self.epoch
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        elif wanted.last_fetched_epoch >= 0:
            epoch, end = log.epochs.end_offset_for(wanted.last_fetched_epoch, log.log_end_offset)
            if epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
                return data
        if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        if not data.error_code and wanted.fetch_offset < log.log_end_offset:
            found = log.read(wanted.fetch_offset, wanted.partition_max_bytes, upper_bound=log.log_end_offset)
            records = bytearray(found.records.read())
            if tp in self.spoil:
                records[70] ^= 0xFF
            data.records = bytes(records)
        return data

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        log = self.logs[TopicPartition(topic.name, wanted.partition_index)]
        offset = log.log_end_offset if wanted.timestamp == -1 else log.log_start_offset
        found = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])])

    def _epoch_ends(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in request.topics:
            result = OffsetForLeaderTopicResult(topic=topic.topic)
            for wanted in topic.partitions:
                log = self.logs[TopicPartition(topic.topic, wanted.partition)]
                epoch, end = log.epochs.end_offset_for(wanted.leader_epoch, log.log_end_offset)
                result.partitions.append(EpochEnd(partition=wanted.partition, leader_epoch=epoch, end_offset=end))
            topics.append(result)
        return OffsetForLeaderEpochResponse(topics=topics)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
