"""The shop that `odradek pipeline init` writes, in processes: customers, drivers, Spark clusters; and its books."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyspark

from odradek.apps.demo.proof import Proof, prove
from odradek.apps.pipeline.sample_orders import CATEGORIES, OrderMaker, Sent, Shop
from odradek.apps.pipeline.spark_home import unzipped_spark_home
from odradek.apps.pipeline.status import read_status
from odradek.local.zookeeper_server import free_port

PATIENCE_S = 400
SOURCES = Path(__file__).parents[2] / "src"


class Driver:
    """`odradek pipeline run` on a project, which can be killed and started again."""

    def __init__(self, project: Path, *arguments: str, python: Path = Path(sys.executable)) -> None:
        """`python` is of an environment that has Spark, and need not have Odradek."""
        self._python = python
        self._project = project
        self._arguments = arguments
        self._log = project.parent / "run.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(self._python), "-m", "odradek", "pipeline", "run", str(self._project), *self._arguments]
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        with self._log.open("ab") as log:
            # a session of its own: with the driver its JVM and workers must die too, as on a machine that is gone
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(PATIENCE_S) == 0, self._log.read_text()

    def run_once(self) -> None:
        """Everything that is there, in a process that ends."""
        self._arguments = (*self._arguments, "--once") if "--once" not in self._arguments else self._arguments
        self.start()
        assert self.process is not None
        try:
            assert self.process.wait(PATIENCE_S) == 0, self._log.read_text()
        finally:
            if self.process.poll() is None:
                self.kill()

    def await_rows(self, count: int) -> None:
        """Until every query has nothing left to read, and the table's has seen so many."""
        deadline, calm = time.monotonic() + PATIENCE_S, 0
        while calm < 4:
            assert self.process is not None
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, read_status(self._project)
            status = read_status(self._project)
            # what the run before this one has left says nothing
            queries = status["queries"] if status and status["pid"] == self.process.pid else []
            done = queries and all(q["lag"] == 0 for q in queries) and queries[0]["input_rows_total"] >= count
            calm = calm + 1 if done else 0
            time.sleep(0.5)


def sell(bootstrap: str, seconds: float, rate: int = 150, seed: int = 1, name: str = "shop") -> Sent:
    with Shop(bootstrap, orders=f"{name}.orders", categories=f"{name}.categories") as shop:
        shop.describe(CATEGORIES)
        return shop.sell(OrderMaker(seed), rate, seconds)


def selling(bootstrap: str, seconds: float, seed: int = 1) -> tuple[threading.Thread, Callable[[], Sent]]:
    sent: list[Sent] = []
    thread = threading.Thread(target=lambda: sent.append(sell(bootstrap, seconds, seed=seed)))
    thread.start()

    def result() -> Sent:
        thread.join()
        return sent[0]

    return thread, result


def books(bootstrap: str, project: Path, sent: Sent, name: str = "shop") -> Proof:
    return prove(sent, project / "data" / "orders", bootstrap, f"{name}.dead-letters", f"{name}.revenue")


def forget_last_batch(project: Path, query: str) -> None:
    """As if the driver had died after the batch was written and before Spark had noted so: it comes again."""
    commits = project / ".odradek" / "checkpoint" / "g1" / query / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)


def await_server(port: int) -> None:
    """Until somebody answers there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return
        time.sleep(0.2)
    raise AssertionError(f"nobody answers on port {port}")


def spark_wheel() -> Path:
    return Path(pyspark.__file__).parent


class StandaloneSpark:
    """A Spark master and workers of one core each, on free ports."""

    def __init__(self, directory: Path, workers: int) -> None:
        self._directory = directory
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> str:
        self._directory.mkdir()
        port = free_port()
        self._spawn("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        await_server(port)
        master = f"spark://127.0.0.1:{port}"
        for number in range(self._workers):
            work = ("--work-dir", str(self._directory / f"work-{number}"), "--cores", "1", "--memory", "1g")
            self._spawn("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", *work, master)
        return master

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _spawn(self, role: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it would take a port that is always the same
        }
        # a script that becomes Java
        command = [str(spark_wheel() / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments]
        with (self._directory / "spark.log").open("ab") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))


class ConnectServer:
    """A Spark Connect server on a free port, local and with two cores."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> str:
        self._directory.mkdir()
        port = free_port()
        settings = (f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false")
        options = [word for setting in settings for word in ("--conf", setting)]
        service = "org.apache.spark.sql.connect.service.SparkConnectServer"
        home = unzipped_spark_home(self._directory)  # workers that start in half the time
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *options, "--class", service]
        with (self._directory / "connect.log").open("ab") as log:
            # spark-submit is a script that becomes Java; its Python workers go with it
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._directory, start_new_session=True
            )
        await_server(port)
        return f"sc://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(60)
