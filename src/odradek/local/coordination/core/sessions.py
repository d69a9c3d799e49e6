"""Sessions: how long each one lives without a word of its client.

Time is divided into ticks; a session expires at the end of the tick in which its timeout is up, so it lives a bit
longer than promised, never shorter.
"""

from collections.abc import Mapping

from odradek.base.value_classes import dataclass


@dataclass(slots=True)
class _Session:
    timeout_ms: int
    expires_ms: int


class SessionTable:
    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._sessions: dict[int, _Session] = {}
        self._expiring: dict[int, set[int]] = {}
        """Sessions by the moment at which they expire, which is a multiple of a tick."""

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._sessions

    def timeouts(self) -> Mapping[int, int]:
        return {session_id: session.timeout_ms for session_id, session in self._sessions.items()}

    def open(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        self._sessions[session_id] = _Session(timeout_ms, 0)
        self.touch(session_id, timeout_ms, now_ms)

    def touch(self, session_id: int, timeout_ms: int, now_ms: int) -> bool:
        """Its client was heard; False when there is no such session."""
        session = self._sessions.get(session_id)
        if session is None:
            return False
        expires_ms = ((now_ms + timeout_ms) // self._tick_ms + 1) * self._tick_ms
        if session.expires_ms != expires_ms:
            self._forget(session_id, session)
            session.expires_ms = expires_ms
            self._expiring.setdefault(expires_ms, set()).add(session_id)
        return True

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._forget(session_id, session)

    def restart(self, now_ms: int) -> None:
        """Give every session its whole timeout again, after the server was away."""
        self._expiring.clear()
        for session_id, session in self._sessions.items():
            session.expires_ms = 0
            self.touch(session_id, session.timeout_ms, now_ms)

    def expired(self, now_ms: int) -> list[int]:
        return sorted(s for moment, sessions in self._expiring.items() if moment <= now_ms for s in sessions)

    def next_expiry_ms(self) -> int | None:
        return min(self._expiring, default=None)

    def _forget(self, session_id: int, session: _Session) -> None:
        if sessions := self._expiring.get(session.expires_ms):
            sessions.discard(session_id)
            if not sessions:
                del self._expiring[session.expires_ms]
