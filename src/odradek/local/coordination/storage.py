"""Files of the server: snapshots, and a log of the transactions after them.

Recovery reads the newest snapshot that is whole and the transactions after it, up to the first that is torn: it was
being written when the server died, so nobody was answered. A gap between transactions is another matter: something is
lost that was answered, and the server doesn't start.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.local.coordination.core.coordinator import Coordinator
from odradek.local.coordination.core.sessions import SessionTable
from odradek.local.coordination.core.transactions import CloseSessionTxn, CreateSessionTxn, LoggedTxn
from odradek.local.coordination.core.tree import DataTree
from odradek.local.coordination.snapshots import Snapshot, read_newest, snapshot_files, write_snapshot
from odradek.local.coordination.transaction_log import LogWriter, log_files, zxid_of

_log = get_logger(__name__)

_SNAPSHOT_AFTER_ENTRIES = 10_000
_SNAPSHOT_AFTER_BYTES = 8 << 20
_SNAPSHOTS_KEPT = 3
_EPOCH_BITS = 32


@dataclass(slots=True)
class _Recovery:
    tree: DataTree
    timeouts: dict[int, int]
    zxid: int
    replayed: int = 0

    def replay(self, logged: LoggedTxn) -> None:
        if logged.zxid <= self.zxid:
            return
        same_epoch = logged.zxid >> _EPOCH_BITS == self.zxid >> _EPOCH_BITS
        if same_epoch and logged.zxid != self.zxid + 1:
            raise FatalError(
                f"transactions between 0x{self.zxid:x} and 0x{logged.zxid:x} are missing: restore the directory from "
                "a backup, or remove it to start with an empty one"
            )
        self.tree.apply(logged, [])
        match logged.txn:
            case CreateSessionTxn(timeout_ms):
                self.timeouts[logged.session_id] = timeout_ms
            case CloseSessionTxn():
                self.timeouts.pop(logged.session_id, None)
        self.zxid = logged.zxid
        self.replayed += 1


class Storage:
    def __init__(self, directory: Path) -> None:
        self._directory = directory / "version-2"
        self.log = LogWriter(self._directory)

    def recover(self, tick_ms: int, now_ms: int) -> Coordinator:
        """Rebuild the state before the server stopped, with every answered transaction."""
        self._directory.mkdir(parents=True, exist_ok=True)
        snapshot, faults = read_newest(self._directory)
        for fault in faults:
            _log.warning("snapshot ignored", fault=fault)
        found = snapshot or Snapshot(DataTree(), {}, 0)
        recovery = _Recovery(found.tree, dict(found.timeouts), found.zxid)
        files = log_files(self._directory)
        behind = [n for n, file in enumerate(files) if file.first_zxid <= found.zxid]
        for file in files[behind[-1] if behind else 0 :]:
            for logged in file.entries():
                recovery.replay(logged)
        if files and (torn := files[-1].cut_torn_end()):
            _log.warning("torn end of the transaction log removed", file=files[-1].path, bytes=torn)
        sessions = SessionTable(tick_ms)
        for session_id, timeout_ms in recovery.timeouts.items():
            sessions.open(session_id, timeout_ms, now_ms)
        coordinator = Coordinator(recovery.tree, sessions, recovery.zxid)
        if snapshot is None or recovery.replayed >= _SNAPSHOT_AFTER_ENTRIES:
            self.snapshot(coordinator)
        _log.info("recovered", zxid=f"0x{recovery.zxid:x}", znodes=len(recovery.tree), replayed=recovery.replayed)
        return coordinator

    def commit(self) -> None:
        """Write and sync all transactions that were appended. Raises FatalError: then nothing may be answered."""
        with self._writing():
            self.log.commit()

    def snapshot_if_due(self, coordinator: Coordinator) -> None:
        if self.log.entries >= _SNAPSHOT_AFTER_ENTRIES or self.log.size >= _SNAPSHOT_AFTER_BYTES:
            self.snapshot(coordinator)

    def snapshot(self, coordinator: Coordinator) -> None:
        with self._writing():
            self.log.roll()
            timeouts = coordinator.sessions.timeouts()
            write_snapshot(self._directory, Snapshot(coordinator.tree, timeouts, coordinator.last_zxid))
            self._purge()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FatalError(f"{self._directory} can't be written: {error.strerror or error}") from error

    def _purge(self) -> None:
        """Keep a few snapshots, and the log from the oldest of them on."""
        snapshots = snapshot_files(self._directory)
        kept, old = snapshots[:_SNAPSHOTS_KEPT], snapshots[_SNAPSHOTS_KEPT:]
        oldest_zxid = zxid_of(kept[-1])
        files = log_files(self._directory)
        for file, following in pairwise(files):
            if following.first_zxid <= oldest_zxid + 1:
                file.path.unlink()
        for path in old:
            path.unlink()
