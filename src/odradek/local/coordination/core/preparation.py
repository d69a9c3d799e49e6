"""Checks of write requests: each one becomes a transaction, or is refused with ZooKeeper's error.

The parts of a multi are checked one after the other, each against what the parts before it will have done. This
class
keeps that in memory of its own, so that a refused multi leaves nothing behind.
"""

from collections.abc import Sequence
from dataclasses import replace

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import acl, paths
from odradek.local.coordination.core.acl import Acls, Identity
from odradek.local.coordination.core.jute import wrapped_int32
from odradek.local.coordination.core.protocol import (
    ANY_VERSION,
    Code,
    KeeperError,
    OpCode,
    Permission,
    create_mode,
)
from odradek.local.coordination.core.requests import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    ReconfigRequest,
    SetAclRequest,
    SetDataRequest,
    SubRequest,
    WriteRequest,
)
from odradek.local.coordination.core.transactions import (
    CheckTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    SubTxn,
    Txn,
)
from odradek.local.coordination.core.tree import DataTree


@dataclass(frozen=True, slots=True)
class _Record:
    """A node as the parts before will have left it."""

    version: int
    cversion: int
    aversion: int
    is_ephemeral: bool
    children: int
    acls: Acls


class Preparation:
    """The preparation of one request."""

    def __init__(self, tree: DataTree, identities: Sequence[Identity]) -> None:
        self._tree = tree
        self._identities = identities
        self._changed: dict[str, _Record | None] = {}

    def prepare(self, request: WriteRequest) -> Txn:
        if isinstance(request, MultiRequest):
            return self._multi(request)
        if isinstance(request, SetAclRequest):
            return self._set_acl(request)
        if isinstance(request, ReconfigRequest):
            raise KeeperError(Code.RECONFIG_DISABLED)
        return self._part(request)

    def _multi(self, request: MultiRequest) -> MultiTxn:
        """Prepare each part; a refused part, and those after it, become errors."""
        txns: list[SubTxn] = []
        for part in request.requests:
            try:
                txns.append(self._part(part))
            except KeeperError as error:
                txns.append(ErrorTxn(error.code))
                break
        rest = len(request.requests) - len(txns)
        return MultiTxn((*txns, *[ErrorTxn(Code.RUNTIME_INCONSISTENCY)] * rest))

    def _part(self, request: SubRequest) -> SubTxn:
        match request:
            case CreateRequest():
                return self._create(request)
            case DeleteRequest():
                return self._delete(request)
            case SetDataRequest():
                return self._set_data(request)
            case CheckRequest():
                paths.validate(request.path)
                record = self._record(request.path)
                acl.check(record.acls, Permission.READ, self._identities)
                return CheckTxn(request.path, _next_version(record.version, request.version))

    def _create(self, request: CreateRequest) -> CreateTxn:
        mode = create_mode(request.flags)
        if mode.has_ttl or request.kind is OpCode.CREATE_TTL:
            raise KeeperError(Code.UNIMPLEMENTED)  # as by Apache ZooKeeper, unless its extended types are switched on
        parent_path = paths.parent_for_create(request.path)
        acls = acl.fixed_up(request.acls, self._identities)
        parent = self._record(parent_path)
        acl.check(parent.acls, Permission.CREATE, self._identities)
        path = request.path + (_sequence(parent.cversion) if mode.is_sequential else "")
        paths.validate(path)
        if self._find(path) is not None:
            raise KeeperError(Code.NODE_EXISTS)
        if parent.is_ephemeral:
            raise KeeperError(Code.NO_CHILDREN_FOR_EPHEMERALS)
        cversion = wrapped_int32(parent.cversion + 1)
        self._changed[parent_path] = replace(parent, cversion=cversion, children=parent.children + 1)
        self._changed[path] = _Record(0, 0, 0, mode.is_ephemeral, 0, acls)
        ephemeral = mode.is_ephemeral and request.kind is not OpCode.CREATE_CONTAINER
        return CreateTxn(request.kind, path, request.data, acls, ephemeral, cversion)

    def _delete(self, request: DeleteRequest) -> DeleteTxn:
        parent_path = paths.parent_for_delete(request.path)
        parent = self._record(parent_path)
        acl.check(parent.acls, Permission.DELETE, self._identities)
        record = self._record(request.path)
        _next_version(record.version, request.version)
        if record.children:
            raise KeeperError(Code.NOT_EMPTY)
        self._changed[parent_path] = replace(parent, children=parent.children - 1)
        self._changed[request.path] = None
        return DeleteTxn(request.path)

    def _set_data(self, request: SetDataRequest) -> SetDataTxn:
        paths.validate(request.path)
        record = self._record(request.path)
        acl.check(record.acls, Permission.WRITE, self._identities)
        version = _next_version(record.version, request.version)
        self._changed[request.path] = replace(record, version=version)
        return SetDataTxn(request.path, request.data, version)

    def _set_acl(self, request: SetAclRequest) -> SetAclTxn:
        paths.validate(request.path)
        acls = acl.fixed_up(request.acls, self._identities)
        record = self._record(request.path)
        acl.check(record.acls, Permission.ADMIN, self._identities)
        return SetAclTxn(request.path, acls, _next_version(record.aversion, request.version))

    def _record(self, path: str) -> _Record:
        record = self._find(path)
        if record is None:
            raise KeeperError(Code.NO_NODE)
        return record

    def _find(self, path: str) -> _Record | None:
        if path in self._changed:
            return self._changed[path]
        node = self._tree.nodes.get(path)
        if node is None:
            return None
        return _Record(node.version, node.cversion, node.aversion, node.is_ephemeral, len(node.children), node.acls)


def deletable_containers(tree: DataTree) -> list[DeleteTxn]:
    """Containers that had children and have none now."""
    nodes = ((path, tree.nodes[path]) for path in tree.containers)
    return [DeleteTxn(path) for path, node in nodes if node.cversion > 0 and not node.children]


def _next_version(current: int, expected: int) -> int:
    if expected not in (ANY_VERSION, current):
        raise KeeperError(Code.BAD_VERSION)
    return wrapped_int32(current + 1)


def _sequence(cversion: int) -> str:
    return f"{cversion:010d}"
