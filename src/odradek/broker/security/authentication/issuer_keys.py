"""Keys of a token issuer: `sasl.oauthbearer.jwks.endpoint.url`, a file or an https address, kept up to date.

A thread of its own fetches them: at start, every `….refresh.ms`, after `….retry.backoff.ms` where that failed, and soon
when a token names a key that isn't there. The verification of a token waits for no fetch: without keys, tokens are
refused.
"""

import threading
from collections import OrderedDict
from typing import Protocol

from odradek.base.clock import Clock
from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.base.value_classes import dataclass
from odradek.security.https import Provider, RequestFailed, read_bounded
from odradek.security.jwks import KeySet, parse_key_set
from odradek.security.stores import file_marks

log = get_logger(__name__)

JWKS_KEY = "sasl.oauthbearer.jwks.endpoint.url"
_KEY_ID_LENGTH_MAX = 1000
_ASKED_MAX = 16
_ASK_AGAIN_MS = 60_000
_FILE_CHECK_MS = 5_000


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int


class IssuerKeys(Protocol):
    @property
    def current(self) -> KeySet: ...

    def ask_for(self, key_id: str | None) -> None:
        """Ask for a newer set, because a token names an unknown key."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class FileKeys:
    """Keys in a file, which is read again when it changes."""

    def __init__(self, provider: Provider, listener_name: str) -> None:
        """ConfigError where the file can't be used."""
        assert provider.url.file is not None
        self._file = provider.url.file
        self._listener_name = listener_name
        self._marks = file_marks([str(self._file)])
        self.current = self._read()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(target=self._run, name=f"jwks-{listener_name}")

    def ask_for(self, key_id: str | None) -> None:
        """Do nothing: a file is checked periodically anyway."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_FILE_CHECK_MS / 1000):
            marks = file_marks([str(self._file)])
            if marks == self._marks:
                continue
            self._marks = marks
            try:
                self.current = self._read()
            except ConfigError as error:
                log.error("changed issuer keys can't be used", listener=self._listener_name, reason=str(error))
            else:
                log.info("issuer keys reloaded", listener=self._listener_name, keys=len(self.current.keys))

    def _read(self) -> KeySet:
        try:
            return parse_key_set(read_bounded(JWKS_KEY, self._file))
        except ValueError as error:
            raise ConfigError(f"{JWKS_KEY}: {self._file} is no key set: {error}") from None


class FetchedKeys:
    """Keys behind an https address."""

    def __init__(self, provider: Provider, listener_name: str, times: RefreshTimes, clock: Clock) -> None:
        self.current = KeySet()
        self._provider = provider
        self._listener_name = listener_name
        self._times = times
        self._clock = clock
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._changed = threading.Condition()
        self._is_asked = self._is_stopping = False
        self._thread = SupervisedThread(target=self._run, name=f"jwks-{listener_name}")

    def ask_for(self, key_id: str | None) -> None:
        """Fetch for an unknown key id, at most once a minute for each of a few ids, so that forged tokens can't cause
        more."""
        if key_id is None or len(key_id) > _KEY_ID_LENGTH_MAX:
            return
        now_ms = self._clock.monotonic_ms()
        with self._changed:
            asked_ms = self._asked.get(key_id)
            if asked_ms is not None and now_ms - asked_ms < _ASK_AGAIN_MS:
                return
            oldest_ms = next(iter(self._asked.values()), None)
            if oldest_ms is not None and len(self._asked) >= _ASKED_MAX:
                if now_ms - oldest_ms < _ASK_AGAIN_MS:
                    return
                self._asked.popitem(last=False)
            self._asked[key_id] = now_ms
            self._asked.move_to_end(key_id)
            self._is_asked = True
            self._changed.notify()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(1)  # a fetch that is on its way ends by itself

    def _run(self) -> None:
        failures = 0
        while not self._is_stopping:
            failures = 0 if self._fetch() else failures + 1
            with self._changed:
                self._changed.wait_for(lambda: self._is_asked or self._is_stopping, self._pause_ms(failures) / 1000)
                self._is_asked = False

    def _pause_ms(self, failures: int) -> int:
        times = self._times
        if not failures:
            return times.refresh_ms
        return min(times.retry_ms << min(failures - 1, 20), max(times.retry_ms, times.retry_max_ms), times.refresh_ms)

    def _fetch(self) -> bool:
        try:
            found = parse_key_set(self._provider.get())
        except (RequestFailed, ValueError) as error:
            log.error("issuer keys can't be fetched", listener=self._listener_name, reason=str(error))
            return False
        if found != self.current:
            log.info("issuer keys fetched", listener=self._listener_name, keys=len(found.keys))
            self.current = found
        return True
