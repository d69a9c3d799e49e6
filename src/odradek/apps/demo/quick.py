"""`odradek demo --quick`: a broker that starts, takes a hundred thousand records, gives them back, and stops: seconds.

It uses a temporary directory and free ports, and leaves nothing behind.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from odradek.apps.cli.output import Format, print_rows, progress
from odradek.apps.cli.terminal import ProgressLine, say
from odradek.apps.figures import size_text
from odradek.base.errors import FatalError
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import RecordReader, records_in
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.client.topic_admin import create_topic
from odradek.local.cluster_processes import LocalCluster
from odradek.local.zookeeper_server import free_port
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_TOPIC = "demo"
_PARTITIONS = 3
_BATCH_RECORDS = 500
_SILENCE_SECONDS_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Timing:
    start_seconds: float
    write_seconds: float
    read_seconds: float


def quick_demo(records: int) -> None:
    """Start a broker, write and read records, check every one, show what happened, and stop."""
    with tempfile.TemporaryDirectory(prefix="odradek-demo-") as directory:
        cluster = LocalCluster(Path(directory))
        with stopped_at_the_end(cluster):
            began = time.monotonic()
            line = ProgressLine()
            line.show("starting a coordination server and a broker")
            cluster.start(zookeeper=None, port=free_port(), settings={})
            line.close()
            start_seconds = time.monotonic() - began
            bootstrap = cluster.bootstrap_servers
            say(f"started  a coordination server and one broker at {bootstrap} in {start_seconds:.1f} s")
            with ClusterClient(bootstrap) as client:
                create_topic(client, _TOPIC, partitions=_PARTITIONS, replication_factor=1)
                say(f"created  topic '{_TOPIC}' with {_PARTITIONS} partitions")
                write_seconds = _write(client, records)
                say(f"wrote    {records:,} records, each of them once (idempotent producer, acks=all)")
                read_seconds = _read_and_check(client, records)
                say(f"read     {records:,} records; their number, order and content are right\n")
                _show_partitions(client, cluster)
            _show_figures(cluster, records, Timing(start_seconds, write_seconds, read_seconds))
    say("The broker has stopped and its files are gone. To go on, type:\n")
    for command in (
        *activation(),
        "odradek up --data my-cluster --detach",
        "odradek topics create orders --partitions 3",
        "echo 'hello' | odradek produce --topic orders",
        "odradek consume --topic orders --from-beginning --exit-at-end",
        "odradek perf produce --topic orders --num-records 100000 --record-size 1024",
        "odradek down --data my-cluster",
    ):
        say(f"  {command}", "cyan")
    say("\nAny Kafka client works too: bootstrap.servers=127.0.0.1:9092")


def activation() -> list[str]:
    """Return the command that activates the virtual environment; empty if it is active."""
    activate = Path(sys.prefix) / "bin" / "activate"
    return [] if shutil.which("odradek") or not activate.exists() else [f"source {os.path.relpath(activate)}"]


def value_of(number: int) -> bytes:
    """Return the value of record `number`: unique, and checkable for changes."""
    return b"record %d " % number + b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64) * 5


def _write(client: ClusterClient, records: int) -> float:
    """Write the records: record n goes to partition n mod 3, so that the order in each partition can be checked."""
    sender = RecordSender(client, _TOPIC)
    began = time.monotonic()
    with progress("writing", records) as show:
        for first in range(0, records, _BATCH_RECORDS * _PARTITIONS):
            numbers = range(first, min(first + _BATCH_RECORDS * _PARTITIONS, records))
            batches: dict[int, list[NewRecord]] = {}
            for number in numbers:
                batches.setdefault(number % _PARTITIONS, []).append(NewRecord(b"%d" % number, value_of(number)))
            sender.send(batches)
            show(numbers.stop)
    return time.monotonic() - began


def _read_and_check(client: ClusterClient, records: int) -> float:
    reader = RecordReader(client, {TopicPartition(_TOPIC, partition): 0 for partition in range(_PARTITIONS)})
    due = {partition: partition for partition in range(_PARTITIONS)}  # the number that each partition gives next
    count, began = 0, time.monotonic()
    last_record_at = began
    with progress("reading", records) as show:
        while count < records:
            for fetched in reader.poll():
                for record in records_in(fetched):
                    _check(fetched.tp, record.offset, record.value, due[fetched.tp.partition])
                    due[fetched.tp.partition] += _PARTITIONS
                    count += 1
                last_record_at = time.monotonic()
            if time.monotonic() - last_record_at > _SILENCE_SECONDS_MAX:
                raise FatalError(f"only {count} of {records} records came back")
            show(count)
    if any(number < records for number in due.values()):
        raise FatalError(f"{count} records came back, but not the ones that were written")
    return time.monotonic() - began


def _check(tp: TopicPartition, offset: int, value: bytes | None, number: int) -> None:
    if value != value_of(number):
        raise FatalError(f"offset {offset} of {tp} holds {value!r} where record {number} should be")


def _show_partitions(client: ClusterClient, cluster: LocalCluster) -> None:
    asked = [TopicPartition(_TOPIC, partition) for partition in range(_PARTITIONS)]
    first = list_offsets(client, dict.fromkeys(asked, EARLIEST))
    last = list_offsets(client, dict.fromkeys(asked, LATEST))
    rows = [
        {
            "partition": tp.partition,
            "first_offset": first[tp].offset,
            "end_offset": last[tp].offset,
            "log_on_disk": size_text(
                sum(path.stat().st_size for path in cluster.data.glob(f"broker-0/logs/{tp}/*.log"))
            ),
        }
        for tp in asked
    ]
    print_rows(rows, ("partition", "first_offset", "end_offset", "log_on_disk"), Format.TABLE)


def _show_figures(cluster: LocalCluster, records: int, timing: Timing) -> None:
    size = sum(len(value_of(number)) for number in range(records))
    rows: list[dict[str, object]] = [
        {"what": "start to first answer", "figure": f"{timing.start_seconds:.1f} s, coordination server included"},
        {"what": "writing", "figure": _rate(records, size, timing.write_seconds)},
        {"what": "reading and checking", "figure": _rate(records, size, timing.read_seconds)},
        {"what": "broker's resident memory", "figure": _resident(cluster.broker(0).pid)},
    ]
    print_rows(rows, ("what", "figure"), Format.TABLE)


def _rate(records: int, size_bytes: int, seconds: float) -> str:
    return f"{seconds:.2f} s, {records / seconds:,.0f} records/s, {size_text(size_bytes / seconds)}/s"


def _resident(pid: int | None) -> str:
    if pid is None:
        return "unknown"
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return size_text(kilobytes * 1024)


@contextmanager
def stopped_at_the_end(cluster: LocalCluster) -> Iterator[None]:
    """Stop every process at the end, also after Ctrl-C and SIGTERM."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        cluster.stop()
        signal.signal(signal.SIGTERM, before)
