"""The files of one broker's journal: the directory of the open file, and the number of files to keep.

There may be several directories, on several disks. The journal is in one of them, and continues in another one when
that fails. At a start the broker continues in the directory of its last file. Only the recorder's thread uses it,
except for `abandon`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from odradek.broker.recorder.core.entry import Entry, Kind, maybe_entry
from odradek.broker.recorder.journals import file_name, parse_name

FILES = 8
"""Among how many files the bytes are shared: the oldest goes when there are more."""
_TAIL_BYTES = 1 << 20


class JournalFiles:
    def __init__(self, directories: Sequence[Path], broker_id: int, bytes_max: int, *, makes_them: bool) -> None:
        """`makes_them`: directories that are missing are made. A log directory is not: that it is missing is how its
        failure is noticed."""
        self._directories = tuple(directories)
        self._makes_them = makes_them
        self._broker_id = broker_id
        self._bytes_max = bytes_max
        self._abandoned: set[Path] = set()
        self._file: FileIO | None = None
        self._path: Path | None = None
        self._file_bytes = 0
        self._head_bytes = 0

    # --- the directories -----------------------------------------------------------------------------------------

    def abandon(self, directory: Path) -> None:
        """Stop using a failed directory and directories below it. Any thread."""
        self._abandoned.update(known for known in self._directories if known == directory or directory in known.parents)

    @property
    def directory(self) -> Path | None:
        """Directory of the open file."""
        return None if self._path is None else self._path.parent

    @property
    def must_move(self) -> bool:
        """Return whether the open file's directory has failed and another is left. The last one is used to the end."""
        return self.directory in self._abandoned and bool(self._live())

    def _live(self) -> list[Path]:
        return [directory for directory in self._directories if directory not in self._abandoned]

    # --- the open file -------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def is_full(self) -> bool:
        return self._file_bytes > max(self._bytes_max // FILES, 2 * self._head_bytes)

    def find_last(self) -> tuple[int, list[Path]]:
        """Open the last file of the previous process, to continue after a line torn by a crash.

        Returns the last number in it, 0 without a file; and the unreadable directories, which may contain later lines.
        There are none in a directory that had failed before the last line was written.
        """
        files, missing = self._own_files()
        newest = {path.parent: path for path in files}
        last_seq = 0
        failed: set[str] = set()
        for directory, path in newest.items():
            try:
                entries = _last_entries(path)
            except OSError:
                missing.append(directory)
                continue
            seq = max((entry.seq for entry in entries), default=_first_seq(path))
            if seq >= last_seq:
                last_seq, self._path, failed = seq, path, _failed_before(entries)
        with suppress(OSError):  # it may be readable and not writable: the journal continues in another directory
            self.reopen()
        return last_seq, [directory for directory in missing if str(directory) not in failed]

    def reopen(self) -> None:
        """Continue with the last file. OSError if that fails, or if its directory has failed."""
        if self._path is None or self.must_move:
            raise FileNotFoundError("the journal has no file to go on with")
        self._open(self._path)
        try:
            tail = _tail(self._path)
            if tail and not tail.endswith(b"\n"):
                self.append(b"\n")
        except OSError:
            self.close()
            raise

    def begin(self, first_seq: int, content: Callable[[], bytes], *, elsewhere: bool = False) -> None:
        """Begin a file, where the journal lies or in the first directory that takes it; with `elsewhere` in another.

        `content` is asked for once, when it is known where. Raise OSError of the last directory if none takes it.
        """
        before = self._path
        self.close()
        live = self._live() or list(self._directories)
        here = [directory for directory in live if before is not None and directory == before.parent]
        others = [directory for directory in live if directory not in here]
        failure: OSError = FileNotFoundError("no other directory for the journal")
        data: bytes | None = None
        for directory in others if elsewhere else (*here, *others):
            try:
                self._make(directory)
                self._open(directory / file_name(self._broker_id, first_seq))
                data = content() if data is None else data
                self.append(data)
                self._head_bytes = len(data)
            except OSError as error:
                failure = error
                self.close()
            else:
                self._drop_oldest()
                return
        self._path = before
        raise failure

    def append(self, data: bytes) -> None:
        """OSError if not all of it can be written; then the file may end in a torn line."""
        assert self._file is not None
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) or 0 :]
        self._file_bytes += len(data)

    def close(self) -> None:
        """`directory` stays known."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._path = path
        self._file_bytes = path.stat().st_size

    def _make(self, directory: Path) -> None:
        if self._makes_them:
            directory.mkdir(parents=True, exist_ok=True)

    # --- the others ----------------------------------------------------------------------------------------------

    def _own_files(self) -> tuple[list[Path], list[Path]]:
        """Return the files, oldest first, and the unreadable directories."""
        found: list[tuple[tuple[int, int], Path]] = []
        missing = [directory for directory in self._directories if directory in self._abandoned]
        for directory in self._live():
            try:
                self._make(directory)
                found += _named(directory.iterdir())
            except OSError:
                missing.append(directory)
        return [path for name, path in sorted(found) if name[0] == self._broker_id], missing

    def _drop_oldest(self) -> None:
        """Drop the oldest file; one that can't be deleted is tried again with the next file."""
        files, _ = self._own_files()
        sizes = [_size(path) for path in files]
        while len(sizes) > FILES or (len(sizes) > 1 and sum(sizes) > self._bytes_max):
            sizes.pop(0)
            with suppress(OSError):
                files.pop(0).unlink()


def _named(paths: Iterable[Path]) -> Iterator[tuple[tuple[int, int], Path]]:
    for path in paths:
        name = parse_name(path.name)
        if name is not None:
            yield name, path


def _first_seq(path: Path) -> int:
    name = parse_name(path.name)
    return 0 if name is None else name[1]


def _last_entries(path: Path) -> list[Entry]:
    entries = (maybe_entry(line) for line in _tail(path).decode("utf-8", "replace").splitlines())
    return [entry for entry in entries if entry is not None]


def _failed_before(entries: Sequence[Entry]) -> set[str]:
    """The directories that the broker's last life had given up: nothing was written there any more."""
    failed: set[str] = set()
    for entry in entries:
        if entry.kind == Kind.LIFE and entry.what == "Started":
            failed = set()
        elif entry.kind == Kind.LOG_DIR and entry.directory is not None:
            failed.add(entry.directory)
    return failed


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return file.read()
