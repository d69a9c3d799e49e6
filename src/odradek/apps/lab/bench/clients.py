"""Runs the foreign clients (Kafka's Java tools, kcat, the Java probes beside this file) and reads their figures."""

import itertools
import json
import random
import re
import shutil
import string
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odradek.apps.lab.bench.systems import BenchError, System

RUN_LIMIT_S = 180.0
ADMIN_LIMIT_S = 30.0
ADMIN_REQUEST_S = 5.0
Metrics = dict[str, float]

PRODUCER_SUMMARY = re.compile(
    r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
    r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th"
)
LATENCY_SUMMARY = re.compile(r"Avg latency: ([\d.]+) ms")
LOG4J = """\
log4j.rootLogger=ERROR, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.SimpleLayout
"""


@dataclass(frozen=True, slots=True)
class Records:
    """A producer's load."""

    count: int
    bytes_each: int

    @property
    def bytes_all(self) -> int:
        return self.count * self.bytes_each


@dataclass(frozen=True, slots=True)
class Batching:
    batch_bytes: int
    linger_ms: int


@dataclass(frozen=True, slots=True)
class SecuredWay:
    """A listener that is not PLAINTEXT, and the client's file that it takes."""

    bootstrap: str
    config: Path


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of one benchmark run; `directory` holds the compiled probes and the payloads."""

    kafka_lib: Path
    directory: Path

    def prepare(self) -> None:
        (self.directory / "log4j.properties").write_text(LOG4J)
        sources = [str(source) for source in Path(__file__).parent.glob("*.java")]
        run(["javac", "-cp", f"{self.kafka_lib}/*", "-d", str(self.directory), *sources])

    def producer_performance(
        self,
        system: System,
        topic: str,
        records: Records,
        batching: Batching,
        acks: str,
        options: Sequence[str] = (),
        way: SecuredWay | None = None,
    ) -> Metrics:
        """Throughput, and the latency that the producer sees at full load; the tool counts whole milliseconds."""
        arguments = ["--topic", topic, "--num-records", str(records.count), "--throughput", "-1"]
        arguments += ["--payload-file", str(self._payload(records.bytes_each))]
        if way is not None:
            arguments += ["--producer.config", str(way.config)]
        arguments += ["--producer-props", *options]
        arguments += [f"bootstrap.servers={way.bootstrap if way else system.bootstrap}", f"acks={acks}"]
        arguments += [f"batch.size={batching.batch_bytes}", f"linger.ms={batching.linger_ms}"]
        output = self._java("org.apache.kafka.tools.ProducerPerformance", *arguments)
        summary = PRODUCER_SUMMARY.search(output.strip().splitlines()[-1])
        if summary is None or int(summary[1]) != records.count:
            raise BenchError(f"ProducerPerformance: {output.strip()[-300:]}")
        return {
            "records_per_s": float(summary[2]),
            "mb_per_s": float(summary[3]),
            "p50_ms": float(summary[4]),
            "p99_ms": float(summary[5]),
            "bytes": records.bytes_all,
        }

    def consumer_performance(self, system: System, topic: str, records: Records) -> Metrics:
        arguments = ["--bootstrap-server", system.bootstrap, "--topic", topic, "--messages", str(records.count)]
        output = self._java("org.apache.kafka.tools.ConsumerPerformance", *arguments, "--timeout", "30000")
        names, values = (line.split(", ") for line in output.strip().splitlines()[-2:])
        row = dict(zip(names, values, strict=True))
        if int(row["data.consumed.in.nMsg"]) < records.count:
            raise BenchError(f"ConsumerPerformance: {output.strip()[-300:]}")
        return {"records_per_s": float(row["fetch.nMsg.sec"]), "bytes": records.bytes_all}

    def end_to_end_latency(self, system: System, topic: str, count: int, acks: str) -> Metrics:
        arguments = [system.bootstrap, topic, str(count), acks, "100"]
        output = self._java("org.apache.kafka.tools.EndToEndLatency", *arguments)
        summary = LATENCY_SUMMARY.search(output)
        if summary is None:
            raise BenchError(f"EndToEndLatency: {output.strip()[-300:]}")
        return {"avg_ms": float(summary[1])}

    def probe(
        self,
        mode: str,
        system: System,
        topic: str,
        *arguments: object,
        way: SecuredWay | None = None,
        program: str = "Probe",
    ) -> Metrics:
        bootstrap = way.bootstrap if way else system.bootstrap
        options = [f"-Dclient.config={way.config}"] if way else []
        output = self._java(program, mode, bootstrap, topic, *map(str, arguments), options=options)
        metrics: Metrics = json.loads(output)
        return metrics

    def kcat_produce(self, system: System, topic: str, records: Records, *settings: str) -> Metrics:
        lines = self._lines(records)
        options = [word for setting in settings for word in ("-X", setting)]
        start = time.monotonic()
        run(["kcat", "-P", "-b", system.bootstrap, "-t", topic, *options, "-l", str(lines)])
        return {"records_per_s": records.count / (time.monotonic() - start), "bytes": records.bytes_all}

    def kcat_consume(self, system: System, topic: str, records: Records) -> Metrics:
        start = time.monotonic()
        command = 'kcat -C -b "$0" -t "$1" -o beginning -e -q | wc -l'
        read = int(run(["sh", "-c", command, system.bootstrap, topic]))
        if read < records.count:
            raise BenchError(f"kcat read {read} of {records.count} records")
        return {"records_per_s": read / (time.monotonic() - start), "bytes": read * records.bytes_each}

    def _java(self, tool: str, *arguments: str, options: Sequence[str] = ()) -> str:
        class_path = f"{self.kafka_lib}/*:{self.directory}"
        log4j = f"-Dlog4j.configuration=file:{self.directory}/log4j.properties"
        return run(["java", "-Xmx1g", log4j, *options, "-cp", class_path, tool, *arguments])

    def _payload(self, bytes_each: int) -> Path:
        """A thousand records in a file: drawing random letters would keep the tool busier than sending them."""
        path = self.directory / f"payload-{bytes_each}"
        if not path.exists():
            letters = random.Random(bytes_each)
            path.write_text(
                "\n".join("".join(letters.choices(string.ascii_letters, k=bytes_each)) for _ in range(1000))
            )
        return path

    def _lines(self, records: Records) -> Path:
        path = self.directory / f"lines-{records.bytes_each}-{records.count}"
        if not path.exists():
            with path.open("w") as lines:
                lines.writelines(f"{number:0{records.bytes_each}d}\n" for number in range(records.count))
        return path


def run(command: list[str]) -> str:
    """The standard output of a client that succeeded."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]}: no end after {RUN_LIMIT_S:.0f} s") from None
    if result.returncode:
        raise BenchError((result.stderr.strip() or result.stdout.strip())[-600:])
    return result.stdout


