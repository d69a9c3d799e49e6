"""Transactions: the results of checked write requests, and their bytes in ZooKeeper's transaction log.

The bytes are ZooKeeper's own, so that Apache ZooKeeper can continue a log of this server, and the reverse. A
digest of the tree, which Apache may append to a transaction, is neither written nor checked.
"""

import struct

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.acl import Acls, read_acls, written
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.protocol import OpCode

_HEADER = struct.Struct(">qiqqi")


@dataclass(frozen=True, slots=True)
class CreateTxn:
    kind: OpCode
    """CREATE, CREATE2 or CREATE_CONTAINER."""
    path: str
    data: bytes | None
    acls: Acls
    ephemeral: bool
    parent_cversion: int


@dataclass(frozen=True, slots=True)
class DeleteTxn:
    path: str


@dataclass(frozen=True, slots=True)
class SetDataTxn:
    path: str
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class SetAclTxn:
    path: str
    acls: Acls
    version: int


@dataclass(frozen=True, slots=True)
class CheckTxn:
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class ErrorTxn:
    """A request that was refused; it used up a zxid."""

    code: int


@dataclass(frozen=True, slots=True)
class CreateSessionTxn:
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSessionTxn:
    paths: tuple[str, ...]
    """Ephemeral nodes that go with the session."""


SubTxn = CreateTxn | DeleteTxn | SetDataTxn | CheckTxn | ErrorTxn


@dataclass(frozen=True, slots=True)
class MultiTxn:
    txns: tuple[SubTxn, ...]


Txn = SubTxn | SetAclTxn | CreateSessionTxn | CloseSessionTxn | MultiTxn


@dataclass(frozen=True, slots=True)
class LoggedTxn:
    session_id: int
    cxid: int
    zxid: int
    time: int
    txn: Txn

    def encoded(self) -> bytes:
        kind, body = _encoded(self.txn)
        return _HEADER.pack(self.session_id, self.cxid, self.zxid, self.time, kind) + body


def _encoded(txn: Txn) -> tuple[OpCode, bytes]:
    match txn:
        case CreateTxn():
            flag = b"" if txn.kind is OpCode.CREATE_CONTAINER else jute.boolean(txn.ephemeral)
            start = jute.string(txn.path) + jute.buffer(txn.data) + written(txn.acls)
            return txn.kind, start + flag + jute.int32(txn.parent_cversion)
        case DeleteTxn():
            return OpCode.DELETE, jute.string(txn.path)
        case SetDataTxn():
            return OpCode.SET_DATA, jute.string(txn.path) + jute.buffer(txn.data) + jute.int32(txn.version)
        case SetAclTxn():
            return OpCode.SET_ACL, jute.string(txn.path) + written(txn.acls) + jute.int32(txn.version)
        case CheckTxn():
            return OpCode.CHECK, jute.string(txn.path) + jute.int32(txn.version)
        case ErrorTxn():
            return OpCode.ERROR, jute.int32(txn.code)
        case CreateSessionTxn():
            return OpCode.CREATE_SESSION, jute.int32(txn.timeout_ms)
        case CloseSessionTxn():
            return OpCode.CLOSE_SESSION, jute.vector(jute.string(path) for path in txn.paths)
        case MultiTxn():
            parts = (_encoded(part) for part in txn.txns)
            return OpCode.MULTI, jute.vector(jute.int32(kind) + jute.buffer(body) for kind, body in parts)


def decode(data: bytes) -> LoggedTxn:
    """Raises MarshallingError for what no server of ZooKeeper's protocol without TTL nodes writes."""
    if len(data) < _HEADER.size:
        raise MarshallingError("shorter than a transaction's header")
    session_id, cxid, zxid, time, kind = _HEADER.unpack_from(data)
    reader = Reader(data, _HEADER.size)
    return LoggedTxn(session_id, cxid, zxid, time, _decoded(kind, reader))


def _decoded(kind: int, reader: Reader) -> Txn:
    match kind:
        case OpCode.SET_ACL:
            return SetAclTxn(reader.string(), read_acls(reader), reader.int32())
        case OpCode.CREATE_SESSION:
            return CreateSessionTxn(reader.int32())
        case OpCode.CLOSE_SESSION:
            return CloseSessionTxn(tuple(reader.strings()) if reader.remaining else ())
        case OpCode.MULTI:

            def one() -> SubTxn:
                part_kind, body = reader.int32(), reader.buffer()
                return _decoded_part(part_kind, Reader(body or b""))

            return MultiTxn(tuple(reader.vector(one, 8) or ()))
    return _decoded_part(kind, reader)


def _decoded_part(kind: int, reader: Reader) -> SubTxn:
    match kind:
        case OpCode.CREATE | OpCode.CREATE2:
            start = (reader.string(), reader.buffer(), read_acls(reader))
            return CreateTxn(OpCode(kind), *start, reader.boolean(), reader.int32())
        case OpCode.CREATE_CONTAINER:
            start = (reader.string(), reader.buffer(), read_acls(reader))
            return CreateTxn(OpCode.CREATE_CONTAINER, *start, False, reader.int32())
        case OpCode.DELETE | OpCode.DELETE_CONTAINER:
            return DeleteTxn(reader.string())
        case OpCode.SET_DATA | OpCode.RECONFIG:
            return SetDataTxn(reader.string(), reader.buffer(), reader.int32())
        case OpCode.CHECK:
            return CheckTxn(reader.string(), reader.int32())
        case OpCode.ERROR:
            return ErrorTxn(reader.int32())
    raise MarshallingError(f"unsupported transaction of type {kind}")
