"""The session with ZooKeeper: kazoo behind one small door.

Owns the client and its threads. Requests are functions that start an asynchronous kazoo operation; many can be
submitted at once, and they are answered in order; a request that was lost with the connection is sent again when it is
back. What happens to the connection and to the session goes to one listener, changes of watched znodes to another, on
kazoo threads: both may only enqueue.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ConfigError, FatalError
from odradek.base.logs import get_logger
from odradek.broker.zk.handler import PipeliningHandler
from odradek.broker.zk.watches import Watches, WatchKind
from odradek.broker.zk.zk_security import PLAIN, ZkSecurity

log = get_logger(__name__)

Request = Callable[[KazooClient], Any]
"""Starts one asynchronous operation on the client and returns kazoo's pending result."""

# Limit of one caller. A server takes about a thousand requests of all its clients before it stops reading.
IN_FLIGHT_MAX = 500
# Of a session's timeout a third is for finding a server that answers, but a server under load gets this long.
_CONNECT_SECONDS_MIN = 2.0
# How often a wait without a time limit checks whether the session was closed.
_PATIENCE_SECONDS = 1.0
_LOST = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)


class ZkUnavailable(Exception):
    """ZooKeeper did not answer in time; the request may have been executed or not."""


class SessionEvent(Enum):
    CONNECTION_LOST = "the connection broke; the session and its ephemeral nodes still live"
    CONNECTION_RESTORED = "the same session goes on"
    SESSION_LOST = "the session expired: its ephemeral nodes are gone"
    SESSION_RENEWED = "a new session began: register again"


# By the client's previous state and its new one. The first connection is no event.
_EVENTS = {
    (KazooState.CONNECTED, KazooState.SUSPENDED): SessionEvent.CONNECTION_LOST,
    (KazooState.SUSPENDED, KazooState.CONNECTED): SessionEvent.CONNECTION_RESTORED,
    (KazooState.CONNECTED, KazooState.LOST): SessionEvent.SESSION_LOST,
    (KazooState.SUSPENDED, KazooState.LOST): SessionEvent.SESSION_LOST,
    (KazooState.LOST, KazooState.CONNECTED): SessionEvent.SESSION_RENEWED,
}


class _ErrorsToOurLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.error("ZooKeeper client error", message=self.format(record))


def _kazoo_logger() -> logging.Logger:
    """Logger of kazoo: errors only, because we log changes of the connection ourselves."""
    logger = logging.Logger("kazoo", logging.ERROR)
    logger.addHandler(_ErrorsToOurLog())
    return logger


