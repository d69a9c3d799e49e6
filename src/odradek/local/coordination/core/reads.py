"""Requests that change nothing but watches: what each one answers."""

from collections.abc import Callable, Mapping
from dataclasses import field

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import acl, jute
from odradek.local.coordination.core.acl import Identity
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.protocol import Code, EventType, KeeperError, OpCode, Permission
from odradek.local.coordination.core.requests import read_multi_read
from odradek.local.coordination.core.tree import DataTree
from odradek.local.coordination.core.watches import Watcher, Watches, WatchMode, WatchTable
from odradek.local.coordination.core.znode import Znode

_ADDED_MODES = {0: WatchMode.PERSISTENT, 1: WatchMode.PERSISTENT_RECURSIVE}


@dataclass(slots=True)
class Caller:
    """A connection with a session."""

    watcher: Watcher
    session_id: int
    identities: list[Identity] = field(default_factory=list)


@dataclass(slots=True)
class ReadContext:
    tree: DataTree
    watches: Watches
    caller: Caller
    missed: list[tuple[EventType, str]] = field(default_factory=list)
    """Events of watched nodes while the client was away; it hears of them before the answer."""

    def readable(self, path: str) -> Znode:
        """The node; raises NO_NODE and NO_AUTH."""
        node = self.tree.nodes.get(path)
        if node is None:
            raise KeeperError(Code.NO_NODE)
        acl.check(node.acls, Permission.READ, self.caller.identities)
        return node

    def watch(self, table: WatchTable, path: str, wanted: bool) -> None:
        if wanted:
            table.add(path, self.caller.watcher, WatchMode.STANDARD)


Read = Callable[[ReadContext, Reader], bytes]


def _exists(context: ReadContext, reader: Reader) -> bytes:
    path, watch = reader.string(), reader.boolean()
    if "\0" in path:
        raise KeeperError(Code.BAD_ARGUMENTS)
    if path in context.tree.nodes:
        context.readable(path)
    context.watch(context.watches.data, path, watch)
    return context.readable(path).stat()


def _get_data(context: ReadContext, reader: Reader) -> bytes:
    path, watch = reader.string(), reader.boolean()
    node = context.readable(path)
    context.watch(context.watches.data, path, watch)
    return jute.buffer(node.data) + node.stat()


def _get_children(context: ReadContext, reader: Reader) -> bytes:
    path, watch = reader.string(), reader.boolean()
    node = context.readable(path)
    context.watch(context.watches.children, path, watch)
    return _names(node)


def _get_children2(context: ReadContext, reader: Reader) -> bytes:
    path, watch = reader.string(), reader.boolean()
    node = context.readable(path)
    context.watch(context.watches.children, path, watch)
    return _names(node) + node.stat()


def _names(node: Znode) -> bytes:
    return jute.vector(map(jute.string, node.children))


def _get_acl(context: ReadContext, reader: Reader) -> bytes:
    path = reader.string()
    node = context.tree.nodes.get(path)
    if node is None:
        raise KeeperError(Code.NO_NODE)
    acl.check(node.acls, Permission.READ | Permission.ADMIN, context.caller.identities)
    whole = acl.allows(node.acls, Permission.ADMIN, context.caller.identities)
    return acl.written(node.acls if whole else acl.without_secrets(node.acls)) + node.stat()


def _sync(context: ReadContext, reader: Reader) -> bytes:
    return jute.string(reader.string())


def _ping(context: ReadContext, reader: Reader) -> bytes:
    return b""


def _multi_read(context: ReadContext, reader: Reader) -> bytes:
    answers: list[bytes] = []
    for part in read_multi_read(reader):
        try:
            node = context.readable(part.path)
        except KeeperError as error:
            answers.append(multi_header(OpCode.ERROR, error.code) + jute.int32(error.code))
            continue
        body = jute.buffer(node.data) + node.stat() if part.kind is OpCode.GET_DATA else _names(node)
        answers.append(multi_header(part.kind, Code.OK) + body)
    return b"".join(answers) + MULTI_END


def multi_header(kind: OpCode, code: int) -> bytes:
    return jute.int32(kind) + jute.boolean(False) + jute.int32(code)


MULTI_END = jute.int32(-1) + jute.boolean(True) + jute.int32(-1)


def _get_ephemerals(context: ReadContext, reader: Reader) -> bytes:
    prefix = reader.string_or_null() or ""
    owned = context.tree.ephemerals.get(context.caller.session_id, {})
    wanted = "" if prefix.strip() in ("", "/") else prefix
    return jute.vector(jute.string(path) for path in owned if path.startswith(wanted))


def _get_all_children_number(context: ReadContext, reader: Reader) -> bytes:
    path = reader.string()
    context.readable(path)
    if path == "/":
        return jute.int32(len(context.tree) - 2)
    return jute.int32(sum(other.startswith(f"{path}/") for other in context.tree.nodes))


