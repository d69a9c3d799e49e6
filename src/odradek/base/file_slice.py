"""Bytes that stay in a file until they are sent to a socket.

The log answers a fetch with slices, the codec counts their size without reading them, and the connection passes long
ones to sendfile. A slice holds the open file object, so the descriptor lives as long as anyone needs it, even when the
segment has been deleted meanwhile.
"""

import os
from io import FileIO
from typing import NamedTuple, TypeAlias

COPIED_BYTES_MAX = 16 << 10
"""Bytes of slices that are read into an answer: a copy of so many costs less than one more system call."""


class FileSlice(NamedTuple):
    file: FileIO
    position: int
    size: int

    def read(self) -> bytes:
        """Return the bytes themselves, for callers that can't use sendfile or gain nothing by it."""
        return os.pread(self.file.fileno(), self.size, self.position)

    def after(self, count: int) -> "FileSlice":
        """The slice without its first `count` bytes."""
        return FileSlice(self.file, self.position + count, self.size - count)


Chunk: TypeAlias = bytes | bytearray | memoryview | FileSlice
"""A part of an answer."""
