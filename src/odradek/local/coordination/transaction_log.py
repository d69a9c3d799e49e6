"""The transaction log, in the file format of Apache ZooKeeper.

    log.ZXID := "ZKLG" version=2 dbid, then entries; ZXID is that of the first entry, in hexadecimal digits
    entry    := adler32(8 bytes) size(4 bytes) transaction "B"

The file ends where an entry is cut off, is all zeros (Apache allocates in advance), or doesn't have its checksum.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.coordination.core.jute import MarshallingError
from odradek.local.coordination.core.transactions import LoggedTxn, decode

_HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)
_ENTRY = struct.Struct(">qi")
_END = b"B"
_ALLOCATED_BYTES = 1 << 20
"""A file grows by that much, in zeros: a sync that needn't write the file's size takes a third of the time."""


class LogWriter:
    """Appends to one file. An entry may be answered once `commit` has returned."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None
        self._pending: list[bytes] = []
        self._first_zxid = 0
        self._allocated = 0
        self.entries = 0
        """Number of entries in the file that is open."""
        self.size = 0
        """Bytes of all entries in the file that is open, with its header."""

    def append(self, logged: LoggedTxn) -> None:
        data = logged.encoded()
        if not self._pending:
            self._first_zxid = logged.zxid
        self._pending.append(_ENTRY.pack(zlib.adler32(data), len(data)) + data + _END)

    def commit(self) -> None:
        """Write and sync all that was appended since the last time. Raises OSError; then nothing may be answered."""
        if not self._pending:
            return
        if self._file is None:
            self._file = self._create(self._first_zxid)
        data = memoryview(b"".join(self._pending))
        self.entries += len(self._pending)
        self._pending.clear()
        if self.size + len(data) > self._allocated:
            self._allocated = self.size + len(data) + _ALLOCATED_BYTES
            os.ftruncate(self._file, self._allocated)
        while data:
            written = os.pwrite(self._file, data, self.size)
            self.size += written
            data = data[written:]
        os.fdatasync(self._file)

    def roll(self) -> None:
        """The next entry begins a new file."""
        self.commit()
        if self._file is not None:
            os.ftruncate(self._file, self.size)
            os.close(self._file)
            self._file = None
        self.entries = self.size = self._allocated = 0

    def _create(self, zxid: int) -> int:
        file = os.open(self._directory / f"log.{zxid:x}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.size = os.write(file, _HEADER)
        sync_directory(self._directory)
        return file


class LogFile:
    """A file of an earlier run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first_zxid = zxid_of(path)
        self.whole_bytes = 0
        """Bytes of the file that hold whole entries; known once all of them were read."""

    def entries(self) -> Iterator[LoggedTxn]:
        data = self.path.read_bytes()
        if data[: len(_HEADER)][:8] != _HEADER[:8]:
            if len(data) >= len(_HEADER):
                raise FatalError(f"{self.path} is not a transaction log of ZooKeeper")
            return
        self.whole_bytes = position = len(_HEADER)
        while position + _ENTRY.size < len(data):
            checksum, size = _ENTRY.unpack_from(data, position)
            start, position = position + _ENTRY.size, position + _ENTRY.size + size + 1
            body = data[start : start + max(size, 0)]
            if size <= 0 or data[start + size : position] != _END or zlib.adler32(body) != checksum:
                return
            try:
                logged = decode(body)
            except MarshallingError as error:
                raise FatalError(f"{self.path}: {error}, at byte {start}") from error
            self.whole_bytes = position
            yield logged

    def cut_torn_end(self) -> int:
        """Remove what follows the last whole entry; how many bytes that were other than zeros there had been."""
        with self.path.open("r+b") as file:
            file.seek(self.whole_bytes)
            torn = len(file.read().rstrip(b"\0"))
            if self.whole_bytes > len(_HEADER):
                file.truncate(self.whole_bytes)
                os.fsync(file.fileno())
                return torn
        # Without an entry the next one would have the name of this file.
        self.path.unlink()
        sync_directory(self.path.parent)
        return torn


def log_files(directory: Path) -> list[LogFile]:
    """List the files by the zxid that they begin with."""
    return sorted((LogFile(path) for path in directory.glob("log.*")), key=lambda file: file.first_zxid)


def zxid_of(path: Path) -> int:
    try:
        return int(path.name.partition(".")[2], 16)
    except ValueError:
        raise FatalError(f"{path} is not a file of ZooKeeper: move it away") from None


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
