"""The tree of znodes, changed by transactions alone. All checks were made before a transaction was logged.

A replay is tolerant: a snapshot of Apache ZooKeeper may contain effects of transactions that follow it in the log.
"""

from collections.abc import Iterator
from typing import NamedTuple

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import paths
from odradek.local.coordination.core.acl import READ_ONLY, Acls
from odradek.local.coordination.core.protocol import CONTAINER_OWNER, Code, EventType, OpCode
from odradek.local.coordination.core.transactions import (
    CheckTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    LoggedTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    SubTxn,
    Txn,
)
from odradek.local.coordination.core.znode import Znode


class NodeChange(NamedTuple):
    """A change of a node, which triggers watches."""

    kind: EventType
    path: str
    acls: Acls
    parent_acls: Acls


@dataclass(frozen=True, slots=True)
class TxnResult:
    """The result of a transaction, or of one part of a multi."""

    kind: OpCode
    path: str = ""
    stat: bytes = b""
    code: int = Code.OK
    parts: tuple["TxnResult", ...] = ()


class DataTree:
    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {}
        self.ephemerals: dict[int, dict[str, None]] = {}
        """Paths by session, in order of creation."""
        self.containers: dict[str, None] = {}
        self.data_bytes = 0
        """Sum of the sizes of paths and data."""
        for path in ("", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
            self.insert(path, Znode(b""))
        config = self.nodes["/zookeeper/config"]
        config.acls, config.aversion = READ_ONLY, -1

    @classmethod
    def empty(cls) -> "DataTree":
        """Return a tree without even a root, to be filled by `insert`."""
        tree = cls()
        tree.nodes.clear()
        tree.data_bytes = 0
        return tree

    def __len__(self) -> int:
        """Count as ZooKeeper does: the root twice."""
        return len(self.nodes)

    @property
    def ephemerals_count(self) -> int:
        return sum(map(len, self.ephemerals.values()))

    def insert(self, path: str, node: Znode) -> None:
        """Add a node under its parent, whose counters stay as they are."""
        if path == "":
            self.nodes[""] = self.nodes["/"] = node
            return
        parent, name = paths.split(path)
        self.nodes[parent].children[name] = None
        self.nodes[path] = node
        self.data_bytes += len(path) + len(node.data or b"")
        if node.ephemeral_owner == CONTAINER_OWNER:
            self.containers[path] = None
        elif node.ephemeral_owner:
            self.ephemerals.setdefault(node.ephemeral_owner, {})[path] = None

    def walk(self) -> Iterator[tuple[str, Znode]]:
        """All nodes, parents before children; the root is ""."""
        pending = [""]
        while pending:
            path = pending.pop()
            node = self.nodes[path]
            yield path, node
            pending += [f"{path}/{name}" for name in node.children]

    def apply(self, logged: LoggedTxn, changes: list[NodeChange]) -> TxnResult:
        """Perform the transaction, and add the changes that trigger watches to `changes`."""
        return self._apply(logged, logged.txn, changes)

    def _apply(self, logged: LoggedTxn, txn: Txn, changes: list[NodeChange]) -> TxnResult:
        match txn:
            case CreateTxn():
                return self._create(logged, txn, changes)
            case DeleteTxn():
                self._delete(txn.path, logged.zxid, changes)
                return TxnResult(OpCode.DELETE, txn.path)
            case SetDataTxn():
                return self._set_data(logged, txn, changes)
            case SetAclTxn():
                if (node := self.nodes.get(txn.path)) is None:
                    return TxnResult(OpCode.SET_ACL, txn.path, code=Code.NO_NODE)
                node.acls, node.aversion = txn.acls, txn.version
                return TxnResult(OpCode.SET_ACL, txn.path, node.stat())
            case CheckTxn():
                return TxnResult(OpCode.CHECK, txn.path)
            case ErrorTxn():
                return TxnResult(OpCode.ERROR, code=txn.code)
            case CreateSessionTxn():
                return TxnResult(OpCode.CREATE_SESSION)
            case CloseSessionTxn():
                for path in dict.fromkeys((*txn.paths, *self.ephemerals.pop(logged.session_id, {}))):
                    self._delete(path, logged.zxid, changes)
                return TxnResult(OpCode.CLOSE_SESSION)
            case MultiTxn():
                return self._multi(logged, txn, changes)

    def _multi(self, logged: LoggedTxn, txn: MultiTxn, changes: list[NodeChange]) -> TxnResult:
        """All parts, or, when one was refused, none."""
        parts: tuple[SubTxn, ...] = txn.txns
        refused = next((n for n, part in enumerate(parts) if isinstance(part, ErrorTxn)), None)
        if refused is not None:
            after = Code.RUNTIME_INCONSISTENCY
            parts = tuple(
                part if isinstance(part, ErrorTxn) else ErrorTxn(Code.OK if n < refused else after)
                for n, part in enumerate(parts)
            )
        return TxnResult(OpCode.MULTI, parts=tuple(self._apply(logged, part, changes) for part in parts))

    def _create(self, logged: LoggedTxn, txn: CreateTxn, changes: list[NodeChange]) -> TxnResult:
        parent_path, _ = paths.split(txn.path)
        parent = self.nodes.get(parent_path)
        if parent is None:
            return TxnResult(txn.kind, txn.path, code=Code.NO_NODE)
        cversion = parent.cversion + 1 if txn.parent_cversion == -1 else txn.parent_cversion
        if cversion > parent.cversion:
            parent.cversion, parent.pzxid = cversion, logged.zxid
        if existing := self.nodes.get(txn.path):
            existing.acls = txn.acls
            return TxnResult(txn.kind, txn.path, code=Code.NODE_EXISTS)
        owner = logged.session_id if txn.ephemeral else 0
        if txn.kind is OpCode.CREATE_CONTAINER:
            owner = CONTAINER_OWNER
        node = Znode(txn.data, txn.acls, logged.zxid, logged.time, owner)
        self.insert(txn.path, node)
        changes.append(NodeChange(EventType.NODE_CREATED, txn.path, txn.acls, parent.acls))
        return TxnResult(txn.kind, txn.path, node.stat())

    def _delete(self, path: str, zxid: int, changes: list[NodeChange]) -> None:
        parent_path, name = paths.split(path)
        parent = self.nodes.get(parent_path)
        if parent is None:
            return
        parent.children.pop(name, None)
        parent.pzxid = max(parent.pzxid, zxid)
        node = self.nodes.pop(path, None)
        if node is None:
            return
        self.data_bytes -= len(path) + len(node.data or b"")
        self.containers.pop(path, None)
        if owned := self.ephemerals.get(node.ephemeral_owner):
            owned.pop(path, None)
            if not owned:
                del self.ephemerals[node.ephemeral_owner]
        changes.append(NodeChange(EventType.NODE_DELETED, path, node.acls, parent.acls))

    def _set_data(self, logged: LoggedTxn, txn: SetDataTxn, changes: list[NodeChange]) -> TxnResult:
        node = self.nodes.get(txn.path)
        if node is None:
            return TxnResult(OpCode.SET_DATA, txn.path, code=Code.NO_NODE)
        self.data_bytes += len(txn.data or b"") - len(node.data or b"")
        node.data, node.version = txn.data, txn.version
        node.mtime, node.mzxid = logged.time, logged.zxid
        changes.append(NodeChange(EventType.NODE_DATA_CHANGED, txn.path, node.acls, ()))
        return TxnResult(OpCode.SET_DATA, txn.path, node.stat())
