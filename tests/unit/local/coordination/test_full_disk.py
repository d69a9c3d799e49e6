"""A full disk ends the server: what can't be written is not answered, and nothing that was answered is lost."""

import errno
import os
import threading
from pathlib import Path

import pytest

from cluster.coordination.raw_client import RawClient, create
from odradek.base.errors import FatalError
from odradek.local.coordination.server import CoordinationServer
from odradek.local.coordination.settings import ServerSettings
from odradek.local.coordination.storage import Storage
from odradek.local.zookeeper_server import free_port

TICK_MS = 500


def _full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Running:
    def __init__(self, directory: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._server = CoordinationServer(ServerSettings(directory, int(self.address.partition(":")[2])))
        self.failure: FatalError | None = None
        self._server.start()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._server.run()
        except FatalError as error:
            self.failure = error

    def ended(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("call", ["pwrite", "write"])
def test_the_reason_is_told_and_the_server_recovers(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _Running(tmp_path)
    if call != "write":  # of a new file
        client = RawClient(running.address)
        assert client.call(create("/answered", b"x", 0)).error == 0
    with monkeypatch.context() as disk:
        disk.setattr(os, call, _full)
        with pytest.raises(OSError):
            RawClient(running.address).call(create("/refused", b"x", 0))
        running.ended()
    assert str(running.failure) == f"{tmp_path / 'version-2'} can't be written: No space left on device"
    tree = Storage(tmp_path).recover(TICK_MS, now_ms=0).tree
    paths = [path for path, _ in tree.walk()]
    assert ("/answered" in paths) == (call != "write")
    assert "/refused" not in paths
