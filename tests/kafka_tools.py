"""Kafka's own command line tools, run in one JVM for as long as a test needs them (see tests/kafka/ToolServer.java)."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import NamedTuple, Self

from class_archive import class_path
from java_program import SHORT_LIVED, compiled, temporary_files

CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMain",
}
TOOL_S_MAX = 120.0
_END_S_MAX = 30.0
_PATIENCE = {"kafka-consumer-groups": ("--timeout", "60000")}
"""Options for tools that otherwise give up after five seconds."""
_LOG4J = """\
log4j.rootLogger=ERROR, e
log4j.appender.e=org.apache.log4j.ConsoleAppender
log4j.appender.e.target=System.err
log4j.appender.e.follow=true
log4j.appender.e.layout=org.apache.log4j.PatternLayout
log4j.appender.e.layout.ConversionPattern=%p %m%n
"""


class Printed(NamedTuple):
    status: int
    text: str
    """Output of both streams."""
    output: str
    """Standard output alone."""


class KafkaTools:
    """As a context: the JVM runs while it is entered. `directory` is for its settings."""

    def __init__(self, jars: Path, directory: Path, jvm: Sequence[str] = ()) -> None:
        self._jars = jars
        self._jvm = jvm
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).parent / "kafka" / "ToolServer.java"
        log4j = self._directory / "log4j.properties"
        log4j.write_text(_LOG4J)
        options = ["-Xmx256m", *SHORT_LIVED, temporary_files(self._directory), *self._jvm]
        options.append(f"-Dlog4j.configuration=file:{log4j}")
        self._process = subprocess.Popen(
            ["java", *options, *class_path(self._jars, compiled(source, self._jars)), "ToolServer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Its standard input ends, and with it the JVM."""
        if self._process is not None:
            try:
                self._process.communicate(timeout=_END_S_MAX)
            finally:
                self._process.kill()

    def exchange(self, bootstrap: str, config: Path, topic: str) -> None:
        """Create a topic, write two records to it and read them back, with the client settings of the file."""
        common = ("--bootstrap-server", bootstrap)
        made = self.run("kafka-topics", *common, "--command-config", config, "--create", "--topic", topic)
        assert made.status == 0, made.text
        sent = self.run(
            "kafka-console-producer", *common, "--producer.config", config, "--topic", topic, stdin="one\ntwo\n"
        )
        assert sent.status == 0, sent.text
        read = self.run(
            "kafka-console-consumer", *common, "--consumer.config", config, "--topic", topic, "--from-beginning",
            "--max-messages", "2", "--timeout-ms", "20000",
        )  # fmt: skip
        assert read.output.split()[:2] == ["one", "two"], read.text

    def run(self, tool: str, *arguments: object, stdin: str = "") -> Printed:
        """Return the tool's output and exit status. The tool is one of `CLASSES`, or the name of another class."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        words = [
            CLASSES.get(tool, tool),
            *(b64encode(str(word).encode()).decode() for word in (stdin, *arguments, *_PATIENCE.get(tool, ()))),
        ]
        process.stdin.write("\t".join(words) + "\n")
        process.stdin.flush()
        limit = Timer(TOOL_S_MAX, process.kill)
        limit.start()
        try:
            answer = process.stdout.readline()
        finally:
            limit.cancel()
        assert answer, f"{tool} {arguments} did not come to an end"
        status, *printed = answer.rstrip("\n").split("\t")
        text, output = (b64decode(each).decode() for each in printed)
        return Printed(int(status), text, output)
