"""Two clients on one broker, and on two brokers of the same machine: `python tools/bench_cores.py`.

How much a second process gives where the first has all that one interpreter can use. The clients are processes that
send frames made beforehand and count the bytes of the answers, so that they take as little of the cores as they can.
Rounds in turn, medians; the processor time of the brokers per request beside it. The figures of
docs/decisions/0032-more-than-one-core.md come from here.
"""

import argparse
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.apps.lab.bench.process_stats import thread_cpu_seconds
from odradek.local.zookeeper_server import free_port
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

TOPIC, CLIENTS, NOW = "cores", 2, 1_700_000_000_000
FETCHED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    frame: Callable[[int], bytes]
    in_flight: int


def produce(partition: int, count: int, size: int) -> bytes:
    records = bytes(build_batch([Record(n, NOW, None, bytes(size)) for n in range(count)]))
    data = [PartitionProduceData(index=partition, records=records)]
    topics = [TopicProduceData(name=TOPIC, partition_data=data)]
    return encode_request(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), 9, 1, "cores")


def fetch(partition: int) -> bytes:
    asked = [FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=FETCHED_BYTES)]
    topics = [FetchTopic(topic=TOPIC, partitions=asked)]
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=FETCHED_BYTES, topics=topics)
    return encode_request(request, 11, 1, "cores")


LOADS = (
    Load("ApiVersions, 20 in flight", lambda _: struct.pack(">ihhih", 10, 18, 0, 7, -1), 20),
    Load("one record per request, 20 in flight", lambda partition: produce(partition, 1, 100), 20),
    Load("16 KB batches, 5 in flight", lambda partition: produce(partition, 15, 1024), 5),
    Load("fetches of 1 MB, 2 in flight", fetch, 2),
)


def exchange(port: int, frame: bytes, in_flight: int, seconds: float) -> int:
    """Answered requests; all answers have the length of the first."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(frame)
        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        buffer = bytearray(max(size, 1 << 16))
        connection.recv_into(buffer, size, socket.MSG_WAITALL)
        end, received, sent = time.monotonic() + seconds, 0, in_flight
        connection.sendall(frame * in_flight)
        while time.monotonic() < end:
            received += connection.recv_into(buffer)
            due = received // (size + 4) + in_flight - sent
            if due > 0:
                connection.sendall(frame * due)
                sent += due
        return received // (size + 4)


class Cluster:
    def __init__(self, directory: Path, brokers: int) -> None:
        self.directory, self.port = directory, free_port()
        self._run("up", "--brokers", str(brokers), "--port", str(self.port), "--coordinator", "embedded", "--detach")
        self.pids = [int(path.read_text().split()[0]) for path in sorted(directory.glob("broker-*/broker.pid"))]
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}"})
        admin.create_topics([NewTopic(TOPIC, brokers * CLIENTS, 1)])[TOPIC].result(30)
        metadata = admin.list_topics(TOPIC, timeout=30)
        led: dict[int, list[int]] = {}
        for partition, state in metadata.topics[TOPIC].partitions.items():
            led.setdefault(state.leader, []).append(partition)
        ids = sorted(led)
        self.places = [
            (metadata.brokers[ids[n % brokers]].port, led[ids[n % brokers]][n // brokers]) for n in range(CLIENTS)
        ]
        for port, partition in self.places:
            for _ in range(40):
                exchange(port, produce(partition, 60, 1024), 1, 0.001)

    def stop(self) -> None:
        self._run("down")

    def measure(self, load: Load, seconds: float) -> tuple[float, float]:
        """Requests a second, and microseconds of the brokers' processor time for each."""
        with get_context("fork").Pool(CLIENTS) as pool:
            before, start = thread_cpu_seconds(self.pids), time.monotonic()
            work = [(port, load.frame(partition), load.in_flight, seconds) for port, partition in self.places]
            answered = sum(pool.starmap(exchange, work))
            took, used = time.monotonic() - start, thread_cpu_seconds(self.pids) - before
        return answered / took, used / answered * 1e6

    def _run(self, command: str, *options: str) -> None:
        arguments = ["--data", str(self.directory), *options, *(["--no-console"] if command == "up" else [])]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, "-m", "odradek", command, *arguments], check=True, **quiet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-cores-") as directory:
        clusters = {brokers: Cluster(Path(directory) / str(brokers), brokers) for brokers in (1, 2)}
        try:
            print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
            print(f"{'':40} {'1 broker/s':>11} {'2 brokers/s':>12} {'ratio':>6} {'µs':>7} {'µs':>7}")
            for load in LOADS:
                rounds = [
                    {n: each.measure(load, options.seconds) for n, each in clusters.items()}
                    for _ in range(options.rounds)
                ]
                one, two = (median(each[n][0] for each in rounds) for n in clusters)
                ratio = median(each[2][0] / each[1][0] for each in rounds)
                costs = [median(each[n][1] for each in rounds) for n in clusters]
                print(
                    f"{load.name:40} {one:11,.0f} {two:12,.0f} {ratio:6.2f} {costs[0]:7.1f} {costs[1]:7.1f}", flush=True
                )
        finally:
            for cluster in clusters.values():
                cluster.stop()


if __name__ == "__main__":
    main()
