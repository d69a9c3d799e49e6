"""Archives of Kafka's and ZooKeeper's classes: a JVM that maps them parsed and verified starts with half of the
processor time.

    python tests/class_archive.py     make the archives, once for a Java and a set of jars; `make setup` does

The classes are those that a broker and some tools load, and a ZooKeeper. A JVM takes no harm from an archive of other
jars: it reads the jars then, as it does without one.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kazoo.client import KazooClient

from odradek.base.errors import FatalError
from odradek.local import zookeeper_server
from odradek.local.java import find_java
from odradek.local.zookeeper_jars import zookeeper_classpath

_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Otherwise a JVM complains of an unfit archive on standard output, where tests read what a program prints."""
_DUMP_S_MAX: Final = 300
_TOOLS_DIRECTORY: Final = Path(__file__).parent.parent / ".tools"
_TOPIC: Final = ("--topic", "trained")
_TOOLS: Final = (
    ("kafka-topics", "--create", *_TOPIC, "--partitions", "2"),
    ("kafka-topics", "--describe", *_TOPIC),
    ("kafka-console-producer", *_TOPIC),
    ("kafka-verifiable-producer", *_TOPIC, "--max-messages", "10"),
    ("kafka-console-consumer", *_TOPIC, "--from-beginning", "--max-messages", "2", "--group", "trained"),
    ("kafka-consumer-groups", "--describe", "--group", "trained"),
    ("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "trained"),
    ("kafka-get-offsets", *_TOPIC),
    ("kafka-leader-election", "--election-type", "preferred", *_TOPIC, "--partition", "0"),
)


def class_path(jars: Path, *more: object) -> list[str]:
    """The options of a JVM that runs something of these jars, or with them. The archive lies beside them."""
    archive = _archive(jars)
    shared = [f"-XX:SharedArchiveFile={archive}", *_QUIET] if archive.exists() else []
    return [*shared, "-cp", ":".join([f"{jars}/*", *map(str, more)])]


def _archive(jars: Path) -> Path:
    return jars.parent / f"{jars.name}-{_key(sorted(jars.glob('*.jar')))}.jsa"


def _key(jars: Iterable[Path]) -> str:
    found = [find_java().resolve(), *jars]
    told = "\n".join(f"{path} {path.stat().st_mtime_ns}" for path in found)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def share_zookeeper_classes() -> None:
    """Every ZooKeeper that this process starts from now on maps the archive, where there is one."""
    try:
        archive = _zookeeper_archive()
    except FatalError:  # without Java none is started
        return
    if archive.exists():
        zookeeper_server._JVM_OPTIONS = (*zookeeper_server._JVM_OPTIONS, f"-XX:SharedArchiveFile={archive}", *_QUIET)


def _zookeeper_archive() -> Path:
    return _TOOLS_DIRECTORY / f"zookeeper-{_key(map(Path, zookeeper_classpath().split(':')))}.jsa"


def make_zookeeper() -> None:
    """A server that has served a client writes the archive when it stops."""
    archive = _zookeeper_archive()
    if archive.exists():
        return
    arriving = archive.with_suffix(f".{os.getpid()}")
    archive.parent.mkdir(exist_ok=True)
    options = zookeeper_server._JVM_OPTIONS
    zookeeper_server._JVM_OPTIONS = (*options, f"-XX:ArchiveClassesAtExit={arriving}", *_QUIET)
    with TemporaryDirectory() as place:
        server = zookeeper_server.EmbeddedZooKeeper(Path(place))
        try:
            server.start()
            _use(server.connect)
        finally:
            server.stop()
            zookeeper_server._JVM_OPTIONS = options
    arriving.rename(archive)


def _use(connect: str) -> None:
    client = KazooClient(connect)
    client.start()
    client.ensure_path("/a/b")
    client.set("/a/b", b"c")
    client.get_children("/a", watch=lambda event: None)
    transaction = client.transaction()
    transaction.create("/a/d", b"", ephemeral=True)
    transaction.delete("/a/b")
    transaction.commit()
    client.stop()
    client.close()


def make(jars: Path) -> None:
    archive = _archive(jars)
    if archive.exists():
        return
    with TemporaryDirectory() as place:
        names = Path(place) / "names"
        names.write_text("".join(f"{name}\n" for name in _loaded(jars, Path(place))))
        arriving = archive.with_suffix(f".{os.getpid()}")
        command = [str(find_java()), "-Xshare:dump", "-XX:+UseG1GC", *_QUIET, f"-XX:SharedClassListFile={names}"]
        command += [f"-XX:SharedArchiveFile={arriving}", "-cp", f"{jars}/*"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_DUMP_S_MAX)
        arriving.rename(archive)


def _loaded(jars: Path, place: Path) -> Sequence[str]:
    """Names of classes, in the JVM's own notation."""
    from apache_kafka import KafkaPeer
    from kafka_tools import KafkaTools

    of_broker, of_tools = place / "broker", place / "tools"
    peer = KafkaPeer(jars, place / "kafka", jvm=(f"-XX:DumpLoadedClassList={of_broker}",))
    try:
        peer.start()
        with KafkaTools(jars, place / "server", jvm=(f"-XX:DumpLoadedClassList={of_tools}",)) as tools:
            for tool, *arguments in _TOOLS:
                tools.run(tool, "--bootstrap-server", peer.bootstrap_servers, *arguments, stdin="a\nb\n")
    finally:
        peer.stop()
    return list(dict.fromkeys(line for names in (of_broker, of_tools) for line in names.read_text().splitlines()))


if __name__ == "__main__":
    from apache_kafka import kafka_jars
    from obtaining import Unobtainable

    try:
        make_zookeeper()
        share_zookeeper_classes()
        make(kafka_jars())
    except (Unobtainable, FatalError, OSError, subprocess.SubprocessError) as reason:
        sys.stderr.write(f"no archive of classes, so that ZooKeeper or Kafka's tools start slowly: {reason}\n")
