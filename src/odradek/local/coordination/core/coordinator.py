"""The coordination server without sockets, files and clocks: frames in, frames and one transaction out.

Every step changes memory at once. Nobody may see it before the transaction is on disk: the server writes and syncs the
transactions of its steps first, and sends their frames then.
"""

import struct
from collections.abc import Iterable
from dataclasses import field

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import acl, jute
from odradek.local.coordination.core.acl import digest_identity
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.preparation import Preparation, deletable_containers
from odradek.local.coordination.core.protocol import (
    NOTIFICATION_XID,
    PING_XID,
    SYNC_CONNECTED,
    Code,
    EventType,
    KeeperError,
    OpCode,
    Permission,
)
from odradek.local.coordination.core.reads import MULTI_END, READS, Caller, ReadContext, multi_header
from odradek.local.coordination.core.requests import WRITES, read_write_request
from odradek.local.coordination.core.sessions import SessionTable
from odradek.local.coordination.core.transactions import (
    CloseSessionTxn,
    CreateSessionTxn,
    ErrorTxn,
    LoggedTxn,
    Txn,
)
from odradek.local.coordination.core.tree import DataTree, NodeChange, TxnResult
from odradek.local.coordination.core.watches import Watcher, Watches

_FRAME = struct.Struct(">iiqi")
_HEADER_BYTES = 16
_REQUEST = struct.Struct(">ii")
_NO_ZXID = -1


@dataclass(slots=True)
class Step:
    """Effects of one request, to be performed in this order: transactions, frames, the closing of the connection."""

    logged: list[LoggedTxn] = field(default_factory=list)
    frames: list[tuple[Watcher, bytes]] = field(default_factory=list)
    close: bool = False
    """The connection that asked ends."""


def reply(xid: int, zxid: int, code: int, body: bytes = b"") -> bytes:
    return _FRAME.pack(_HEADER_BYTES + len(body), xid, zxid, code) + body


