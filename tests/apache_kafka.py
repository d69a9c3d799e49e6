"""Real Apache Kafka for comparison: where its jars come from, and one broker of it with a ZooKeeper of its own."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from class_archive import class_path
from java_program import SHORT_LIVED, temporary_files
from obtaining import Unobtainable
from odradek.local.java import find_java
from odradek.local.server_process import ServerProcess, serves
from odradek.local.zookeeper_server import EmbeddedZooKeeper, free_port

_ROOT = Path(__file__).parent.parent
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


_BROKER_LOG4J = """\
log4j.rootLogger=WARN, out
log4j.logger.kafka.cluster.Partition=INFO
log4j.logger.kafka.controller=INFO
log4j.logger.state.change.logger=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %m (%c{1})%n
"""


def jars_of(project: str, variable: str) -> Path:
    """The directory that the variable names, else `.tools/PROJECT-lib`, filled once as tests/PROJECT/pom.xml says."""
    if given := os.environ.get(variable):
        if not Path(given).is_dir():
            raise Unobtainable(f"{variable}={given} is not there")
        return Path(given)
    directory = _ROOT / ".tools" / f"{project}-lib"
    if not directory.exists():
        _fetch(_ROOT / "tests" / project / "pom.xml", directory)
    return directory


def kafka_jars() -> Path:
    return jars_of("kafka", "ODRADEK_KAFKA_LIB")


def kafka4_jars() -> Path:
    return jars_of("kafka4", "ODRADEK_KAFKA4_LIB")


def _fetch(pom: Path, directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unobtainable(f"{directory.name}: its jars need mvn")
    arriving = directory.with_suffix(f".{os.getpid()}")
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={arriving}"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if outcome.returncode != 0:
        shutil.rmtree(arriving, ignore_errors=True)
        raise Unobtainable(f"mvn could not fetch {directory.name}: {(outcome.stdout + outcome.stderr)[-500:]}")
    arriving.rename(directory)


def broker_command(jars: Path) -> Callable[[Path], Sequence[str]]:
    """Command that runs one broker of a cluster from its server.properties, in a directory of its own."""

    def command(properties: Path) -> Sequence[str]:
        log4j = properties.with_name("log4j.properties")
        log4j.write_text(_BROKER_LOG4J)
        options = ["-Xms128m", "-Xmx256m", *SHORT_LIVED, temporary_files(properties.parent)]
        options += [f"-Dlog4j.configuration=file:{log4j}", *class_path(jars)]
        # By default the cleaner alone takes half of this heap, in one piece, and is not always given it.
        override = ("--override", "log.cleaner.dedupe.buffer.size=4194304")
        return [str(find_java()), *options, "kafka.Kafka", str(properties), *override]

    return command


class KafkaPeer:
    """One Apache Kafka broker, id 0, on a free port. `before_start` gets the address of its ZooKeeper."""

    def __init__(
        self,
        jars: Path,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        before_start: Callable[[str], None] = lambda zookeeper: None,
        jvm: Sequence[str] = (),
    ) -> None:
        self._jvm = jvm
        self._settings = dict(settings or {})
        self._before_start = before_start
        self._jars = jars
        self._directory = directory
        self._port = free_port()
        self._zookeeper = EmbeddedZooKeeper(directory / "zookeeper")
        self._properties = directory / "server.properties"
        self._process = ServerProcess("Apache Kafka", self._properties, directory / "broker.log", self._command)
        self.data_dir = directory / "logs"

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def zookeeper(self) -> str:
        return self._zookeeper.connect

    def start(self) -> None:
        self._zookeeper.start()
        (self._directory / "log4j.properties").write_text(_LOG4J)
        self._properties.write_text(
            f"broker.id=0\nbroker.rack=rack-a\nlisteners=PLAINTEXT://127.0.0.1:{self._port}\n"
            f"log.dirs={self.data_dir}\nzookeeper.connect={self.zookeeper}\nzookeeper.session.timeout.ms=6000\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "offsets.topic.num.partitions=5\ntransaction.state.log.num.partitions=5\n"
            "group.initial.rebalance.delay.ms=0\n"
            "transaction.state.log.min.isr=1\n" + "".join(f"{key}={value}\n" for key, value in self._settings.items())
        )
        self._before_start(self.zookeeper)
        self._process.start()
        self._process.await_serving(lambda: serves(("127.0.0.1", self._port)), seconds_max=90, poll_seconds=0.1)

    def stop(self) -> None:
        self._process.stop(patience_seconds=30)
        self._zookeeper.stop()

    def _command(self, properties: Path) -> Sequence[str]:
        log4j = f"-Dlog4j.configuration=file:{self._directory / 'log4j.properties'}"
        options = [*SHORT_LIVED, *self._jvm, "-Xms256m", "-Xmx640m", temporary_files(properties.parent), log4j]
        options += class_path(self._jars)
        return [str(find_java()), *options, "kafka.Kafka", str(properties)]
