"""Watches of changes, and expiry of sessions."""

from odradek.local.coordination.core.acl import OPEN
from odradek.local.coordination.core.protocol import EventType
from odradek.local.coordination.core.sessions import SessionTable
from odradek.local.coordination.core.tree import NodeChange
from odradek.local.coordination.core.watches import Watches, WatchMode


def told(watches: Watches, kind: EventType, path: str) -> list[tuple[str, str, set[int]]]:
    change = NodeChange(kind, path, OPEN, OPEN)
    return [(event.name, where, set(who)) for event, where, _, who in watches.triggered(change) if who]


def test_a_standard_watch_is_triggered_once() -> None:
    watches = Watches()
    watches.data.add("/a", 1, WatchMode.STANDARD)
    watches.children.add("/", 2, WatchMode.STANDARD)
    assert told(watches, EventType.NODE_CREATED, "/a") == [
        ("NODE_CREATED", "/a", {1}),
        ("NODE_CHILDREN_CHANGED", "/", {2}),
    ]
    assert told(watches, EventType.NODE_CREATED, "/a") == []
    assert len(watches) == 0


def test_a_deletion_is_heard_once_by_one_who_watches_data_and_children() -> None:
    watches = Watches()
    for table in (watches.data, watches.children):
        table.add("/a", 1, WatchMode.STANDARD)
    watches.children.add("/a", 2, WatchMode.STANDARD)
    assert told(watches, EventType.NODE_DELETED, "/a") == [("NODE_DELETED", "/a", {1}), ("NODE_DELETED", "/a", {2})]


def test_persistent_watches_stay_and_recursive_ones_see_what_is_below() -> None:
    watches = Watches()
    watches.add_persistent("/a", 1, WatchMode.PERSISTENT)
    watches.add_persistent("/a", 2, WatchMode.PERSISTENT_RECURSIVE)
    for _ in range(2):
        assert told(watches, EventType.NODE_CREATED, "/a/b") == [
            ("NODE_CREATED", "/a/b", {2}),
            ("NODE_CHILDREN_CHANGED", "/a", {1}),
        ]
    watches.remove_watcher(2)
    assert told(watches, EventType.NODE_DATA_CHANGED, "/a/b") == []
    assert watches.data.remove("/a", 1, WatchMode.STANDARD) is False
    assert watches.data.remove("/a", 1, WatchMode.PERSISTENT) is True


def test_a_session_lives_until_the_end_of_its_last_tick() -> None:
    sessions = SessionTable(tick_ms=500)
    sessions.open(1, 1000, now_ms=100)
    assert sessions.next_expiry_ms() == 1500
    assert sessions.expired(1499) == []
    assert sessions.touch(1, 1000, now_ms=1499)
    assert sessions.expired(1500) == []
    assert sessions.expired(2500) == [1]
    sessions.close(1)
    assert not sessions.touch(1, 1000, now_ms=2500)
    assert sessions.next_expiry_ms() is None
