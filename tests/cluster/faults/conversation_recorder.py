"""A proxy before each broker that records the Produce requests of a client and their answers, one event a line:

    {"ms": 12, "event": "sent", "connection": 3, "broker": 1, "request": 17, "batches": {"orders-0": NUMBERS}}
    {"ms": 15, "event": "answered", "connection": 3, "request": 17, "batches": {"orders-0": ERROR_CODE}}
    {"ms": 90, "event": "closed", "connection": 3}

NUMBERS are the producer's id and epoch, the sequence and the number of records. One thread serves all connections.
Before an answer is passed on, the requests that the client has sent are read.
"""

import contextlib
import json
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.protocol.framing import decode_request, decode_response
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.record_batch import read_header

_PRODUCE = 0
_LENGTH = 4


@dataclass(eq=False)
class _Pipe:
    """One direction of a connection."""

    source: socket.socket
    sink: socket.socket
    link: "_Link"
    is_request: bool
    unread: bytearray = field(default_factory=bytearray)


@dataclass(eq=False)
class _Link:
    number: int
    broker: int
    ends: tuple[socket.socket, socket.socket]
    versions: dict[int, int] = field(default_factory=dict)  # correlation id of a Produce → its version


class ConversationRecorder:
    def __init__(self, client_id: str, targets: dict[int, tuple[str, int]]) -> None:
        """Requests of that client are recorded; all are passed on."""
        self.events: list[dict[str, Any]] = []
        self._client_id = client_id
        self._targets = targets
        self._selector = selectors.DefaultSelector()
        self._links: set[_Link] = set()
        self._count = 0
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._is_closed = False
        self._listeners = {broker: socket.create_server(("127.0.0.1", 0)) for broker in targets}
        for broker, listener in self._listeners.items():
            self._selector.register(listener, selectors.EVENT_READ, broker)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def address(self, broker: int) -> str:
        return f"127.0.0.1:{self._listeners[broker].getsockname()[1]}"

    def cut(self, broker: int) -> None:
        """Break all connections to the broker."""
        with self._lock:
            for link in [each for each in self._links if each.broker == broker]:
                self._end(link)

    def in_flight(self, broker: int) -> int:
        """Number of requests to the broker that are not answered."""
        with self._lock:
            return sum(len(link.versions) for link in self._links if link.broker == broker)

    def close(self) -> None:
        self._is_closed = True
        self._thread.join(10)
        for listener in self._listeners.values():
            listener.close()
        with self._lock:
            for link in list(self._links):
                self._end(link)

    def save(self, path: Path) -> None:
        path.write_text("".join(f"{json.dumps(event)}\n" for event in self.events))

    def _serve(self) -> None:
        while not self._is_closed:
            ready = [key for key, _ in self._selector.select(0.2)]
            for key in ready:
                with self._lock:
                    if isinstance(key.data, int):
                        self._accept(key.data)
                    elif key.data.link in self._links:
                        self._move(key.data)

    def _accept(self, broker: int) -> None:
        client, _ = self._listeners[broker].accept()
        try:
            server = socket.create_connection(self._targets[broker], timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._count += 1
        link = _Link(self._count, broker, (client, server))
        self._links.add(link)
        self._selector.register(client, selectors.EVENT_READ, _Pipe(client, server, link, is_request=True))
        self._selector.register(server, selectors.EVENT_READ, _Pipe(server, client, link, is_request=False))

    def _move(self, pipe: _Pipe) -> None:
        """Pass on the bytes that there are; of the other direction first, if these are answers."""
        try:
            if not pipe.is_request:
                requests = self._selector.get_key(pipe.sink).data
                with contextlib.suppress(BlockingIOError):
                    if data := pipe.sink.recv(1 << 20, socket.MSG_DONTWAIT):
                        self._pass_on(requests, data)
            data = pipe.source.recv(1 << 20)
            if not data:
                self._end(pipe.link)
                return
            self._pass_on(pipe, data)
        except (OSError, KeyError):
            self._end(pipe.link)

    def _pass_on(self, pipe: _Pipe, data: bytes) -> None:
        pipe.unread += data
        while len(pipe.unread) >= _LENGTH:
            size = int.from_bytes(pipe.unread[:_LENGTH], "big")
            if len(pipe.unread) < _LENGTH + size:
                break
            frame = bytes(pipe.unread[_LENGTH : _LENGTH + size])
            del pipe.unread[: _LENGTH + size]
            (self._request if pipe.is_request else self._answer)(pipe.link, memoryview(frame))
        pipe.sink.sendall(data)

    def _request(self, link: _Link, frame: memoryview) -> None:
        if int.from_bytes(frame[:2], "big") != _PRODUCE:
            return
        header, request = decode_request(frame)
        if header.client_id != self._client_id:
            return
        assert isinstance(request, ProduceRequest)
        link.versions[header.correlation_id] = header.api_version
        batches = {}
        for topic in request.topic_data:
            for data in topic.partition_data:
                assert isinstance(data.records, memoryview)
                found = read_header(data.records)
                numbers = found.producer_id, found.producer_epoch, found.base_sequence, found.record_count
                batches[f"{topic.name}-{data.index}"] = numbers
        self._note("sent", link, request=header.correlation_id, broker=link.broker, batches=batches)

    def _answer(self, link: _Link, frame: memoryview) -> None:
        version = link.versions.pop(int.from_bytes(frame[:4], "big"), None)
        if version is None:
            return
        number, answer = decode_response(ProduceResponse, frame, version)
        errors = {f"{t.name}-{p.index}": p.error_code for t in answer.responses for p in t.partition_responses}
        self._note("answered", link, request=number, batches=errors)

    def _note(self, event: str, link: _Link, **more: Any) -> None:
        now_ms = round((time.monotonic() - self._started) * 1000)
        self.events.append({"ms": now_ms, "event": event, "connection": link.number, **more})

    def _end(self, link: _Link) -> None:
        if link not in self._links:
            return
        self._links.discard(link)
        self._note("closed", link)
        for end in link.ends:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(end)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
