"""Rotation of a process's own log file: standard output and standard error move to a new file when it is full.

For brokers that `odradek up` started. Elsewhere standard output belongs to systemd's journal or to the container, which
have bounds of their own.
"""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

LOG_FILE_VARIABLE = "ODRADEK_LOG_FILE"
"""Environment variable with the path of the file that standard output already writes to."""
FILE_BYTES_MAX = 10 * 1024 * 1024
FILES_MAX = 5


class RotatedOutput:
    """File behind descriptors 1 and 2. The newest of the earlier files is FILE.1; the oldest is dropped."""

    def __init__(self, path: Path, *, bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._lock = threading.Lock()
        self._size = path.stat().st_size if path.exists() else 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """Return None unless the variable is set and the file is the one that standard output writes to."""
        path = Path(environment.get(LOG_FILE_VARIABLE, ""))
        try:
            is_ours = os.path.samestat(path.stat(), os.fstat(1)) if path.is_file() else False
        except OSError:
            is_ours = False
        return cls(path) if is_ours else None

    def written(self, characters: int) -> None:
        with self._lock:
            self._size += characters
            if self._size >= self._bytes_max:
                self._rotate()

    def _rotate(self) -> None:
        for number in range(self._files_max - 2, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.dup2(new, 1)
        os.dup2(new, 2)
        os.close(new)
        self._size = 0

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