class Coordinator:
    def __init__(self, tree: DataTree, sessions: SessionTable, last_zxid: int) -> None:
        self.tree = tree
        self.sessions = sessions
        self.watches = Watches()
        self.last_zxid = last_zxid
        self._callers: dict[Watcher, Caller] = {}

    def open_session(self, session_id: int, timeout_ms: int, now_ms: int, wall_ms: int) -> Step:
        step = Step()
        self.sessions.open(session_id, timeout_ms, now_ms)
        self._commit(session_id, 0, wall_ms, CreateSessionTxn(timeout_ms), step)
        return step

    def close_session(self, session_id: int, wall_ms: int, cxid: int = 0) -> Step:
        """Close a session, for its client, or because it has expired."""
        step = Step()
        self._close_session(session_id, cxid, wall_ms, step)
        return step

    def delete_containers(self, wall_ms: int) -> Step:
        step = Step()
        for txn in deletable_containers(self.tree):
            self._commit(0, 0, wall_ms, txn, step)
        return step

    def connect(self, caller: Caller) -> None:
        self._callers[caller.watcher] = caller

    def disconnect(self, watcher: Watcher) -> None:
        """Its watches go; its session stays until it expires."""
        self.watches.remove_watcher(watcher)
        self._callers.pop(watcher, None)

    def handle(self, caller: Caller, frame: bytes, wall_ms: int) -> Step:
        """One request. Raises MarshallingError for a frame without a header, whose connection has to end."""
        if len(frame) < _REQUEST.size:
            raise MarshallingError("shorter than a request's header")
        xid, number = _REQUEST.unpack_from(frame)
        reader = Reader(frame, _REQUEST.size)
        step = Step()
        if caller.session_id not in self.sessions:
            step.frames.append((caller.watcher, reply(xid, self.last_zxid, Code.SESSION_EXPIRED)))
            step.close = True
        elif number == OpCode.AUTH:
            self._authenticate(caller, xid, reader, step)
        elif number == OpCode.CLOSE_SESSION:
            self._close_session(caller.session_id, xid, wall_ms, step)
            step.frames.append((caller.watcher, reply(xid, self.last_zxid, Code.OK)))
            step.close = True
        elif number in WRITES:
            self._write(caller, xid, OpCode(number), reader, wall_ms, step)
        elif number in READS:
            self._read(caller, xid, OpCode(number), reader, step)
        else:
            step.frames.append((caller.watcher, reply(xid, _NO_ZXID, Code.UNIMPLEMENTED)))
            step.close = True
        return step

    def _read(self, caller: Caller, xid: int, kind: OpCode, reader: Reader, step: Step) -> None:
        context = ReadContext(self.tree, self.watches, caller)
        try:
            code, body = Code.OK, READS[kind](context, reader)
        except KeeperError as error:
            code, body = error.code, b""
        except MarshallingError:
            code, body = Code.MARSHALLING_ERROR, b""
        for event, path in context.missed:
            step.frames.append((caller.watcher, notification(event, path, _NO_ZXID)))
        answered_xid = PING_XID if kind is OpCode.PING else xid
        step.frames.append((caller.watcher, reply(answered_xid, self.last_zxid, code, body)))

    def _write(self, caller: Caller, xid: int, kind: OpCode, reader: Reader, wall_ms: int, step: Step) -> None:
        txn: Txn
        try:
            request = read_write_request(kind, reader)
            txn = Preparation(self.tree, caller.identities).prepare(request)
        except KeeperError as error:
            txn = ErrorTxn(error.code)
        except MarshallingError:
            if kind is not OpCode.MULTI:
                step.frames.append((caller.watcher, reply(xid, self.last_zxid, Code.MARSHALLING_ERROR)))
                return
            txn = ErrorTxn(Code.MARSHALLING_ERROR)  # with a zxid, unlike all others that can't be read
        result = self._commit(caller.session_id, xid, wall_ms, txn, step)
        body = b"" if result.code else _answer(kind, result)
        step.frames.append((caller.watcher, reply(xid, self.last_zxid, result.code, body)))

    def _close_session(self, session_id: int, cxid: int, wall_ms: int, step: Step) -> None:
        owned = tuple(self.tree.ephemerals.get(session_id, ()))
        self.sessions.close(session_id)
        self._commit(session_id, cxid, wall_ms, CloseSessionTxn(owned), step)

    def _commit(self, session_id: int, cxid: int, wall_ms: int, txn: Txn, step: Step) -> TxnResult:
        self.last_zxid += 1
        logged = LoggedTxn(session_id, cxid, self.last_zxid, wall_ms, txn)
        step.logged.append(logged)
        changes: list[NodeChange] = []
        result = self.tree.apply(logged, changes)
        for change in changes:
            self._notify(change, step)
        return result

    def _notify(self, change: NodeChange, step: Step) -> None:
        for event, path, acls, watchers in self.watches.triggered(change):
            frame = notification(event, path, self.last_zxid) if watchers else b""
            for watcher in watchers:
                if acl.allows(acls, Permission.READ, self._callers[watcher].identities):
                    step.frames.append((watcher, frame))

    def _authenticate(self, caller: Caller, xid: int, reader: Reader, step: Step) -> None:
        """`digest` adds an identity, `ip` is known already; any other scheme ends the connection."""
        code = Code.AUTH_FAILED
        try:
            reader.int32()
            scheme, credentials = reader.string(), reader.buffer() or b""
            if scheme == "digest":
                identity = digest_identity(credentials)
                if identity not in caller.identities:
                    caller.identities.append(identity)
                code = Code.OK
            elif scheme == "ip":
                code = Code.OK
        except MarshallingError:
            code = Code.AUTH_FAILED
        step.frames.append((caller.watcher, reply(xid, 0, code)))
        step.close = code is not Code.OK


def notification(event: EventType, path: str, zxid: int) -> bytes:
    body = jute.int32(event) + jute.int32(SYNC_CONNECTED) + jute.string(path)
    return reply(NOTIFICATION_XID, zxid, Code.OK, body)


def _answer(kind: OpCode, result: TxnResult) -> bytes:
    if kind is OpCode.MULTI:
        return b"".join(_answered_parts(result.parts)) + MULTI_END
    if kind is OpCode.CREATE:
        return jute.string(result.path)
    if kind in (OpCode.CREATE2, OpCode.CREATE_CONTAINER):
        return jute.string(result.path) + result.stat
    return result.stat


def _answered_parts(parts: Iterable[TxnResult]) -> Iterable[bytes]:
    for part in parts:
        if part.kind is OpCode.ERROR:
            yield multi_header(part.kind, part.code) + jute.int32(part.code)
        else:
            kind = OpCode.CREATE2 if part.kind is OpCode.CREATE_CONTAINER else part.kind
            yield multi_header(kind, Code.OK) + _answer(kind, part)
