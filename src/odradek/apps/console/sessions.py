"""Sessions of users who logged in: limited in number and time, found by a secret that only the browser has."""

import secrets
import threading
from dataclasses import dataclass
from hashlib import sha256

from odradek.apps.console.access import Access
from odradek.base.clock import Clock

SESSION_MS = 12 * 3600 * 1000
IDLE_MS = 3600 * 1000
_SESSIONS_MAX = 1_000
_SESSIONS_OF_A_USER_MAX = 20


@dataclass(slots=True)
class Session:
    name: str
    access: Access | None
    """Access of this user; None: all users share the console's."""
    until_ms: int
    used_ms: int


class Sessions:
    """Thread-safe. A session ends by logging out, after twelve hours, after an hour without an open page, or when its
    credentials are refused; its access is closed then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def open(self, name: str, access: Access | None) -> str:
        """Return the secret of a new session. Where there are too many, the oldest ends."""
        now = self._clock.now_ms()
        token = secrets.token_urlsafe(32)
        with self._lock:
            for key in [key for key, session in self._sessions.items() if _has_ended(session, now)]:
                self._end(key)
            own = [key for key, session in self._sessions.items() if session.name == name]
            for key in own[: max(0, len(own) + 1 - _SESSIONS_OF_A_USER_MAX)]:
                self._end(key)
            while len(self._sessions) >= _SESSIONS_MAX:
                self._end(next(iter(self._sessions)))
            self._sessions[_digest(token)] = Session(name, access, now + SESSION_MS, now)
        return token

    def find(self, token: str) -> Session | None:
        """Return the session of that secret, and count it as used."""
        now = self._clock.now_ms()
        with self._lock:
            session = self._sessions.get(_digest(token))
            if session is None:
                return None
            if _has_ended(session, now):
                self._end(_digest(token))
                return None
            session.used_ms = now
            return session

    def close(self, token: str) -> None:
        with self._lock:
            if _digest(token) in self._sessions:
                self._end(_digest(token))

    def _end(self, key: str) -> None:
        access = self._sessions.pop(key).access
        if access is not None:
            access.close()


def _has_ended(session: Session, now_ms: int) -> bool:
    refused = session.access is not None and session.access.is_closed
    return refused or now_ms >= session.until_ms or now_ms - session.used_ms > IDLE_MS


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
