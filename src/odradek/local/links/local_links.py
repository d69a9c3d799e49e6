"""The links of a local cluster, kept in its directory.

DIR/links/plan.json           addresses of the targets
DIR/links/cuts.json           what is cut at the moment
DIR/links/relay.log, .pid     the relay's output and process
"""

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.links.cuts import CutFrom, Cuts, read_cuts, write_cuts
from odradek.local.links.plan import Link, Plan, read_plan, unlinked
from odradek.local.owned_process import OwnedProcess
from odradek.local.zookeeper_server import free_port, port_is_taken

PLAN_FILE, CUTS_FILE = "plan.json", "cuts.json"
_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 5.0


class LocalLinks:
    def __init__(self, data: Path) -> None:
        self._directory = data / "links"
        self._plan_file = self._directory / PLAN_FILE
        self._cuts_file = self._directory / CUTS_FILE
        self._process = OwnedProcess(self._directory / "relay.pid", self._directory)

    @property
    def exist(self) -> bool:
        """Return whether brokers of this directory may be linked."""
        return self._plan_file.exists()

    @property
    def cuts(self) -> Cuts:
        return read_cuts(self._cuts_file)

    def plan(self, zookeeper: str, brokers: Iterable[int]) -> None:
        """Find ports for brokers without one; the others keep theirs."""
        known = read_plan(self._plan_file) if self.exist else Plan(zookeeper, (), {})
        ports = {link.target: link.port for link in known.servers}
        servers = zookeeper.partition("/")[0].split(",")
        new = {broker: Link(free_port(), f"127.0.0.1:{free_port()}") for broker in brokers}
        plan = Plan(
            zookeeper,
            tuple(Link(ports.get(server) or free_port(), server) for server in servers),
            {**new, **known.brokers},
        )
        if plan != known or not self.exist:
            self._directory.mkdir(parents=True, exist_ok=True)
            self.stop()
            plan.save(self._plan_file)

    def linked(self, broker: int, properties: Mapping[str, str]) -> dict[str, str]:
        return read_plan(self._plan_file).linked(broker, properties)

    def unlinked(self, properties: Mapping[str, str]) -> dict[str, str]:
        return unlinked(properties, read_plan(self._plan_file).zookeeper) if self.exist else dict(properties)

    def start(self) -> None:
        """Starts the relay, unless it runs already, with nothing cut."""
        if self._process.pid() is not None:
            return
        write_cuts(self._cuts_file, {})
        plan = read_plan(self._plan_file)
        log_file = self._directory / "relay.log"
        self._process.spawn([sys.executable, "-m", "odradek.local.links", str(self._directory)], log_file)
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not all(port_is_taken(link.port) for link in (*plan.servers, *plan.brokers.values())):
            if self._process.pid() is None or time.monotonic() >= deadline:
                raise FatalError(f"the relay between the brokers did not start (see {log_file})")
            time.sleep(0.02)

    def stop(self) -> bool:
        return self._process.stop(_STOP_SECONDS_MAX)

    def cut(self, broker: int, whom: Iterable[CutFrom]) -> None:
        """Cut all connections between the broker and these targets, in both directions."""
        write_cuts(self._cuts_file, {**self.cuts, broker: frozenset(whom)})

    def heal(self, broker: int) -> None:
        write_cuts(self._cuts_file, {other: whom for other, whom in self.cuts.items() if other != broker})
