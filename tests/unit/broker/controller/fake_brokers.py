"""Brokers as a controller sees them: sockets that note what they are told and say yes, or nothing, or hang up."""

import socket
import threading
from collections.abc import Callable
from struct import Struct

from odradek.base.errors import ErrorCode
from odradek.model.topology import Broker, Endpoint
from odradek.protocol.api_keys import APIS
from odradek.protocol.framing import decode_request, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from odradek.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from odradek.protocol.schema import Request, Response

LISTENER = "PLAINTEXT"
PATIENCE_SECONDS = 60
_SIZE = Struct(">i")


class FakeBroker:
    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.told: list[Request] = []
        self.correlation_ids: list[int] = []
        """Requests that came, also those that were not answered."""
        self.hang_ups = 0
        """Number of connections to close instead of an answer."""
        self.on_request: Callable[[Request], None] = lambda request: None
        self._changed = threading.Condition()
        self._answering = True
        self._connections: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def broker(self) -> Broker:
        return Broker(self.id, (Endpoint(LISTENER, "PLAINTEXT", "127.0.0.1", self._server.getsockname()[1]),))

    def fall_silent(self) -> None:
        with self._changed:
            self._answering = False

    def speak(self) -> None:
        with self._changed:
            self._answering = True
            self._changed.notify_all()

    def wait_for(self, holds: Callable[[list[Request]], bool]) -> list[Request]:
        """Return the requests that came, once they are enough."""
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self.told), PATIENCE_SECONDS), self.told
            return list(self.told)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.close()
        for connection in list(self._connections):
            connection.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while size := stream.read(4):
                    frame = memoryview(stream.read(_SIZE.unpack(size)[0]))
                    header, request = decode_request(frame)
                    self.correlation_ids.append(header.correlation_id)
                    answer = self._answer(request)
                    if answer is None:
                        return
                    parts = encode_response(header.correlation_id, answer, header.api_version)
                    connection.sendall(b"".join(part for part in parts if isinstance(part, bytes | bytearray)))
        except OSError:
            return

    def _answer(self, request: Request) -> Response | None:
        if isinstance(request, ApiVersionsRequest):
            keys = [
                ApiVersion(api_key=key, min_version=api.min_version, max_version=api.max_version)
                for key, api in APIS.items()
            ]
            return ApiVersionsResponse(api_keys=keys)
        with self._changed:
            if self.hang_ups:
                self.hang_ups -= 1
                return None
            self._changed.wait_for(lambda: self._answering or self._closed)
            self.told.append(request)
            self._changed.notify_all()
        self.on_request(request)
        return response_to(request)


def response_to(request: Request, error: ErrorCode = ErrorCode.NONE) -> Response:
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(
                topics=[
                    LeaderAndIsrTopicError(
                        topic_id=topic.topic_id,
                        partition_errors=[
                            LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=error)
                            for state in topic.partition_states
                        ],
                    )
                    for topic in request.topic_states
                ]
            )
        case StopReplicaRequest():
            return StopReplicaResponse(
                partition_errors=[
                    StopReplicaPartitionError(
                        topic_name=topic.topic_name, partition_index=state.partition_index, error_code=error
                    )
                    for topic in request.topic_states
                    for state in topic.partition_states
                ]
            )
        case UpdateMetadataRequest():
            return UpdateMetadataResponse()
    raise AssertionError(f"a controller doesn't send {request}")
