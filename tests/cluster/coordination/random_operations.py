"""Operations by chance, the same for the same seed: a few paths, so that they meet."""

import random

from cluster.coordination.raw_client import (
    ANYONE,
    PARTS_END,
    Operation,
    create,
    nothing,
    part,
    read_acls,
    read_names,
    read_parts,
    read_stat,
    written_acls,
)
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.jute import Reader
from odradek.local.coordination.core.protocol import OpCode

_NAMES = ("a", "b", "c")
_RESERVED_PATHS = ("/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/")
_INVALID_PATHS = ("", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a\x01", "/\ufff0")
_ODD_PATHS = (*_RESERVED_PATHS, *_INVALID_PATHS, "/a..b", "/\ud7ff", "/é")
_USERS = ("ann:secret", "bob:other")
_ACLS = (
    ANYONE,
    ANYONE,
    ANYONE,
    [(31, "auth", "")],
    [(1, "world", "anyone"), (30, "auth", "")],
    [(1, "world", "anyone"), (1, "world", "anyone")],
    [(31, "digest", "ann:nothing"), (1, "ip", "127.0.0.0/8")],
    [(31, "ip", "10.0.0.1")],
    [(31, "digest", "nonsense")],
    [(31, "sasl", "kafka")],
    [(15, "world", "somebody")],
    [],
)


def _identities(reader: Reader) -> object:
    return sorted(reader.vector(lambda: (reader.string(), reader.string()), 8) or ())


class RandomOperations:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, most: int) -> int:
        return self._random.randrange(most)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def path(self) -> str:
        if self.chance(0.04):
            return self._random.choice(_ODD_PATHS)
        return "".join(f"/{self._random.choice(_NAMES)}" for _ in range(self._random.choice((1, 1, 1, 2, 2, 3))))

    def next(self) -> Operation:
        return self._random.choices(
            (self._write, self._multi, self._read, self._watch, self._acl, self._rare), (40, 12, 30, 8, 6, 4)
        )[0]()

    def _data(self) -> bytes | None:
        return self._random.choice((None, b"", b"x", b"some data"))

    def _version(self) -> int:
        return self._random.choice((-1, -1, -1, 0, 1, 2))

    def _create(self) -> Operation:
        flags = self._random.choices((0, 1, 2, 3, 4, 5, 9), (50, 20, 8, 8, 2, 1, 1))[0]
        acls = self._random.choice(_ACLS) if self.chance(0.15) else ANYONE
        made = create(self.path(), self._data(), flags, acls)
        kind = self._random.choice((OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER))
        if kind is OpCode.CREATE:
            return made
        return Operation(kind, made.body, lambda r: (r.string(), read_stat(r)))

    def _write(self) -> Operation:
        path, version = jute.string(self.path()), jute.int32(self._version())
        kind = self._random.randrange(4)
        if kind < 2:
            return self._create()
        if kind == 2:
            return Operation(OpCode.DELETE, path + version, nothing)
        return Operation(OpCode.SET_DATA, path + jute.buffer(self._data()) + version, read_stat)

    def _multi(self) -> Operation:
        parts = []
        for _ in range(self._random.choice((0, 1, 2, 2, 3, 4))):
            one = self._write()
            if self.chance(0.2):
                one = Operation(OpCode.CHECK, jute.string(self.path()) + jute.int32(self._version()), nothing)
            parts.append(part(one))
        return Operation(OpCode.MULTI, b"".join(parts) + PARTS_END, read_parts)

    def _read(self) -> Operation:
        path, watch = jute.string(self.path()), jute.boolean(self.chance(0.6))
        kind = self._random.randrange(6)
        if kind == 0:
            return Operation(OpCode.EXISTS, path + watch, read_stat)
        if kind == 1:
            return Operation(OpCode.GET_DATA, path + watch, lambda r: (r.buffer(), read_stat(r)))
        if kind == 2:
            return Operation(OpCode.GET_CHILDREN, path + watch, read_names)
        if kind == 3:
            return Operation(OpCode.GET_CHILDREN2, path + watch, lambda r: (read_names(r), read_stat(r)))
        if kind == 4:
            return Operation(OpCode.SYNC, path, lambda r: r.string())
        reads = [Operation(self._random.choice((OpCode.GET_DATA, OpCode.GET_CHILDREN)), path + watch, nothing)] * 2
        return Operation(OpCode.MULTI_READ, b"".join(map(part, reads)) + PARTS_END, read_parts)

    def _watch(self) -> Operation:
        path = jute.string(self.path())
        kind = self._random.randrange(4)
        if kind < 2:
            return Operation(
                OpCode.ADD_WATCH, path + jute.int32(self._random.choice((0, 1, 1, 7))), lambda r: r.int32()
            )
        which = jute.int32(self._random.choice((1, 2, 3, 4, 5)))
        return Operation(OpCode.REMOVE_WATCHES if kind == 2 else OpCode.CHECK_WATCHES, path + which, nothing)

    def _acl(self) -> Operation:
        path = jute.string(self.path())
        kind = self._random.randrange(4)
        if kind == 0:
            return Operation(OpCode.GET_ACL, path, lambda r: (read_acls(r), read_stat(r)))
        if kind == 1:
            credentials = self._random.choice(_USERS).encode()
            return Operation(OpCode.AUTH, jute.int32(0) + jute.string("digest") + jute.buffer(credentials), nothing)
        acls = written_acls(self._random.choice(_ACLS))
        return Operation(OpCode.SET_ACL, path + acls + jute.int32(self._version()), read_stat)

    def _rare(self) -> Operation:
        kind = self._random.randrange(5)
        if kind == 0:
            return Operation(OpCode.GET_EPHEMERALS, jute.string(self._random.choice(("", "/", "/a"))), read_names)
        if kind == 1:
            return Operation(OpCode.GET_ALL_CHILDREN_NUMBER, jute.string(self.path()), lambda r: r.int32())
        if kind == 2:
            return Operation(
                OpCode.WHO_AM_I, b"", lambda r: sorted(r.vector(lambda: (r.string(), r.string()), 8) or ())
            )
        if kind == 3:
            return Operation(OpCode.PING, b"", nothing)
        body = b"".join(jute.string("") for _ in range(3)) + jute.int64(-1)
        return Operation(OpCode.RECONFIG, body, nothing)
