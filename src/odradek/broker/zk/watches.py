"""Watches: each notifies once that a znode, or its children, may have changed.

A watch is removed when it fires or when the connection is lost. After a reconnect, the watches of the lost connection
count as fired, because the nodes may have changed: the reader reads again and sets new watches, so no change is missed.
All of this runs on kazoo's threads; `on_znode` may only enqueue.
"""

import threading
from collections.abc import Callable
from dataclasses import field
from enum import Enum

from kazoo.protocol.states import EventType, WatchedEvent

from odradek.base.value_classes import dataclass


class WatchKind(Enum):
    NODE = "created, written or deleted"
    CHILDREN = "a child came or went"


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callback for kazoo. Equal for the same node and kind, so that kazoo holds one, however often it is set."""

    path: str
    kind: WatchKind
    watches: "Watches" = field(compare=False)

    def __call__(self, event: WatchedEvent) -> None:
        if event.type == EventType.NONE:
            self.watches.lost(self.path)
        else:
            self.watches.fired(self.path)


class Watches:
    def __init__(self, on_znode: Callable[[str], None]) -> None:
        self._on_znode = on_znode
        self._lock = threading.Lock()
        self._connected = False
        self._closed = False
        self._lost: dict[str, None] = {}

    def watcher(self, path: str, kind: WatchKind) -> Watcher:
        return Watcher(path, kind, self)

    def fired(self, path: str) -> None:
        if not self._closed:
            self._on_znode(path)

    def lost(self, path: str) -> None:
        """The connection took the watch with it; it may be back already when this is heard."""
        with self._lock:
            if not self._connected:
                self._lost[path] = None
                return
        self.fired(path)

    def connection_changed(self, *, connected: bool) -> None:
        with self._lock:
            self._connected = connected
            due = list(self._lost) if connected else []
            if connected:
                self._lost.clear()
        for path in due:
            self.fired(path)

    def close(self) -> None:
        self._closed = True