def has_kcat() -> bool:
    return shutil.which("kcat") is not None


@contextmanager
def topic(system: System, name: str, partitions: int, config: Mapping[str, str] | None = None) -> Iterator[str]:
    """Create a topic for the duration of a block, on every broker, with librdkafka's admin client, which starts no
    JVM."""
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    new = NewTopic(name, partitions, system.size, config=dict(config or {}))
    patience_s = max(ADMIN_REQUEST_S, partitions / 20)
    made, gone = KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART
    administer(system, lambda admin: admin.create_topics([new], request_timeout=patience_s)[name], made)
    try:
        yield name
    finally:
        administer(system, lambda admin: admin.delete_topics([name], request_timeout=patience_s)[name], gone)


def alter_topic(system: System, name: str, key: str, value: str) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    administer(system, lambda admin: admin.incremental_alter_configs([resource])[resource])


def administer(system: System, request: Callable[[Any], Future[Any]], done: int | None = None) -> None:
    """A broker that has just started answers before it knows its controller and topics.

    A client that asked too early keeps that answer, so each attempt is a new client's. `done` is the error of an
    attempt after an abandoned one that has succeeded.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    end = time.monotonic() + ADMIN_LIMIT_S
    for attempt in itertools.count():
        admin = AdminClient({"bootstrap.servers": system.bootstrap, "log_level": 0})
        try:
            request(admin).result()
            return
        except KafkaException as error:
            if attempt and error.args[0].code() == done:
                return
            if time.monotonic() > end:
                raise BenchError(str(error)) from error
            time.sleep(0.2)
