"""Foreign producers as processes, and what their output says they were told.

Both kinds are idempotent, ask for acks=all and keep five requests in flight. What they print is their history; their
log, with timestamps, is kept beside it to explain a failure.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from chaos.clients import await_condition
from chaos.history import Acknowledged, Failed, History, Sent
from class_archive import class_path
from odradek.local.java import find_java
from odradek.model.topology import TopicPartition

STOP_S_MAX: Final = 300.0
_SCRIPT: Final = Path(__file__).with_name("librdkafka_producer.py")
_UNKNOWN: Final = TopicPartition("", -1)
_JVM: Final = ("-Xms32m", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOG4J: Final = """\
log4j.rootLogger=WARN, out
log4j.logger.org.apache.kafka.clients.producer.internals=DEBUG
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c{1}: %m%n
"""
# VerifiableProducer turns retries off and asks for nothing else; its records may wait for as long as a run lasts.
_JAVA_SETTINGS: Final = {
    "enable.idempotence": "true",
    "retries": "2147483647",
    "max.in.flight.requests.per.connection": "5",
    "linger.ms": "5",
    "delivery.timeout.ms": "600000",
    "max.block.ms": "600000",
    "buffer.memory": "67108864",
}


class ForeignProducer:
    """A process that writes records; `name` is the part of each value that is its own."""

    def __init__(self, name: str, directory: Path, niceness: int = 0) -> None:
        self.name = name
        self._niceness = niceness
        self.printed = directory / f"{name}.out"
        self.complaints = directory / f"{name}.err"
        self._process: subprocess.Popen[bytes] | None = None

    def _spawn(self, command: Sequence[str]) -> None:
        with self.printed.open("wb") as output, self.complaints.open("wb") as errors:
            nice = ["nice", "-n", str(self._niceness)]
            self._process = subprocess.Popen([*nice, *command], stdin=subprocess.PIPE, stdout=output, stderr=errors)

    def write_to(self, topic: str, partitions: int, burst: int = 0) -> None:
        """Write to this topic too."""
        raise NotImplementedError

    def begin_stop(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Send no more, and wait until everything was answered."""
        if (process := self._process) is None:
            return
        self.begin_stop()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def fault(self) -> str | None:
        """Why it ended badly, if it did."""
        code = None if self._process is None else self._process.poll()
        return None if code in (0, 143) else f"{self.name} ended with {code}, see {self.complaints}"

    def tell(self, history: History) -> None:
        """Add what it printed to the history."""
        raise NotImplementedError


class LibrdkafkaProducer(ForeignProducer):
    def __init__(
        self,
        name: str,
        directory: Path,
        bootstrap: str,
        *,
        rate: float = 1000.0,
        settings: dict[str, Any] | None = None,
        niceness: int = 0,
    ) -> None:
        super().__init__(name, directory, niceness)
        options = {"name": name, "bootstrap": bootstrap, "rate": rate, "settings": settings or {}}
        self._spawn([sys.executable, str(_SCRIPT), json.dumps(options)])

    def write_to(self, topic: str, partitions: int, burst: int = 0) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{topic} {partitions} {burst}\n".encode())
        self._process.stdin.flush()

    def learn_leaders(self, topic: str) -> None:
        """Ask the cluster, and wait for the answer."""
        assert self._process is not None
        assert self._process.stdin is not None
        before = self.printed.read_bytes().count(b"M 0\n")
        self._process.stdin.write(f"{topic} ?\n".encode())
        self._process.stdin.flush()
        assert await_condition(lambda: self.printed.read_bytes().count(b"M 0\n") > before, 60)

    def begin_stop(self) -> None:
        assert self._process is not None
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def tell(self, history: History) -> None:
        count = 0
        known: dict[tuple[str, str], TopicPartition] = {}
        with self.printed.open() as lines:
            for line in lines:
                kind, number, *rest = line.split(maxsplit=5)
                if kind in "SM":
                    count = max(count, int(number))
                    continue
                tp = known.setdefault((rest[0], rest[1]), TopicPartition(rest[0], int(rest[1])))
                sent = Sent(self.name, int(number), tp)
                if kind == "A":
                    history.acknowledged.append(Acknowledged(sent, int(rest[2]), 0.0))
                else:
                    history.failed.append(Failed(sent, rest[3], definite=rest[2] == "1"))
        history.sent += [Sent(self.name, number, _UNKNOWN) for number in range(count)]


class JavaProducer(ForeignProducer):
    """Kafka's VerifiableProducer: one topic, a JSON line per acknowledgement. Its values are `NAME.NUMBER`, and NAME is
    a number."""

    def __init__(
        self, name: str, directory: Path, bootstrap: str, kafka_lib: Path, *, topic: str, rate: float = 1000.0
    ) -> None:
        super().__init__(name, directory)
        log4j = self.printed.with_suffix(".log4j")
        log4j.write_text(LOG4J)
        config = self.printed.with_suffix(".properties")
        config.write_text("".join(f"{key}={value}\n" for key, value in {**_JAVA_SETTINGS, "client.id": name}.items()))
        java = [str(find_java()), *_JVM, f"-Dlog4j.configuration=file:{log4j}", *class_path(kafka_lib)]
        tool = ["org.apache.kafka.tools.VerifiableProducer", "--topic", topic, "--bootstrap-server", bootstrap]
        options = ["--throughput", str(int(rate)), "--acks", "-1", "--producer.config", str(config)]
        self._spawn([*java, *tool, *options, "--value-prefix", name])

    def write_to(self, topic: str, partitions: int, burst: int = 0) -> None:
        """It finds new partitions of its topic by itself, and knows no other topic."""

    def begin_stop(self) -> None:
        assert self._process is not None
        self._process.terminate()

    def tell(self, history: History) -> None:
        count = 0
        known: dict[tuple[str, int], TopicPartition] = {}
        with self.printed.open() as lines:
            for line in lines:
                said = json.loads(line) if line.startswith("{") else {}
                if said.get("name") == "tool_data":
                    count = max(count, int(said["sent"]))
                if said.get("name") not in ("producer_send_success", "producer_send_error"):
                    continue
                number = int(said["value"].partition(".")[2])
                count = max(count, number + 1)
                if said["name"] == "producer_send_error":
                    history.failed.append(Failed(Sent(self.name, number, _UNKNOWN), said["message"], definite=False))
                    continue
                place = said["topic"], said["partition"]
                sent = Sent(self.name, number, known.setdefault(place, TopicPartition(*place)))
                history.acknowledged.append(Acknowledged(sent, said["offset"], 0.0))
        history.sent += [Sent(self.name, number, _UNKNOWN) for number in range(count)]
