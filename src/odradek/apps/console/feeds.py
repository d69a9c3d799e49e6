"""Feeds of the pages: read again and again while a page is open, and not at all otherwise.

An open page calls `want` with each tick. A wanted feed has a thread and a connection of its own; both end when no page
has wanted it for a few seconds. Pages share feeds: ten open pages of one topic cost as much as one.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from odradek.apps.console.access import CLIENT_ID, SESSION_ENDED, Access
from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient

log = get_logger(__name__)

LEASE_MS = 4_000
READING_TIMEOUT_MS = 3_000
_SHARE_OF_TIME = 6  # slow readings are repeated less often, so that open pages put no load on the cluster
_FEEDS_MAX = 256

UNREADABLE = (KafkaError, ConnectionFailed, UnsupportedByBroker, FatalError)
"""Errors of a request to a cluster; `plainly` is their text for a person."""

_MISSING = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """Latest value of a feed, and the errors since: the page shows both."""

    value: T | None = None
    at_ms: int = 0
    problem: str | None = None
    version: int = 0
    is_missing: bool = False
    """True if the object of the reading doesn't exist."""


class Feed(Generic[T]):
    def __init__(
        self,
        name: str,
        read: Callable[[ClusterClient, T | None], T],
        access: Access,
        interval_ms: int,
        clock: Clock,
        close: Callable[[], None] | None = None,
        trusted: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.name = name
        self._read = read
        self._access = access
        self._interval_ms = interval_ms
        self._clock = clock
        self._close = close
        self._trusted = trusted
        self._wanted_until_ms = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._refresh_now = threading.Event()
        self._fresh = threading.Event()
        self.reading: Reading[T] = Reading()

    def want(self) -> Reading[T]:
        """Return the last reading, and keep the feed alive for a few seconds more. An ended session gets nothing."""
        if self._access.is_closed:
            self.reading = Reading(None, 0, SESSION_ENDED, self.reading.version + 1)
            return self.reading
        with self._lock:
            self._wanted_until_ms = self._clock.monotonic_ms() + LEASE_MS
            if self._thread is None:
                self._fresh.clear()
                self._thread = threading.Thread(target=self._run, name=f"feed {self.name}", daemon=True)
                self._thread.start()
        return self.reading

    def value(self) -> T:
        """Return the value read since a page was opened, for readings that build on this one. Waits for it; never
        called by a page.
        """
        self.want()
        self._fresh.wait(READING_TIMEOUT_MS / 1000)
        reading = self.reading
        if reading.value is None or reading.problem is not None:
            raise FatalError(reading.problem or "the brokers have not answered yet")
        return reading.value

    def latest(self) -> T | None:
        """Return the value read since a page was opened; None before that. Keeps the feed alive as `want` does."""
        reading = self.want()
        return reading.value if self.is_fresh else None

    def refresh_now(self) -> None:
        """Read again now: the data was changed."""
        self._refresh_now.set()

    @property
    def is_fresh(self) -> bool:
        """True if the value was read since a page was opened, this time."""
        return self._fresh.is_set()

    @property
    def is_idle(self) -> bool:
        return self._thread is None

    def _run(self) -> None:
        with ClusterClient(
            self._access.bootstrap,
            client_id=CLIENT_ID,
            timeout_ms=READING_TIMEOUT_MS,
            trusted=self._trusted,
            remembers=True,
            security=self._access.security,
        ) as client:
            while True:
                with self._lock:
                    if self._clock.monotonic_ms() > self._wanted_until_ms or self._access.is_closed:
                        if self._close is not None:
                            self._close()
                        self._thread = None
                        return
                began = self._clock.monotonic_ms()
                self._take(client)
                self._fresh.set()
                took = self._clock.monotonic_ms() - began
                self._refresh_now.wait(max(self._interval_ms, took * _SHARE_OF_TIME) / 1000)
                self._refresh_now.clear()

    def _take(self, client: ClusterClient) -> None:
        before = self.reading
        try:
            value = self._read(client, before.value)
            self.reading = Reading(value, self._clock.now_ms(), None, before.version + 1)
        except UNREADABLE as error:
            is_missing = isinstance(error, KafkaError) and error.code in _MISSING
            known = None if is_missing else before.value
            self.reading = Reading(known, before.at_ms, plainly(error), before.version + 1, is_missing)
        except Exception as error:
            log.exception("feed failed", feed=self.name)
            self.reading = Reading(before.value, before.at_ms, f"{type(error).__name__}: {error}", before.version + 1)


class Feeds:
    """Feeds by key; if there are too many, the longest unused ones are dropped."""

    def __init__(self, access: Access, clock: Clock = SYSTEM_CLOCK) -> None:
        self.access = access
        self.clock = clock
        self._feeds: dict[Hashable, Feed[Any]] = {}
        self._lock = threading.Lock()

    def feed(
        self,
        key: Hashable,
        read: Callable[[ClusterClient, T | None], T],
        interval_ms: int,
        close: Callable[[], None] | None = None,
        trusted: Callable[[], int | None] = lambda: None,
    ) -> Feed[T]:
        """Return the feed of the key, or a new one. `read` gets the former value, to compare; `close` is called when no
        page is open any more; `trusted` names the broker to ask first."""
        with self._lock:
            feed = self._feeds.pop(key, None)
            if feed is None:
                feed = Feed(str(key), read, self.access, interval_ms, self.clock, close, trusted)
            self._feeds[key] = feed  # youngest last
            for old in [k for k, f in self._feeds.items() if f.is_idle][: max(0, len(self._feeds) - _FEEDS_MAX)]:
                del self._feeds[old]
            return feed

    def refresh_now(self) -> None:
        for feed in list(self._feeds.values()):
            feed.refresh_now()


def plainly(error: Exception) -> str:
    """Text of an error without the advice for the command line."""
    if isinstance(error, KafkaError):
        return error.message or error.code.name
    return error.message if isinstance(error, ConnectionFailed) else str(error)