def _who_am_i(context: ReadContext, reader: Reader) -> bytes:
    identities = context.caller.identities
    names = (i.id.partition(":")[0] if i.scheme == "digest" else i.id for i in identities)
    return jute.vector(jute.string(i.scheme) + jute.string(name) for i, name in zip(identities, names, strict=True))


def _add_watch(context: ReadContext, reader: Reader) -> bytes:
    path, mode = reader.string(), reader.int32()
    if mode not in _ADDED_MODES:
        raise MarshallingError(f"{mode} is not a mode of a watch")
    context.watches.add_persistent(path, context.caller.watcher, _ADDED_MODES[mode])
    return jute.int32(Code.OK)


def _check_watches(context: ReadContext, reader: Reader) -> bytes:
    path, kind = reader.string(), reader.int32()
    data, children, watcher = context.watches.data, context.watches.children, context.caller.watcher
    match kind:
        case 1:
            found = children.contains(path, watcher, WatchMode.STANDARD)
        case 2:
            found = data.contains(path, watcher, WatchMode.STANDARD)
        case 3:
            found = children.contains(path, watcher) or data.contains(path, watcher)
        case 4:
            found = data.contains(path, watcher, WatchMode.PERSISTENT)
        case 5:
            found = data.contains(path, watcher, WatchMode.PERSISTENT_RECURSIVE)
        case _:
            raise MarshallingError(f"{kind} is not a kind of watch")
    return _or_no_watcher(found)


def _remove_watches(context: ReadContext, reader: Reader) -> bytes:
    path, kind = reader.string(), reader.int32()
    data, children, watcher = context.watches.data, context.watches.children, context.caller.watcher
    match kind:
        case 1:
            found = children.remove(path, watcher, WatchMode.STANDARD)
        case 2:
            found = data.remove(path, watcher, WatchMode.STANDARD)
        case 3:
            found = any([children.remove(path, watcher), data.remove(path, watcher)])
        case 4:
            removed = [table.remove(path, watcher, WatchMode.PERSISTENT) for table in (children, data)]
            found = any(removed)
        case 5:
            found = data.remove(path, watcher, WatchMode.PERSISTENT_RECURSIVE)
        case _:
            raise MarshallingError(f"{kind} is not a kind of watch")
    return _or_no_watcher(found)


def _or_no_watcher(found: bool) -> bytes:
    if not found:
        raise KeeperError(Code.NO_WATCHER)
    return b""


def _set_watches(context: ReadContext, reader: Reader) -> bytes:
    """Watches of a client that was connected before: missed changes are reported, other watches set again."""
    seen_zxid = reader.int64()
    nodes, watches = context.tree.nodes, context.watches
    for path in reader.strings():
        node = nodes.get(path)
        _set_again(context, watches.data, path, node, node is not None and node.mzxid > seen_zxid)
    for path in reader.strings():
        if path in nodes:
            context.missed.append((EventType.NODE_CREATED, path))
        else:
            context.watch(watches.data, path, True)
    for path in reader.strings():
        node = nodes.get(path)
        _set_again(context, watches.children, path, node, node is not None and node.pzxid > seen_zxid)
    return b""


def _set_again(context: ReadContext, table: WatchTable, path: str, node: Znode | None, changed: bool) -> None:
    if node is None:
        context.missed.append((EventType.NODE_DELETED, path))
    elif changed:
        of_children = table is context.watches.children
        kind = EventType.NODE_CHILDREN_CHANGED if of_children else EventType.NODE_DATA_CHANGED
        context.missed.append((kind, path))
    else:
        context.watch(table, path, True)


def _set_watches2(context: ReadContext, reader: Reader) -> bytes:
    _set_watches(context, reader)
    for mode in (WatchMode.PERSISTENT, WatchMode.PERSISTENT_RECURSIVE):
        for path in reader.strings():
            context.watches.add_persistent(path, context.caller.watcher, mode)
    return b""


READS: Mapping[OpCode, Read] = {
    OpCode.EXISTS: _exists,
    OpCode.GET_DATA: _get_data,
    OpCode.GET_CHILDREN: _get_children,
    OpCode.GET_CHILDREN2: _get_children2,
    OpCode.GET_ACL: _get_acl,
    OpCode.SYNC: _sync,
    OpCode.PING: _ping,
    OpCode.MULTI_READ: _multi_read,
    OpCode.GET_EPHEMERALS: _get_ephemerals,
    OpCode.GET_ALL_CHILDREN_NUMBER: _get_all_children_number,
    OpCode.WHO_AM_I: _who_am_i,
    OpCode.ADD_WATCH: _add_watch,
    OpCode.CHECK_WATCHES: _check_watches,
    OpCode.REMOVE_WATCHES: _remove_watches,
    OpCode.SET_WATCHES: _set_watches,
    OpCode.SET_WATCHES2: _set_watches2,
}
