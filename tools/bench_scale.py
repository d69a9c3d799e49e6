"""One broker with 10,000 partitions, 10,000 connections and 1,000 producers: `python tools/bench_scale.py`.

Processor seconds rather than times: they say nearly the same on a busy machine. The figures of docs/scale.md come from
here; `--sizes` takes several numbers of partitions, for the slope.
"""

import argparse
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.apps.lab.bench.process_stats import cpu_seconds, rss_mb, thread_cpu_seconds
from odradek.local.zookeeper_server import free_port
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

TOPIC_PARTITIONS, IDLE_S, NOW = 500, 5.0, 1_700_000_000_000
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)
RECORDS_EACH = 5


class Broker:
    def __init__(self, directory: Path) -> None:
        self.directory, self.port = directory, free_port()
        self.start()

    def start(self) -> None:
        settings = ["--set", "max.connections.per.ip=20000", "--port", str(self.port), "--coordinator", "embedded"]
        self._run("up", *settings, "--no-console", "--detach")
        (pid_file,) = self.directory.glob("broker-*/broker.pid")
        self.pid = int(pid_file.read_text().split()[0])

    def stop(self) -> float:
        """Seconds of the machine's clock."""
        began = time.monotonic()
        self._run("down")
        return time.monotonic() - began

    def idle_percent(self) -> float:
        time.sleep(2)
        before = thread_cpu_seconds([self.pid])
        time.sleep(IDLE_S)
        return 100 * (thread_cpu_seconds([self.pid]) - before) / IDLE_S

    @property
    def cpu_s(self) -> float:
        return cpu_seconds([self.pid])

    @property
    def rss_mb(self) -> float:
        return rss_mb([self.pid])

    def _run(self, command: str, *options: str) -> None:
        arguments = [sys.executable, "-m", "odradek", command, "--data", str(self.directory), *options]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def await_leaders(broker: Broker, count: int) -> None:
    while True:
        admin = AdminClient(
            {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0, "socket.timeout.ms": 120_000}
        )
        topics = admin.list_topics(timeout=120).topics
        if sum(part.leader >= 0 for topic in topics.values() for part in topic.partitions.values()) >= count:
            return
        time.sleep(1)


def partitions(directory: Path, count: int) -> None:
    broker = Broker(directory)
    try:
        rss, cpu = broker.rss_mb, broker.cpu_s
        admin = AdminClient(
            {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0, "socket.timeout.ms": 120_000}
        )
        for number in range(count // TOPIC_PARTITIONS):
            new = NewTopic(f"scale-{number}", TOPIC_PARTITIONS, 1)
            admin.create_topics([new], request_timeout=120, operation_timeout=120)[new.topic].result()
        await_leaders(broker, count)
        tell(f"{count:,} partitions created", broker.cpu_s - cpu, "CPU s")
        tell(
            "resident memory, and of it per partition", broker.rss_mb, "MB", 1024 * (broker.rss_mb - rss) / count, "KB"
        )
        tell("open files", len(os.listdir(f"/proc/{broker.pid}/fd")), "")
        tell("at rest", broker.idle_percent(), "% of a core")
        cpu = broker.cpu_s
        await_leaders(broker, count)
        tell("one Metadata answer with everything", broker.cpu_s - cpu, "CPU s")
        tell("clean stop, cluster and all", broker.stop(), "s")
        began = time.monotonic()
        broker.start()
        await_leaders(broker, count)
        tell("start until everything is led", broker.cpu_s, "CPU s", time.monotonic() - began, "s")
    finally:
        broker.stop()


def connections(directory: Path, count: int, producers: int) -> None:
    broker = Broker(directory)
    try:
        admin = AdminClient(
            {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0, "socket.timeout.ms": 120_000}
        )
        admin.create_topics([NewTopic("wide", 100, 1)])["wide"].result(60)
        rss, cpu = broker.rss_mb, broker.cpu_s
        opened = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(count)]
        for each in opened:
            ask(each, API_VERSIONS_V0)
        tell(f"{count:,} connections", broker.cpu_s - cpu, "CPU s", 1024 * (broker.rss_mb - rss) / count, "KB each")
        tell("at rest with them", broker.idle_percent(), "% of a core")
        rss, cpu = broker.rss_mb, broker.cpu_s
        for turn in range(RECORDS_EACH):
            for number in range(producers):
                ask(opened[number], produce(number, turn))
        each_us = 1e6 * (broker.cpu_s - cpu) / producers / RECORDS_EACH
        tell(
            f"{producers:,} producers, a record", each_us, "CPU µs", 1024 * (broker.rss_mb - rss) / producers, "KB each"
        )
        for each in opened:
            each.close()
    finally:
        broker.stop()


def ask(connection: socket.socket, frame: bytes) -> bytes:
    connection.sendall(frame)
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return connection.recv(size, socket.MSG_WAITALL)


def produce(producer: int, sequence: int) -> bytes:
    made = [Record(0, NOW, None, bytes(100))]
    batch = build_batch(made, producer_id=1000 + producer, producer_epoch=0, base_sequence=sequence)
    data = [PartitionProduceData(index=producer % 100, records=bytes(batch))]
    topics = [TopicProduceData(name="wide", partition_data=data)]
    return encode_request(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), 9, 1, "scale")


def tell(what: str, *values: float | str) -> None:
    told = " ".join(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in values)
    print(f"{what:50} {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--producers", type=int, default=1_000)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="odradek-scale-") as directory:
        for size in map(int, options.sizes.split(",")):
            partitions(Path(directory) / str(size), size)
        connections(Path(directory) / "connections", options.connections, options.producers)


if __name__ == "__main__":
    main()
