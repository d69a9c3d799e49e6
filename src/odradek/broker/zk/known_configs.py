"""Overrides of topics, brokers and clients, current on every broker without restart.

A change of a configuration leaves a notice under /config/changes. Every broker watches that node, reads the entities
that new notices name, and calls its listener, on a separate thread that waits for ZooKeeper without a timeout. The
creation of a topic leaves no notification: before a log is created, `look_up` reads the configuration.
"""

import threading
from collections.abc import Callable, Iterable, Mapping

from odradek.base.clock import Clock
from odradek.base.logs import get_logger
from odradek.broker.zk.change_follower import ChangeFollower
from odradek.broker.zk.session import ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import ConfigChanges

log = get_logger(__name__)

_PURGE_INTERVAL_MS = 60_000
_KEPT_TYPES = ("topics", "brokers", "users", "clients", "ips")
OnChange = Callable[[str, str], None]
"""Listener, called with the entity's type (as in /config) and name when `of`, `of_broker` and `all` have the change."""


class KnownConfigs:
    def __init__(self, session: ZkSession, clock: Clock) -> None:
        self._on_change: OnChange | None = None
        self._session = session
        self._clock = clock
        self._store = ZkStore(session)
        self._waiting_store = ZkStore(session, until_available=True)
        self._lock = threading.Lock()
        self._generation = 0
        self._configs: dict[str, dict[str, dict[str, str]]] = {entity_type: {} for entity_type in _KEPT_TYPES}
        self._seen: str | None = None
        self._purged_ms: int | None = None
        self._follower = ChangeFollower("config-changes", self._catch_up)
        self.refresh, self.stop = self._follower.refresh, self._follower.stop

    def start(self, on_change: OnChange) -> None:
        """Read all configurations, and call `on_change` for each change from then on."""
        self._on_change = on_change
        self._catch_up(everything=True, tell=False)
        self._follower.start()

    def of(self, topic: str) -> Mapping[str, str]:
        """Return the overrides of the topic."""
        return self._configs["topics"].get(topic, {})

    def of_broker(self, name: str) -> Mapping[str, str]:
        """Return the overrides of the broker of that id, or of all brokers (`DEFAULT_ENTITY`)."""
        return self._configs["brokers"].get(name, {})

    def all(self, entity_type: str) -> Mapping[str, Mapping[str, str]]:
        """Return the overrides of each entity of the type, by its name, which may be a path: USER/clients/CLIENT."""
        return self._configs[entity_type]

    def read_now(self, entity_type: str, name: str) -> None:
        """Read a change that this broker itself has made, before the notice arrives."""
        try:
            self._read(entity_type, [name], self._store)
        except ZkUnavailable as error:
            log.warning("config change postponed", entity_type=entity_type, name=name, reason=str(error))
            return
        self._tell(entity_type, name)

    def look_up(self, topics: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Return the overrides of these topics now; the last known ones when ZooKeeper does not answer."""
        wanted = list(topics)
        try:
            self._read("topics", wanted, self._store)
        except ZkUnavailable as error:
            log.warning("topic configs unreadable, last known ones used", reason=str(error))
        return {topic: self.of(topic) for topic in wanted}

    def _catch_up(self, *, everything: bool, tell: bool = True) -> None:
        # watched first, then read: changes in between are read twice, and none is missed
        notices = self._session.watch_children([ConfigChanges.path])[ConfigChanges.path]
        changed: list[tuple[str, str]] = []
        if everything:
            for entity_type in _KEPT_TYPES:
                changed += [(entity_type, name) for name in self._read(entity_type, None, self._waiting_store)]
        else:
            news = self._waiting_store.configs.load_config_changes(self._seen)
            notices += [notice for notice, _, _ in news]
            changed = list(dict.fromkeys((entity_type, name) for _, entity_type, name in news))
            for entity_type in _KEPT_TYPES:
                if names := [name for named, name in changed if named == entity_type]:
                    self._read(entity_type, names, self._waiting_store)
        self._seen = max(notices, default=self._seen)
        if tell:
            for entity_type, name in changed:
                self._tell(entity_type, name)
        self._maybe_purge()

    def _maybe_purge(self) -> None:
        """Delete old notices, at most once an interval: it looks at all of them."""
        if self._purged_ms is None or self._clock.monotonic_ms() - self._purged_ms >= _PURGE_INTERVAL_MS:
            self._purged_ms = self._clock.monotonic_ms()
            self._waiting_store.configs.purge_config_changes(self._clock.now_ms())

    def _tell(self, entity_type: str, name: str) -> None:
        log.info("config changed", entity_type=entity_type, name=name)
        if self._on_change is None:
            return
        try:
            self._on_change(entity_type, name)
        except Exception as error:
            log.error("config change failed", entity_type=entity_type, name=name, error=str(error))

    def _read(self, entity_type: str, names: list[str] | None, store: ZkStore) -> list[str]:
        """Read the entities, or all, and keep their overrides. Returns those whose configuration is another now.

        A result is kept only if no other was kept since, else it is read again: an older answer never
        replaces a newer one.
        """
        while True:
            generation = self._generation
            found = store.configs.load_configs(entity_type, names)
            with self._lock:
                if generation != self._generation:
                    continue
                self._generation += 1
                before = self._configs[entity_type]
                kept = {} if names is None else {name: held for name, held in before.items() if name not in names}
                self._configs[entity_type] = after = kept | found
                return [name for name in before | after if before.get(name) != after.get(name)]
