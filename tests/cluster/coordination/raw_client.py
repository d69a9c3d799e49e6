"""A client of ZooKeeper's protocol that hides nothing: every frame of the server, in order."""

import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.local.coordination.core import jute
from odradek.local.coordination.core.jute import Reader
from odradek.local.coordination.core.protocol import OpCode

ANYONE = [(31, "world", "anyone")]
_ENDS = {OpCode.PING: -2, OpCode.AUTH: -4, OpCode.SET_WATCHES: -8, OpCode.SET_WATCHES2: -8}


class Reply(NamedTuple):
    zxid: int
    error: int
    body: object


class Event(NamedTuple):
    zxid: int
    kind: int
    path: str


@dataclass(frozen=True)
class Operation:
    """A request: its bytes, and how the body of its answer is read."""

    kind: OpCode
    body: bytes
    decode: Callable[[Reader], object]

    def __repr__(self) -> str:
        return f"{self.kind.name} {self.body!r}"


def written_acls(acls: Sequence[tuple[int, str, str]]) -> bytes:
    return jute.vector(jute.int32(perms) + jute.string(scheme) + jute.string(name) for perms, scheme, name in acls)


def read_stat(reader: Reader) -> dict[str, int]:
    czxid, mzxid, _, _, version, cversion, aversion, owner, size, children, pzxid = struct.unpack(
        ">qqqqiiiqiiq", reader.raw(68)
    )
    return {
        "czxid": czxid,
        "mzxid": mzxid,
        "version": version,
        "cversion": cversion,
        "aversion": aversion,
        "owner": owner,
        "size": size,
        "children": children,
        "pzxid": pzxid,
    }


def nothing(reader: Reader) -> None:
    assert reader.remaining == 0


def read_acls(reader: Reader) -> object:
    return sorted(reader.vector(lambda: (reader.int32(), reader.string(), reader.string()), 12) or ())


def read_names(reader: Reader) -> list[str]:
    return sorted(reader.strings())


_PARTS: dict[int, Callable[[Reader], object]] = {
    OpCode.CREATE: lambda r: r.string(),
    OpCode.CREATE2: lambda r: (r.string(), read_stat(r)),
    OpCode.CREATE_CONTAINER: lambda r: (r.string(), read_stat(r)),
    OpCode.DELETE: lambda r: None,
    OpCode.CHECK: lambda r: None,
    OpCode.SET_DATA: read_stat,
    OpCode.ERROR: lambda r: r.int32(),
    OpCode.GET_DATA: lambda r: (r.buffer(), read_stat(r)),
    OpCode.GET_CHILDREN: read_names,
}


def read_parts(reader: Reader) -> list[object]:
    parts: list[object] = []
    while True:
        kind, done, error = reader.int32(), reader.boolean(), reader.int32()
        if done:
            return parts
        parts.append((kind, error, _PARTS[kind](reader)))


def create(path: str, data: bytes | None, flags: int, acls: Sequence[tuple[int, str, str]] = ANYONE) -> Operation:
    body = jute.string(path) + jute.buffer(data) + written_acls(acls) + jute.int32(flags)
    return Operation(OpCode.CREATE, body, _PARTS[OpCode.CREATE])


def part(operation: Operation) -> bytes:
    return jute.int32(operation.kind) + jute.boolean(False) + jute.int32(-1) + operation.body


PARTS_END = jute.int32(-1) + jute.boolean(True) + jute.int32(-1)


class RawClient:
    def __init__(self, address: str, timeout_ms: int = 30_000) -> None:
        host, _, port = address.partition(":")
        self._address = (host, int(port))
        self._timeout_ms = timeout_ms
        self.session_id, self._password = 0, bytes(16)
        self._xid = 0
        self.seen_zxid = 0
        self.negotiated_ms = 0
        self.events: list[Event] = []
        self.connect()

    def connect(self) -> bool:
        """A new session, or the one that it has; False if the server doesn't have that any more."""
        self._socket = socket.create_connection(self._address, timeout=30)
        body = jute.int32(0) + jute.int64(self.seen_zxid) + jute.int32(self._timeout_ms) + jute.int64(self.session_id)
        self.send(body + jute.buffer(self._password) + jute.boolean(False))
        reader = Reader(self.read_frame())
        reader.int32()
        self.negotiated_ms, session_id, password = reader.int32(), reader.int64(), reader.buffer()
        if session_id == 0:
            return False
        self.session_id, self._password = session_id, password or b""
        return True

    def send(self, frame: bytes) -> None:
        self._socket.sendall(jute.buffer(frame))

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed by the server")
            data += more
        return data

    def call(self, operation: Operation) -> Reply:
        """Events that come before the answer are added to `events`."""
        self._xid += 1
        xid = _ENDS.get(operation.kind, self._xid)
        self.send(struct.pack(">ii", xid, operation.kind) + operation.body)
        while True:
            reader = Reader(self.read_frame())
            answered, zxid, error = reader.int32(), reader.int64(), reader.int32()
            if answered == -1:
                kind, _, path = reader.int32(), reader.int32(), reader.string()
                self.events.append(Event(zxid, kind, path))
                continue
            assert answered == xid, (answered, xid, operation)
            self.seen_zxid = max(zxid, self.seen_zxid)
            body = operation.decode(reader) if error == 0 else None
            assert reader.remaining == 0, operation
            return Reply(zxid, error, body)

    def ping(self) -> Reply:
        return self.call(Operation(OpCode.PING, b"", nothing))

    def close_session(self) -> Reply:
        return self.call(Operation(OpCode.CLOSE_SESSION, b"", nothing))

    def drop(self) -> None:
        """Without a word to the server: the session lives on."""
        self._socket.close()