class ZkSession:
    """`connect` is `zookeeper.connect`: hosts with ports, and optionally a path under which everything lives."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        in_flight_max: int = IN_FLIGHT_MAX,
        listener: Callable[[SessionEvent], None] = lambda event: None,
        on_znode: Callable[[str], None] = lambda path: None,
        clock: Clock = SYSTEM_CLOCK,
        security: ZkSecurity = PLAIN,
    ) -> None:
        self.connect_string = connect
        self.session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._in_flight_max = in_flight_max
        self._listener = listener
        self._clock = clock
        self._connected = threading.Event()
        self._closing = False
        self._given_up: Callable[[], bool] | None = None
        """Set while every request waits for ZooKeeper: whether that has an end."""
        self._state: str | None = None
        self._session_id: int | None = None
        self._own_sessions: set[int] = set()
        self._watches = Watches(on_znode)
        handler = PipeliningHandler(security.tls)
        try:
            self._client = (_acl_client() if security.sets_acls else KazooClient)(
                hosts=connect,
                timeout=session_timeout_ms / 1000,
                connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0},
                logger=_kazoo_logger(),
                handler=handler,
                auth_data=[] if security.digest is None else [("digest", security.digest)],
            )
        except ValueError as error:
            raise ConfigError(f"zookeeper.connect={connect!r} is not a list of HOST:PORT ({error})") from error
        if security.login is not None:
            from odradek.broker.zk.sasl_connection import log_in_with_sasl

            log_in_with_sasl(self._client, security.login)
        thirds = 3 * len(self._client.hosts)
        handler.connect_seconds_max = max(_CONNECT_SECONDS_MIN, session_timeout_ms / 1000 / thirds)
        self._client.add_listener(self._on_state)

    def start(self) -> None:
        """Connects, and creates the path of the connect string where it is missing."""
        # kazoo is connected a moment before it notifies its listeners of the session's id
        seconds = self._connection_timeout_ms / 1000
        if not (self._client.start_async().wait(seconds) and self._connected.wait(seconds)):
            raise self._no_first_answer()
        try:
            self._create_chroot()
        except ZkUnavailable:
            raise self._no_first_answer() from None
        except InvalidACLError:
            self.close()
            raise FatalError(
                f"ZooKeeper at {self.connect_string} doesn't know who this broker is, so zookeeper.set.acl can't be "
                "obeyed: on its side a certificate needs authProvider.x509 and the secure port"
            ) from None
        log.info("zookeeper session started", connect=self.connect_string, session=f"{self.session_id:#x}")

    def _no_first_answer(self) -> FatalError:
        self.close()
        return FatalError(
            f"ZooKeeper at {self.connect_string} did not answer within {self._connection_timeout_ms} ms: start it, "
            "or correct zookeeper.connect (zookeeper.connection.timeout.ms says how long to wait)"
        )

    def close(self) -> None:
        """Ends the session; its ephemeral nodes go at once."""
        self._closing = True
        self._watches.close()
        self._connected.set()  # threads that wait for a connection see that there will be none
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            # a server without an answer: the session expires by itself
            log.warning("zookeeper session close failed", error=str(error))

    @contextmanager
    def waiting_for_server(self, given_up: Callable[[], bool]) -> Iterator[None]:
        """Make every request of the block wait until ZooKeeper is available, for the start of a broker: as in Kafka,
        only the first connection has a time limit. `ZkUnavailable` soon after `given_up` returns True.
        """
        self._given_up = given_up
        try:
            yield
        finally:
            self._given_up = None

    @property
    def session_id(self) -> int:
        """Id of the current session, or of the last one."""
        if self._session_id is None:
            raise ZkUnavailable(f"there is no session with ZooKeeper at {self.connect_string}")
        return self._session_id

    def is_own(self, session_id: int) -> bool:
        """Return whether that is this session, or an earlier one that this session followed."""
        return session_id in self._own_sessions

    def call(self, request: Request, *, until_available: bool = False) -> Any:
        """One request; its error is raised."""
        (outcome,) = self.pipeline([request], until_available=until_available)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def pipeline(self, requests: Sequence[Request], *, until_available: bool = False) -> list[Any]:
        """Send as many requests as may be in flight, and return the result of each, or ZooKeeper's error.

        Without an answer for as long as a connection may take it raises `ZkUnavailable`; with
        `until_available` it waits until ZooKeeper is back, or the session is closed.
        """
        outcomes: list[Any] = []
        for start in range(0, len(requests), self._in_flight_max):
            outcomes.extend(self._exchange(requests[start : start + self._in_flight_max], until_available))
        return outcomes

    def watch_children(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """Call `on_znode` once when a child of one of these nodes is created or deleted. Returns the children that
        there are now.

        A node that doesn't exist has none; its creation is reported.
        """
        watches = self._watches
        outcomes = self.pipeline([_children(path, watches) for path in paths], until_available=True)
        found = dict(zip(paths, outcomes, strict=True))
        missing = [path for path, outcome in found.items() if isinstance(outcome, NoNodeError)]
        if missing:
            created = [path for path, exists in self.watch_nodes(missing).items() if exists]
            found |= {path: [] for path in missing}
            if created:
                found |= self.watch_children(created)
        for outcome in found.values():
            if isinstance(outcome, Exception):
                raise outcome
        return found

    def watch_nodes(self, paths: Sequence[str]) -> dict[str, bool]:
        """Call `on_znode` once when one of these nodes is created, written or deleted. Return the existing ones."""
        watches = self._watches
        outcomes = self.pipeline([_existence(path, watches) for path in paths], until_available=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return {path: outcome is not None for path, outcome in zip(paths, outcomes, strict=True)}

    def ensure_paths(self, paths: Sequence[str]) -> None:
        """Create the nodes, without content, and their parents; existing ones are left alone."""
        wanted = dict.fromkeys(prefix for path in paths for prefix in _prefixes(path))
        outcomes = self.pipeline([_creation(path) for path in wanted])
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, NodeExistsError):
                raise outcome

    def _create_chroot(self) -> None:
        chroot, self._client.chroot = self._client.chroot, ""
        if chroot:
            self.ensure_paths([chroot])
        self._client.chroot = chroot

    def _exchange(self, requests: Sequence[Request], until_available: bool) -> list[Any]:
        waits = until_available or self._given_up is not None
        deadline_ms = None if waits else self._clock.monotonic_ms() + self._connection_timeout_ms
        outcomes: list[Any] = [ConnectionLoss()] * len(requests)
        while lost := [i for i, outcome in enumerate(outcomes) if isinstance(outcome, _LOST)]:
            self._await_connection(deadline_ms)
            pending = [(i, requests[i](self._client)) for i in lost]
            # answers come in order: after a wait for the last one, all are there
            self._collect(pending[-1][1], deadline_ms)
            for i, result in pending:
                outcomes[i] = self._collect(result, deadline_ms)
        return outcomes

    def _collect(self, result: Any, deadline_ms: int | None) -> Any:
        while True:
            try:
                return result.get(timeout=self._seconds_until(deadline_ms))
            except KazooTimeoutError as error:
                if deadline_ms is not None or self._is_over():
                    raise self._unavailable() from error
            except ConnectionClosedError as error:
                raise self._unavailable() from error
            except KazooException as error:
                return error

    def _await_connection(self, deadline_ms: int | None) -> None:
        while not self._connected.wait(self._seconds_until(deadline_ms)):
            if deadline_ms is not None or self._is_over():
                raise self._unavailable()
        if self._closing:
            raise self._unavailable()

    def _is_over(self) -> bool:
        given_up = self._given_up
        return self._closing or (given_up is not None and given_up())

    def _seconds_until(self, deadline_ms: int | None) -> float:
        if deadline_ms is None:
            return _PATIENCE_SECONDS
        return max(0, deadline_ms - self._clock.monotonic_ms()) / 1000

    def _unavailable(self) -> ZkUnavailable:
        return ZkUnavailable(f"ZooKeeper at {self.connect_string} does not answer")

    def _on_state(self, state: str) -> None:
        previous, self._state = self._state, state
        connected = state == KazooState.CONNECTED
        if connected:
            self._session_id = int(self._client.client_id[0])
            self._own_sessions.add(self._session_id)
            self._connected.set()
        elif not self._closing:
            self._connected.clear()
        event = _EVENTS.get((previous, state))
        if event is not None and not self._closing:
            log.warning("zookeeper session changed", change=event.name.lower(), meaning=event.value)
            self._listener(event)
        self._watches.connection_changed(connected=connected)


def _acl_client() -> Callable[..., KazooClient]:
    from odradek.broker.zk.acl_client import AclClient

    return AclClient


def _creation(path: str) -> Request:
    return lambda zk: zk.create_async(path, None)


def _children(path: str, watches: Watches) -> Request:
    return lambda zk: zk.get_children_async(path, watch=watches.watcher(path, WatchKind.CHILDREN))


def _existence(path: str, watches: Watches) -> Request:
    return lambda zk: zk.exists_async(path, watch=watches.watcher(path, WatchKind.NODE))


def _prefixes(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]
