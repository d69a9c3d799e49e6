"""One node of the tree: its data, its ACL, and the counters that clients see as Stat."""

import struct

from odradek.local.coordination.core.acl import OPEN, Acls
from odradek.local.coordination.core.jute import wrapped_int32
from odradek.local.coordination.core.protocol import CONTAINER_OWNER

_STAT = struct.Struct(">qqqqiiiqiiq")
_PERSISTED = struct.Struct(">qqqqiiiqq")
PERSISTED_BYTES = _PERSISTED.size


class Znode:
    __slots__ = (
        "acls",
        "aversion",
        "children",
        "ctime",
        "cversion",
        "czxid",
        "data",
        "ephemeral_owner",
        "mtime",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes | None, acls: Acls = OPEN, zxid: int = 0, time: int = 0, owner: int = 0) -> None:
        self.data = data
        self.acls = acls
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = time
        self.version = self.aversion = 0
        self.cversion = 0
        """Number of children that were ever created. Clients see the number of changes instead."""
        self.ephemeral_owner = owner
        """The session, 0 for none, CONTAINER_OWNER for a container."""
        self.children: dict[str, None] = {}
        """Names, in order of creation."""

    @property
    def is_ephemeral(self) -> bool:
        return self.ephemeral_owner not in (0, CONTAINER_OWNER)

    def stat(self) -> bytes:
        return _STAT.pack(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            wrapped_int32(self.cversion * 2 - len(self.children)),
            self.aversion,
            self.ephemeral_owner if self.is_ephemeral else 0,
            len(self.data or b""),
            len(self.children),
            self.pzxid,
        )

    def persisted(self) -> bytes:
        return _PERSISTED.pack(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            self.cversion,
            self.aversion,
            self.ephemeral_owner,
            self.pzxid,
        )

    @classmethod
    def from_persisted(cls, data: bytes | None, acls: Acls, stat: bytes) -> "Znode":
        node = cls(data, acls)
        (
            node.czxid,
            node.mzxid,
            node.ctime,
            node.mtime,
            node.version,
            node.cversion,
            node.aversion,
            node.ephemeral_owner,
            node.pzxid,
        ) = _PERSISTED.unpack(stat)
        return node
