"""A broker that one test has to itself, to crash it, to damage its files and to attack it."""

import io
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from odradek.apps.cli import main
from odradek.base.config.properties import format_properties
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.local.server_process import ServerProcess, serves
from odradek.local.zookeeper_server import free_port
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from odradek.protocol.record_batch import NO_TIMESTAMP, batches, build_batch
from odradek.protocol.records import Record, read_records
from waiting import PATIENCE_S, eventually

LAST_FETCH_BY_NAME = 12
LAST_FETCH_FROM_LEADERS_ONLY = 10
NOT_LED_YET = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
FETCH_BYTES = 8 << 20
# A crashed broker's registration is gone after the session, and a restart has to wait for that.
QUICK = {
    "zookeeper.session.timeout.ms": "1000",
    "zookeeper.connection.timeout.ms": "18000",  # without it, the session's: a busy ZooKeeper takes longer
    "offsets.topic.replication.factor": "1",
}
STEADY = {"zookeeper_session_timeout_ms": "30000"}
"""Settings of a broker that no test kills: a machine that stalls for seconds doesn't cost it its session."""


class OwnBroker:
    def __init__(self, directory: Path, zookeeper: str, **settings: str) -> None:
        """Dots of a configuration key are written as underscores."""
        self.directory = directory
        self.port = free_port()
        properties = {
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "logs"),
            "zookeeper.connect": f"{zookeeper}/{directory.name}",
            **QUICK,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self.log_dirs = [Path(path) for path in properties["log.dirs"].split(",")]
        self._properties_file = directory / "server.properties"
        self._properties = properties
        self.set({})
        self._log_file = directory / "broker.log"
        self._log_file.touch()
        self._has_started = False
        self._process = ServerProcess("the broker", self._properties_file, self._log_file)

    def set(self, properties: Mapping[str, str]) -> None:
        """Settings of the next start, besides those that it has."""
        self._properties |= properties
        self._properties_file.write_text(format_properties(self._properties))

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None, f"the broker is gone:\n{self.log[-2000:]}"
        return pid

    @property
    def log(self) -> str:
        return self._log_file.read_text(errors="replace")

    @property
    def cpu_s(self) -> float:
        """Return the CPU time of all its threads, by the system's clock for that process (`clock_getcpuclockid`)."""
        return time.clock_gettime(~self.pid << 3 | 2)

    @property
    def rss_bytes(self) -> int:
        return self._memory("VmRSS")

    @property
    def peak_rss_bytes(self) -> int:
        return self._memory("VmHWM")

    def forget_peak_rss(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _memory(self, name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def start(self) -> str:
        """Returns what it logged until it served."""
        before = len(self.log)
        self._has_started = True
        self._process.start()
        eventually(lambda: self.pid > 0 and serves(("127.0.0.1", self.port)))
        return self.log[before:]

    @property
    def is_running(self) -> bool:
        return self._process.pid is not None

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> int | None:
        """The exit code of a clean stop, or of the end that it had already."""
        if not self._has_started:
            return None
        self._process.stop(patience_seconds=30)
        return self._process.exit_code()

    def exit_code(self, within_s: float = 20) -> int:
        """Wait for the end of a broker that is expected to stop by itself."""
        return self._process.exit_code(within_s)

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def client(self) -> BrokerClient:
        return BrokerClient("127.0.0.1", self.port)

    def limit_file_size(self, size: int | None) -> None:
        """A disk that is full for whoever wants to grow a file beyond the size."""
        limit = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        (found,) = [path for path in (d / f"{topic}-{partition}" for d in self.log_dirs) if path.exists()]
        return found

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        with self.client() as client:
            wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
            (answer,) = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)).topics
        assert answer.error_code == 0, answer


@contextmanager
def running(broker: OwnBroker) -> Iterator[OwnBroker]:
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def batch_of(*values: bytes, **fields: int) -> bytes:
    return build_batch([Record(n, NO_TIMESTAMP, None, value) for n, value in enumerate(values)], **fields)  # type: ignore[arg-type]


def produce_request(topic: str, records: bytes, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def produce(client: BrokerClient, topic: str, records: bytes, partition: int = 0) -> PartitionProduceResponse:
    """A broker serves before the controller has told it what it leads: after a start, and of a topic just created."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = client.send(produce_request(topic, records, partition))
        result: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        if result.error_code not in NOT_LED_YET or time.monotonic() >= deadline:
            return result
        time.sleep(0.02)


def write_values(client: BrokerClient, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
    for value in values:
        assert produce(client, topic, batch_of(value), partition).error_code == 0


def fetch_request(topic: str, offset: int, partition: int = 0, replica_id: int = -1) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(replica_id=replica_id, topics=topics, max_bytes=FETCH_BYTES)


def read_all(client: BrokerClient, topic: str, partition: int = 0) -> list[tuple[int, bytes]]:
    """Offset and value of every record from offset 0 up to the high watermark; checksums are checked on the way."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    while True:
        data = _fetch_from_leader(client, topic, offset, partition)
        assert data.error_code == 0, data
        if offset >= data.high_watermark:
            return found
        for position, header in batches(data.records, partial_tail=True):
            found += [(record.offset, record.value or b"") for record in read_records(data.records, position, header)]
            offset = header.next_offset


def _fetch_from_leader(client: BrokerClient, topic: str, offset: int, partition: int) -> PartitionData:
    """A broker that has just started serves before the controller has told it what to lead. Asked in a later version
    it would answer as a follower, as far as it knows the high watermark."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = client.send(fetch_request(topic, offset, partition), LAST_FETCH_FROM_LEADERS_ONLY)
        data: PartitionData = answer.responses[0].partitions[0]
        if data.error_code not in NOT_LED_YET or time.monotonic() >= deadline:
            return data
        time.sleep(0.02)


def run_odradek(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def run_odradek_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The same in this process, for a command that is asked again and again: a new process costs half a second of
    processor time."""
    words = list(map(str, arguments))
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        code = main.run(words)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())
