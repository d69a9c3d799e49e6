"""Open segment files: inactive segments share a bounded number of descriptors."""

import threading
from collections import OrderedDict
from io import FileIO
from typing import Protocol


class SegmentFile(FileIO):
    """An open segment. Closed by its last holder, not by its owner."""

    def __del__(self) -> None:
        self.close()


class HasFile(Protocol):
    def forget_file(self) -> None: ...


class OpenFiles:
    """Inactive segments whose file is open, least recently used first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._segments: OrderedDict[HasFile, None] = OrderedDict()

    def touch(self, segment: HasFile) -> None:
        with self._lock:
            self._segments[segment] = None
            self._segments.move_to_end(segment)
            if len(self._segments) > self._limit:
                self._segments.popitem(last=False)[0].forget_file()

    def discard(self, segment: HasFile) -> None:
        with self._lock:
            self._segments.pop(segment, None)


OPEN_FILES = OpenFiles(limit=256)
