"""Broker CPU of a SCRAM login, and of ACL checks in Produce: `python tools/bench_security.py [--broker-python PYTHON]`.

One broker, and clients that count their work, so that the figures hold on a machine with other load too: processor
time and context switches per login, and processor time per Produce request of 16 KB without an authorizer, as a super
user, and as a user with 10,000 ACLs in the cluster. Rounds in turn, medians. The figures of
docs/decisions/0035-cost-of-a-login.md come from here.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Self

from odradek.apps.lab.bench import login_client
from odradek.apps.lab.bench.produce_client import produce
from odradek.apps.lab.bench.security_figures import ACLS_PER_REQUEST, acl_bindings
from odradek.apps.lab.bench.systems import SCRAM
from odradek.client.acl_admin import create_acls
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.client.topic_admin import create_topic
from odradek.local.server_process import ServerProcess, serves
from odradek.local.zookeeper_server import free_port
from odradek.security.jaas import SCRAM_MODULE

TOPIC, PASSWORD = "orders", "secret"


@dataclass(frozen=True, slots=True)
class Spent:
    """What the broker's process has used so far."""

    cpu_s: float
    system_s: float
    switches: int

    @classmethod
    def by(cls, pid: int) -> Self:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        switches = 0
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status.read_text())))
        return cls(time.clock_gettime(~pid << 3 | 2), int(fields[12]) / os.sysconf("SC_CLK_TCK"), switches)


class Broker:
    """A broker with a PLAINTEXT and a SASL_PLAINTEXT listener."""

    def __init__(self, directory: Path, python: str, extra: list[str], *, authorizer: bool) -> None:
        directory.mkdir()
        self.port, self.sasl_port = free_port(), free_port()
        coordinator = free_port()
        zoo_cfg, properties = directory / "zoo.cfg", directory / "server.properties"
        zoo_cfg.write_text(f"dataDir={directory}/zookeeper\nclientPort={coordinator}\n")
        settings = [
            "broker.id=0",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}",
            f"log.dirs={directory}/data",
            f"zookeeper.connect=127.0.0.1:{coordinator}",
            "offsets.topic.replication.factor=1",
            f"sasl.enabled.mechanisms={SCRAM}",
            f"listener.name.sasl_plaintext.{SCRAM.lower()}.sasl.jaas.config={SCRAM_MODULE} required;",
            *extra,
        ]
        if authorizer:
            settings.append("authorizer.class.name=kafka.security.authorizer.AclAuthorizer")
            settings.append("super.users=User:ANONYMOUS;User:admin")
        properties.write_text("\n".join(settings))

        def coordinates(file: Path) -> list[str]:
            return [python, "-m", "odradek.local.coordination", str(file)]

        def serving(file: Path) -> list[str]:
            return [python, "-m", "odradek", "broker", str(file)]

        self._coordinator = ServerProcess("coordinator", zoo_cfg, directory / "zookeeper.log", coordinates)
        self._process = ServerProcess("broker", properties, directory / "broker.log", serving)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, self._process.last_words()
        return self._process.pid

    def start(self) -> None:
        self._coordinator.start()
        self._process.start()
        self._process.await_serving(lambda: serves(("127.0.0.1", self.port)))
        with self.client() as client:
            for user in ("alice", "admin"):
                alter_credentials(client, user, [NewPassword(SCRAM, PASSWORD)])
            create_topic(client, TOPIC, partitions=1, replication_factor=1)
        time.sleep(1.0)

    def stop(self) -> None:
        self._process.stop()
        self._coordinator.stop()

    def client(self) -> ClusterClient:
        return ClusterClient(f"127.0.0.1:{self.port}", timeout_ms=120_000)

    def add_acls(self) -> None:
        bindings = acl_bindings(TOPIC)
        with self.client() as client:
            for begin in range(0, len(bindings), ACLS_PER_REQUEST):
                create_acls(client, bindings[begin : begin + ACLS_PER_REQUEST])
        time.sleep(2.0)

    def logins(self, clients: int, seconds: float) -> dict[str, float]:
        """Figures per login, of so many clients at once."""
        with get_context("fork").Pool(clients) as pool:
            before = Spent.by(self.pid)
            work = [("scram", self.sasl_port, seconds, "alice", PASSWORD)] * clients
            count = sum(pool.starmap(login_client.main, work))
            after = Spent.by(self.pid)
        return {
            "logins/s": count / seconds,
            "CPU µs": (after.cpu_s - before.cpu_s) / count * 1e6,
            "system µs": (after.system_s - before.system_s) / count * 1e6,
            "switches": (after.switches - before.switches) / count,
        }

    def produce(self, user: str, requests: int) -> float:
        """CPU in microseconds of one Produce request."""
        before = Spent.by(self.pid).cpu_s
        produce(self.sasl_port, user, PASSWORD, TOPIC, 1, requests)
        return (Spent.by(self.pid).cpu_s - before) / requests * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker-python", default=sys.executable, help="interpreter of an environment to compare with")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of server.properties")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--only", choices=("logins", "acls"))
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="odradek-security-") as directory:
        brokers = {
            kind: Broker(Path(directory) / str(kind), options.broker_python, options.set, authorizer=kind)
            for kind in (True, False)
        }
        try:
            for broker in brokers.values():
                broker.start()
            if options.only != "acls":
                measure_logins(brokers[False], options.rounds, options.seconds)
            if options.only != "logins":
                brokers[True].add_acls()
                measure_acls(brokers[True], brokers[False], options.rounds, options.requests)
        finally:
            for broker in brokers.values():
                broker.stop()


def measure_logins(broker: Broker, rounds: int, seconds: float) -> None:
    for clients in (1, 4):
        broker.logins(clients, seconds / 2)
        measured = [broker.logins(clients, seconds) for _ in range(rounds)]
        figures = ", ".join(f"{name} {median(each[name] for each in measured):,.1f}" for name in measured[0])
        print(f"logins, {clients} clients: {figures}", flush=True)


def measure_acls(broker: Broker, open_broker: Broker, rounds: int, requests: int) -> None:
    cases = {"no authorizer": (open_broker, "alice"), "super user": (broker, "admin"), "ACLs": (broker, "alice")}
    measured: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name in cases if turn % 2 else reversed(cases):
            cost = cases[name][0].produce(cases[name][1], requests)
            if turn:
                measured[name].append(cost)
    for name, costs in measured.items():
        print(f"Produce of 16 KB, {name}: CPU µs {median(costs):.1f}, from {min(costs):.1f} to {max(costs):.1f}")


if __name__ == "__main__":
    main()
