"""Ids and passwords of sessions.

An id begins with the time of the server's start, so that no id is given twice. A password is derived from the id with a
secret that stays in the server's directory: no other client can take over a session.
"""

import hashlib
import hmac
import os
from collections.abc import Container
from pathlib import Path

_SECRET_BYTES = 32
_PASSWORD_BYTES = 16


class SessionIds:
    def __init__(self, directory: Path, wall_ms: int) -> None:
        self._secret = _secret(directory / "session-secret")
        # Of the time the low 40 bits, which last for 34 years; the highest byte is the server's number, 0.
        self._next = (wall_ms & ((1 << 40) - 1)) << 16

    def next(self, taken: Container[int]) -> int:
        """`taken`: sessions that live, should the clock have been put back."""
        while True:
            self._next = (self._next + 1) & ((1 << 56) - 1)
            if self._next and self._next not in taken:
                return self._next

    def password(self, session_id: int) -> bytes:
        message = session_id.to_bytes(8, "big", signed=True)
        return hmac.digest(self._secret, message, hashlib.sha256)[:_PASSWORD_BYTES]

    def is_password(self, session_id: int, password: bytes) -> bool:
        return session_id != 0 and hmac.compare_digest(password, self.password(session_id))


def _secret(file: Path) -> bytes:
    try:
        secret = file.read_bytes()
        if len(secret) == _SECRET_BYTES:
            return secret
    except FileNotFoundError:
        pass
    secret = os.urandom(_SECRET_BYTES)
    arriving = file.with_suffix(".new")
    descriptor = os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    arriving.rename(file)
    return secret
