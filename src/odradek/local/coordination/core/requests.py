"""Write requests as values, and how they are read from a frame."""

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core.acl import Acls, read_acls
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.protocol import CreateMode, OpCode


@dataclass(frozen=True, slots=True)
class CreateRequest:
    kind: OpCode
    path: str
    data: bytes | None
    acls: Acls
    flags: int


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class SetDataRequest:
    path: str
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class CheckRequest:
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class SetAclRequest:
    path: str
    acls: Acls
    version: int


@dataclass(frozen=True, slots=True)
class GetRequest:
    """A read inside of a multiRead."""

    kind: OpCode
    path: str


SubRequest = CreateRequest | DeleteRequest | SetDataRequest | CheckRequest


@dataclass(frozen=True, slots=True)
class MultiRequest:
    requests: tuple[SubRequest, ...]


@dataclass(frozen=True, slots=True)
class ReconfigRequest:
    """Changes the members of an ensemble, which one server isn't."""


WriteRequest = SubRequest | SetAclRequest | MultiRequest | ReconfigRequest

_CREATES = (OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER, OpCode.CREATE_TTL)
WRITES = frozenset({*_CREATES, OpCode.DELETE, OpCode.SET_DATA, OpCode.SET_ACL, OpCode.MULTI, OpCode.RECONFIG})
_READS_IN_MULTI = (OpCode.GET_DATA, OpCode.GET_CHILDREN)
_MODES = frozenset(mode for mode in CreateMode if not mode.has_ttl)


def read_write_request(kind: OpCode, reader: Reader) -> WriteRequest:
    if kind is OpCode.MULTI:
        return MultiRequest(tuple(_read_parts(reader)))
    if kind is OpCode.SET_ACL:
        return SetAclRequest(reader.string(), read_acls(reader), reader.int32())
    if kind is OpCode.RECONFIG:
        return ReconfigRequest()
    return _read_part(kind, reader)


def _read_part(kind: OpCode, reader: Reader) -> SubRequest:
    if kind in _CREATES:
        start = (reader.string(), reader.buffer(), read_acls(reader))
        request = CreateRequest(kind, *start, reader.int32())
        if kind is OpCode.CREATE_TTL:
            reader.int64()  # how long it would live; such nodes are refused
        return request
    if kind is OpCode.DELETE:
        return DeleteRequest(reader.string(), reader.int32())
    if kind is OpCode.SET_DATA:
        return SetDataRequest(reader.string(), reader.buffer(), reader.int32())
    if kind is OpCode.CHECK:
        return CheckRequest(reader.string(), reader.int32())
    raise MarshallingError(f"{kind} is not an operation of a multi")


def _read_parts(reader: Reader) -> list[SubRequest]:
    parts: list[SubRequest] = []
    while (kind := _read_multi_header(reader)) is not None:
        part = _read_part(kind, reader)
        if isinstance(part, CreateRequest) and part.kind is not OpCode.CREATE_TTL and part.flags not in _MODES:
            raise MarshallingError(f"{part.flags} is not a way to create a node without a TTL")
        parts.append(part)
    return parts


def read_multi_read(reader: Reader) -> list[GetRequest]:
    parts: list[GetRequest] = []
    while (kind := _read_multi_header(reader)) is not None:
        if kind not in _READS_IN_MULTI:
            raise MarshallingError(f"{kind} is not an operation of a multiRead")
        parts.append(GetRequest(kind, reader.string()))
        reader.boolean()  # its watch, which ZooKeeper ignores here
    return parts


def _read_multi_header(reader: Reader) -> OpCode | None:
    """Kind of the next part; None at the end."""
    kind, done, _ = reader.int32(), reader.boolean(), reader.int32()
    if done:
        return None
    try:
        return OpCode(kind)
    except ValueError:
        raise MarshallingError(f"{kind} is not an operation") from None
