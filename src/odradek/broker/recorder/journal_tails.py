"""Additions to journals since the last reading: each file is read from the position where the last reading ended."""

from collections.abc import Sequence
from pathlib import Path

from odradek.broker.recorder.core.entry import Entry, maybe_entry


class JournalTails:
    def __init__(self, mark: bytes = b"") -> None:
        """Reads the lines that have this `mark`; others are not even parsed."""
        self._mark = mark
        self._read_bytes: dict[Path, int] = {}

    @property
    def files(self) -> frozenset[Path]:
        """Files of the last look."""
        return frozenset(self._read_bytes)

    def added(self, files: Sequence[Path]) -> list[Entry]:
        """Return new entries of whole lines only: a line that is being written is read with the next look."""
        self._read_bytes = {path: self._read_bytes.get(path, 0) for path in files}
        return [entry for path in files for entry in self._added(path)]

    def _added(self, path: Path) -> list[Entry]:
        found: list[Entry] = []
        try:
            with path.open("rb") as file:
                file.seek(self._read_bytes[path])
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read_bytes[path] += len(line)
                    if self._mark in line and (entry := maybe_entry(line.decode("utf-8", "replace"))) is not None:
                        found.append(entry)
        except FileNotFoundError:
            pass  # rotated away since it was found
        return found
