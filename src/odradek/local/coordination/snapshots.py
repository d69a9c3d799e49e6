"""Snapshots of the tree and the sessions, in the file format of Apache ZooKeeper.

    snapshot.ZXID := "ZKSN" version=2 dbid, sessions, ACLs by number, nodes, "/", adler32 of all before it, "/"

ZXID is that of the last transaction that it holds, in hexadecimal digits. What Apache appends to it (a digest of the
tree) is neither written nor read.
"""

import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import acl, jute
from odradek.local.coordination.core.acl import OPEN, Acls
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.tree import DataTree
from odradek.local.coordination.core.znode import PERSISTED_BYTES, Znode
from odradek.local.coordination.transaction_log import sync_directory, zxid_of

_HEADER = struct.pack(">4siq", b"ZKSN", 2, -1)
_OPEN_NUMBER = -1
"""The number of the ACL that allows everything to all clients, which no file lists."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    tree: DataTree
    timeouts: Mapping[int, int]
    """Milliseconds by session."""
    zxid: int


def write_snapshot(directory: Path, snapshot: Snapshot) -> None:
    """Write a new file, which appears complete or not at all."""
    arriving = directory / ".snapshot"
    with arriving.open("wb") as file:
        file.write(_encoded(snapshot))
        file.flush()
        os.fsync(file.fileno())
    arriving.rename(directory / f"snapshot.{snapshot.zxid:x}")
    sync_directory(directory)


def snapshot_files(directory: Path) -> list[Path]:
    """The newest first."""
    return sorted(directory.glob("snapshot.*"), key=zxid_of, reverse=True)


def read_newest(directory: Path) -> tuple[Snapshot | None, list[str]]:
    """Newest snapshot that is whole, and the faults of newer ones."""
    faults: list[str] = []
    for path in snapshot_files(directory):
        try:
            return _decoded(path.read_bytes(), zxid_of(path)), faults
        except (MarshallingError, KeyError) as error:
            faults.append(f"{path}: {error}")
    if faults:
        raise FatalError(f"no snapshot in {directory} can be read: {'; '.join(faults)}")
    return None, faults


def _encoded(snapshot: Snapshot) -> bytes:
    numbers: dict[Acls, int] = {}
    nodes: list[bytes] = []
    for path, node in snapshot.tree.walk():
        number = _OPEN_NUMBER if node.acls == OPEN else numbers.setdefault(node.acls, len(numbers) + 1)
        nodes += [jute.string(path), jute.buffer(node.data), jute.int64(number), node.persisted()]
    sessions = [jute.int64(session_id) + jute.int32(ms) for session_id, ms in snapshot.timeouts.items()]
    acls = [jute.int64(number) + acl.written(acls) for acls, number in numbers.items()]
    body = b"".join([_HEADER, jute.vector(sessions), jute.vector(acls), *nodes, jute.string("/")])
    return body + jute.int64(zlib.adler32(body)) + jute.string("/")


def _decoded(data: bytes, zxid: int) -> Snapshot:
    if data[:8] != _HEADER[:8]:
        raise MarshallingError("not a snapshot of ZooKeeper")
    reader = Reader(data, len(_HEADER))
    timeouts = dict(reader.vector(lambda: (reader.int64(), reader.int32()), 12) or ())
    acls = dict(reader.vector(lambda: (reader.int64(), acl.read_acls(reader)), 12) or ())
    acls[_OPEN_NUMBER] = OPEN
    tree = DataTree.empty()
    while (path := reader.string()) != "/":
        content, number = reader.buffer(), reader.int64()
        stat = reader.raw(PERSISTED_BYTES)
        tree.insert(path, Znode.from_persisted(content, acls[number], stat))
    end = reader.position
    if reader.int64() != zlib.adler32(data[:end]):
        raise MarshallingError("its checksum is wrong")
    return Snapshot(tree, timeouts, zxid)
