"""Watches: which connections hear of a change of which path.

There are two tables, as in ZooKeeper: one for data (and existence), one for children. A watch is standard (removed once
it was triggered), persistent, or persistent and recursive (also for changes below the path). All three may be on one
path for one watcher, which hears of an event once.
"""

from collections.abc import Collection, Iterator
from enum import IntFlag

from odradek.local.coordination.core.acl import Acls
from odradek.local.coordination.core.protocol import EventType
from odradek.local.coordination.core.tree import NodeChange

Watcher = int
"""The number of a connection."""


class WatchMode(IntFlag):
    STANDARD = 1
    PERSISTENT = 2
    PERSISTENT_RECURSIVE = 4


_EVERY_MODE = WatchMode.STANDARD | WatchMode.PERSISTENT | WatchMode.PERSISTENT_RECURSIVE


class WatchTable:
    def __init__(self) -> None:
        self._by_path: dict[str, dict[Watcher, WatchMode]] = {}
        self._paths_of: dict[Watcher, set[str]] = {}
        self._recursive = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_path.values()))

    def add(self, path: str, watcher: Watcher, mode: WatchMode) -> None:
        watchers = self._by_path.setdefault(path, {})
        before = watchers.get(watcher, WatchMode(0))
        watchers[watcher] = before | mode
        self._paths_of.setdefault(watcher, set()).add(path)
        if mode & ~before & WatchMode.PERSISTENT_RECURSIVE:
            self._recursive += 1

    def contains(self, path: str, watcher: Watcher, mode: WatchMode = _EVERY_MODE) -> bool:
        return bool(self._by_path.get(path, {}).get(watcher, WatchMode(0)) & mode)

    def remove(self, path: str, watcher: Watcher, mode: WatchMode = _EVERY_MODE) -> bool:
        """Remove the watch; True if it was there."""
        watchers = self._by_path.get(path, {})
        before = watchers.get(watcher, WatchMode(0))
        if not before & mode:
            return False
        if before & mode & WatchMode.PERSISTENT_RECURSIVE:
            self._recursive -= 1
        if left := before & ~mode:
            watchers[watcher] = left
            return True
        del watchers[watcher]
        if not watchers:
            del self._by_path[path]
        self._paths_of[watcher].discard(path)
        return True

    def remove_watcher(self, watcher: Watcher) -> None:
        for path in tuple(self._paths_of.get(watcher, ())):
            self.remove(path, watcher)
        self._paths_of.pop(watcher, None)

    def trigger(self, path: str) -> list[Watcher]:
        """Watchers of the path, whose standard watches are gone now, and recursive ones of every path above."""
        found: dict[Watcher, None] = {}
        if watchers := self._by_path.get(path):
            found = dict.fromkeys(watchers)
            for watcher in found:
                self.remove(path, watcher, WatchMode.STANDARD)
        if self._recursive:
            for above in _above(path):
                for watcher, mode in self._by_path.get(above, {}).items():
                    if mode & WatchMode.PERSISTENT_RECURSIVE:
                        found[watcher] = None
        return list(found)


def _above(path: str) -> Iterator[str]:
    while path not in ("/", ""):
        path = path.rpartition("/")[0] or "/"
        yield path


class Watches:
    def __init__(self) -> None:
        self.data = WatchTable()
        self.children = WatchTable()

    def __len__(self) -> int:
        return len(self.data) + len(self.children)

    def add_persistent(self, path: str, watcher: Watcher, mode: WatchMode) -> None:
        self.data.add(path, watcher, mode)
        if mode is WatchMode.PERSISTENT:
            self.children.add(path, watcher, mode)

    def remove_watcher(self, watcher: Watcher) -> None:
        self.data.remove_watcher(watcher)
        self.children.remove_watcher(watcher)

    def triggered(self, change: NodeChange) -> Iterator[tuple[EventType, str, Acls, Collection[Watcher]]]:
        """Events with their paths, the ACL that a watcher needs to pass, and watchers, in the order of delivery."""
        notified = self.data.trigger(change.path)
        yield change.kind, change.path, change.acls, notified
        if change.kind is EventType.NODE_DATA_CHANGED:
            return
        if change.kind is EventType.NODE_DELETED:
            others = set(self.children.trigger(change.path)).difference(notified)
            yield change.kind, change.path, change.acls, others
        parent = change.path.rpartition("/")[0] or "/"
        yield EventType.NODE_CHILDREN_CHANGED, parent, change.parent_acls, self.children.trigger(parent)
