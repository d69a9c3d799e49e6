"""The web console that `odradek up` starts beside the brokers, and finds again through their directory.

DIR/console.log, .pid     its output and its process
"""

import sys
import time
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from odradek.local.owned_process import OwnedProcess
from odradek.local.pipeline_projects import remember_projects
from odradek.local.zookeeper_server import port_is_taken

DEFAULT_PORT = 8080
_START_SECONDS_MAX = 15.0
_STOP_SECONDS_MAX = 5.0
_LOOK_SECONDS = 0.05


class LocalConsole:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._process = OwnedProcess(data / "console.pid", data)

    @property
    def is_running(self) -> bool:
        return self._process.pid() is not None

    def start(
        self,
        bootstrap: str,
        port: int | None,
        *,
        lab: bool,
        pipelines: Collection[Path] = (),
        login: Path | None = None,
    ) -> str:
        """Starts it, or says why not; one line for the person who started the cluster. It never fails a cluster.
        `login`: users of the cluster log in, over connections as that file says.
        """
        remember_projects(self._data, pipelines)
        if self.is_running:
            return "the web console is already running" + ("; it shows the pipelines, too" if pipelines else "")
        if find_spec("nicegui") is None:
            return "no web console: it needs NiceGUI, pip install 'odradek[console]'"
        wanted = DEFAULT_PORT if port is None else port
        if port_is_taken(wanted):
            return f"no web console: port {wanted} is taken; choose another with --console PORT"
        command = [sys.executable, "-m", "odradek", "console", "--bootstrap-server", bootstrap, "--port", str(wanted)]
        command += ["--data", str(self._data), *(["--lab"] if lab else [])]
        if login is not None:
            command += ["--login", str(login)]
        self._process.spawn(command, self._data / "console.log")
        return self._begun(wanted)

    def _begun(self, port: int) -> str:
        """Wait until the console answers, so that the printed address works."""
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not port_is_taken(port):
            if self._process.pid() is None:
                return f"no web console: it ended immediately, {self._data / 'console.log'} says why"
            if time.monotonic() > deadline:
                return f"console: http://127.0.0.1:{port}/ (still starting)"
            time.sleep(_LOOK_SECONDS)
        return f"console: http://127.0.0.1:{port}/"

    def stop(self) -> bool:
        return self._process.stop(_STOP_SECONDS_MAX)
