"""ACLs of the cluster, current on every broker, and the one way to change them.

A change is written by version, so that none of two at the same time is lost, together with a notice. Every broker
watches the notices and reads the patterns that they name, on a thread that waits for ZooKeeper without a timeout. The
broker that makes a change applies it before it answers.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.zk.change_follower import ChangeFollower
from odradek.broker.zk.session import ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes.acls import ACL_ROOTS, AclChanges
from odradek.model.acls import AclEntry, PatternType, ResourcePattern

log = get_logger(__name__)

_PURGE_INTERVAL_MS = 60_000
_WRITE_TRIES = 11
Entries = frozenset[AclEntry]
Changes = dict[ResourcePattern, Entries | None]
"""ACLs by pattern: none where there are none any more, None where they can't be read."""


class OnAcls(Protocol):
    def __call__(self, acls: Changes, *, everything: bool) -> None:
        """Take all ACLs, or the changed ones; called by one thread at a time."""


class KnownAcls:
    def __init__(self, session: ZkSession, clock: Clock, on_acls: OnAcls) -> None:
        self._session = session
        self._clock = clock
        self._on_acls = on_acls
        self._store = ZkStore(session)
        self._waiting_store = ZkStore(session, until_available=True)
        self._lock = threading.Lock()  # one thread at a time changes the known ACLs and notifies
        self._writing = threading.Lock()  # own changes wait for each other, not for ZooKeeper's answers
        self._generation = 0
        self._known: Changes = {}
        self._seen: dict[PatternType, str] = {}
        self._purged_ms: int | None = None
        self._follower = ChangeFollower("acl-changes", self._catch_up)
        self.refresh, self.stop = self._follower.refresh, self._follower.stop

    def start(self) -> None:
        """Read all ACLs, and follow changes from then on."""
        self._session.ensure_paths(ACL_ROOTS)
        self._catch_up(everything=True)
        self._follower.start()

    @property
    def patterns(self) -> list[ResourcePattern]:
        return list(self._known)

    def update(self, pattern: ResourcePattern, change: Callable[[Entries], Entries]) -> None:
        """Changes the ACLs of one pattern. `change` may be called more than once, with what it finds each time.

        KafkaError where ZooKeeper doesn't answer, or the node can't be understood. ValueError for a name that no node
        can have.
        """
        try:
            with self._writing:
                self._update(pattern, change)
        except ZkUnavailable as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error

    def _update(self, pattern: ResourcePattern, change: Callable[[Entries], Entries]) -> None:
        for _ in range(_WRITE_TRIES):
            found = self._store.acls.load_acls([pattern])[pattern]
            if found.entries is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the ACLs of {pattern.name} can't be read")
            changed = change(found.entries)
            if changed == found.entries:
                self._read([pattern], self._store)
                return
            if self._store.acls.write_acls(pattern, changed, found.version):
                self._read([pattern], self._store)
                log.info("ACLs changed", resource=pattern.name, type=pattern.type.shown, entries=len(changed))
                return
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the ACLs of {pattern.name} changed {_WRITE_TRIES} times meanwhile"
        )

    def _catch_up(self, *, everything: bool) -> None:
        # watched first, then read: changes in between are read twice, and none is missed
        self._session.watch_children(list(AclChanges.roots.values()))
        changed, newest = self._waiting_store.acls.load_acl_changes(self._seen)
        if everything or changed:
            self._read(None if everything else changed, self._waiting_store)
        self._seen = newest
        if self._purged_ms is None or self._clock.monotonic_ms() - self._purged_ms >= _PURGE_INTERVAL_MS:
            self._purged_ms = self._clock.monotonic_ms()
            self._waiting_store.acls.purge_acl_changes(self._clock.now_ms())

    def _read(self, patterns: list[ResourcePattern] | None, store: ZkStore) -> None:
        """Read these patterns, or all, and report the changes to the listener.

        A result is kept only if no other was kept since, else it is read again: an older answer never
        replaces a newer one.
        """
        while True:
            generation = self._generation
            found = {pattern: acls.entries for pattern, acls in store.acls.load_acls(patterns).items()}
            with self._lock:
                if generation != self._generation:
                    continue
                self._generation += 1
                before = self._known
                kept = {} if patterns is None else before
                self._known = {pattern: acls for pattern, acls in (kept | found).items() if acls != frozenset()}
                changed = {pattern: acls for pattern, acls in found.items() if before.get(pattern, frozenset()) != acls}
                if patterns is None or changed:
                    self._on_acls(changed if patterns is not None else found, everything=patterns is None)
                return
