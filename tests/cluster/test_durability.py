"""Acknowledged records stay: through kill -9, torn and rotten files, lost side files, full and failing disks.

Every broker here is a process of its own on real files. Of a record that was acknowledged the tests know the offset
and the value; after each restart it must be there, in order, once.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import KafkaError as ClientError

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.pipelined_connection import PipelinedConnection
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.produce import ProduceResponse
from waiting import eventually

from .own_broker import (
    OwnBroker,
    batch_of,
    produce,
    produce_request,
    read_all,
    run_odradek,
    running,
    write_values,
)

PRODUCE_VERSION = 9
IN_FLIGHT_MAX = 16
HEAVY = "heavy"
PIPELINED = "pipelined"
PARTITIONS = 4


@pytest.fixture
def broker(tmp_path: Path, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path, zookeeper, log_segment_bytes=str(1 << 20))) as started:
        yield started


# ---- kill -9


class Phase:
    """Orders for the writers. They pause while a reader reads it all, or it would never catch up."""

    def __init__(self) -> None:
        self.writing = threading.Event()
        self.ended = threading.Event()
        self.writing.set()


class IdempotentWriter:
    """librdkafka, with its retries: what it was promised and what it sent twice must be in the log once."""

    def __init__(self, broker: OwnBroker) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                # Large records and a short queue: many bytes, and not too many records to look at again.
                "queue.buffering.max.messages": 1000,
                "log_level": 0,
            }
        )
        self._written = [0] * PARTITIONS
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[ClientError] = []

    def write(self, phase: Phase) -> None:
        while not phase.ended.is_set():
            phase.writing.wait()
            for partition in range(PARTITIONS):
                self._write_one(partition)
            self._producer.poll(0)
        self._producer.flush(60)

    def _write_one(self, partition: int) -> None:
        number = self._written[partition]

        def delivered(error: ClientError | None, _: object) -> None:
            if error is None:
                self.acknowledged[partition].append(number)
            else:
                self.failures.append(error)

        try:
            self._producer.produce(HEAVY, b"%d" % number + b"." * 4000, partition=partition, on_delivery=delivered)
        except BufferError:
            self._producer.poll(0.01)
            return
        self._written[partition] += 1

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def check(self, broker: OwnBroker) -> int:
        """Every acknowledged record is there; all records are in order, none twice, no gap. How many there are."""
        count = 0
        with broker.client() as client:
            for partition, numbers in enumerate(self.acknowledged):
                acknowledged = numbers.copy()
                found = read_all(client, HEAVY, partition)
                assert [offset for offset, _ in found] == list(range(len(found)))
                assert [int(value.partition(b".")[0]) for _, value in found] == list(range(len(found)))
                assert acknowledged == list(range(len(acknowledged)))
                assert len(acknowledged) <= len(found)
                count += len(found)
        return count


class PipelinedWriter:
    """Many requests in flight and no retry, so what was acknowledged is known with its offset."""

    def __init__(self, broker: OwnBroker) -> None:
        self._address = ("127.0.0.1", broker.port)
        self._sent = 0
        self.acknowledged: dict[int, bytes] = {}

    def write(self, phase: Phase) -> None:
        while not phase.ended.is_set():
            try:
                connection = PipelinedConnection[bytes](BrokerClient(*self._address, timeout_ms=10_000))
            except ConnectionFailed:
                time.sleep(0.02)
                continue
            try:
                self._write_on(connection, phase)
            except ConnectionFailed:
                continue
            finally:
                connection.close()

    def _write_on(self, connection: PipelinedConnection[bytes], phase: Phase) -> None:
        connection.socket.settimeout(2)
        while not phase.ended.is_set():
            phase.writing.wait()
            while connection.in_flight < IN_FLIGHT_MAX:
                value = b"value %d" % self._sent
                self._sent += 1
                request = produce_request(PIPELINED, batch_of(value, value), 0)
                connection.submit(encode_request(request, PRODUCE_VERSION, self._sent, None), value)
            for value, frame in connection.read():
                _, answer = decode_response(ProduceResponse, frame, PRODUCE_VERSION)
                result = answer.responses[0].partition_responses[0]
                assert result.error_code == 0, result
                self.acknowledged[result.base_offset] = value

    @property
    def count(self) -> int:
        return len(self.acknowledged)

    def check(self, broker: OwnBroker) -> None:
        acknowledged = self.acknowledged.copy()
        with broker.client() as client:
            found = dict(read_all(client, PIPELINED))
        assert {offset: found.get(offset) for offset in acknowledged} == acknowledged
        assert {offset + 1: found.get(offset + 1) for offset in acknowledged} == {
            offset + 1: value for offset, value in acknowledged.items()
        }
        numbers = [int(value.split()[1]) for _, value in sorted(found.items())]
        assert numbers[::2] == numbers[1::2], "both records of a batch are there, side by side"
        assert all(earlier < later for earlier, later in pairwise(numbers[::2])), "in the order in which they were sent"


def await_progress(idempotent: IdempotentWriter, pipelined: PipelinedWriter) -> None:
    """Both are at it, whatever the last crash did to them."""
    pipelined_before, idempotent_before = pipelined.count, idempotent.count
    eventually(lambda: pipelined.count > pipelined_before + 100 and idempotent.count > idempotent_before + 1000)


def kill_while_writing(broker: OwnBroker, rounds: int) -> int:
    broker.create_topic(HEAVY, PARTITIONS)
    broker.create_topic(PIPELINED)
    idempotent, pipelined = IdempotentWriter(broker), PipelinedWriter(broker)
    phase = Phase()
    threads = [threading.Thread(target=writer.write, args=(phase,)) for writer in (idempotent, pipelined)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(rounds):
            await_progress(idempotent, pipelined)
            broker.kill()
            phase.writing.clear()
            broker.start()
            idempotent.check(broker)
            pipelined.check(broker)
            phase.writing.set()
    finally:
        phase.ended.set()
        phase.writing.set()
        for thread in threads:
            thread.join()
    assert not idempotent.failures
    count = idempotent.check(broker)
    assert count == idempotent.count
    pipelined.check(broker)
    return count


def test_killed_in_the_middle_of_heavy_writing(broker: OwnBroker) -> None:
    assert kill_while_writing(broker, rounds=3) > 1000
    assert "Traceback" not in broker.log


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_killed_twenty_times(broker: OwnBroker) -> None:
    kill_while_writing(broker, rounds=20)
    assert "Traceback" not in broker.log


# ---- torn tails

VALUES = [b"record %d" % number for number in range(6)]
LAST_SIZE = len(batch_of(VALUES[-1]))


def cut(by: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:-by]


def flip(at: int) -> Callable[[bytes], bytes]:
    """`at` counts from the end."""
    return lambda content: content[:-at] + bytes([content[-at] ^ 0x10]) + content[len(content) - at + 1 :]


def add(tail: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content + tail


LENGTH_FROM_END = LAST_SIZE - 11  # of the length field's lowest byte
TORN: dict[str, Callable[[bytes], bytes]] = {
    "one byte of the last batch": cut(LAST_SIZE - 1),
    "half a header": cut(LAST_SIZE - 30),
    "a header alone": cut(LAST_SIZE - 61),
    "all but one byte": cut(1),
    "a flipped value": flip(2),
    "a flipped checksum": flip(LAST_SIZE - 17),
    "a flipped magic": flip(LAST_SIZE - 16),
    "a flipped length": flip(LENGTH_FROM_END),
    "a flipped offset": flip(LAST_SIZE - 1),
}
WRITTEN_BEYOND: dict[str, Callable[[bytes], bytes]] = {
    "zeros after the end": add(bytes(5000)),
    "noise after the end": add(bytes(range(256)) * 10),
    "a second first batch": add(batch_of(b"nobody acknowledged me")),
}


def test_torn_tails_are_cut_and_told(broker: OwnBroker) -> None:
    damages = [*TORN.values(), *WRITTEN_BEYOND.values()]
    broker.create_topic("torn", len(damages))
    with broker.client() as client:
        for partition in range(len(damages)):
            write_values(client, "torn", VALUES, partition)
    files = [broker.partition_dir("torn", partition) / f"{0:020d}.log" for partition in range(len(damages))]
    broker.kill()
    for file, damage in zip(files, damages, strict=True):
        file.write_bytes(damage(file.read_bytes()))
    log = broker.start()
    assert "Traceback" not in log
    with broker.client() as client:
        for partition, file in enumerate(files):
            kept = VALUES[:-1] if partition < len(TORN) else VALUES
            assert read_all(client, "torn", partition) == list(enumerate(kept))
            assert f"segment truncated at the first invalid batch path={file}" in log
            assert produce(client, "torn", batch_of(b"next"), partition).base_offset == len(kept)
            assert read_all(client, "torn", partition) == list(enumerate([*kept, b"next"]))


# ---- side files

LOST: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(b"\xff\x00noise" * 50),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1]),
}
OF_A_PARTITION = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata")
OF_A_DIRECTORY = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
MANY = [b"record %d " % number + b"." * 500 for number in range(100)]


@pytest.mark.parametrize("cleanly", [True, False], ids=["after a clean stop", "after a crash"])
def test_side_files_may_be_lost(tmp_path: Path, zookeeper: str, cleanly: bool) -> None:
    damages = [(suffix, damage) for suffix in OF_A_PARTITION for damage in LOST.values()]
    settings = {"log_segment_bytes": "20000", "log_index_interval_bytes": "1000"}
    with running(OwnBroker(tmp_path, zookeeper, **settings)) as broker:
        broker.create_topic("sides", len(damages))
        with broker.client() as client:
            for partition in range(len(damages)):
                for first in range(0, len(MANY), 5):
                    assert produce(client, "sides", batch_of(*MANY[first : first + 5]), partition).error_code == 0
        directories = [broker.partition_dir("sides", partition) for partition in range(len(damages))]
        broker.stop() if cleanly else broker.kill()
        for (suffix, damage), directory in zip(damages, directories, strict=True):
            damaged = [path for path in directory.iterdir() if path.name.endswith(suffix)]
            assert damaged or not cleanly
            for path in damaged:
                damage(path)
        for name, damage in zip(OF_A_DIRECTORY, list(LOST.values())[1:], strict=True):
            if (path := broker.log_dirs[0] / name).exists():
                damage(path)
        (broker.log_dirs[0] / "meta.properties").unlink()
        assert "Traceback" not in broker.start()
        with broker.client() as client:
            for partition in range(len(damages)):
                assert read_all(client, "sides", partition) == list(enumerate(MANY)), damages[partition]
                assert produce(client, "sides", batch_of(b"next"), partition).base_offset == len(MANY)


def test_a_clean_stop_needs_no_scan(broker: OwnBroker) -> None:
    broker.create_topic("clean", 4)
    with broker.client() as client:
        for partition in range(4):
            for _ in range(4):
                assert produce(client, "clean", batch_of(bytes(900_000)), partition).error_code == 0
    assert broker.stop() == 0
    log = broker.start()
    assert "clean=True" in log
    assert "segment recovered" not in log
    assert "segment truncated at the first invalid batch" not in log
    assert "logs loaded logs=4 " in log
    with broker.client() as client:
        assert [len(read_all(client, "clean", partition)) for partition in range(4)] == [4] * 4


# ---- disks that are full, or gone

CHUNK = bytes(100_000)
ROOM = 1 << 20


def fill(broker: OwnBroker, topic: str) -> int:
    """Writes until the broker refuses; how many records it took."""
    taken = 0
    with broker.client() as client:
        while not (answer := produce(client, topic, batch_of(b"%d" % taken, CHUNK))).error_code:
            taken += 1
            assert taken < 100
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    return taken


def numbers_of(broker: OwnBroker, topic: str) -> list[int]:
    with broker.client() as client:
        return [int(value) for _, value in read_all(client, topic) if value != CHUNK]


@pytest.fixture
def two_disks(tmp_path: Path, zookeeper: str) -> Iterator[OwnBroker]:
    log_dirs = f"{tmp_path}/disk-a,{tmp_path}/disk-b"
    settings = {"replica_high_watermark_checkpoint_interval_ms": "200"}
    with running(OwnBroker(tmp_path, zookeeper, log_dirs=log_dirs, **settings)) as broker:
        broker.create_topic("first")
        broker.create_topic("second")
        assert broker.partition_dir("first").parent != broker.partition_dir("second").parent
        yield broker


def test_a_full_disk_takes_its_directory_offline_and_nothing_else(two_disks: OwnBroker) -> None:
    broker = two_disks
    broker.limit_file_size(ROOM)
    first = fill(broker, "first")
    offline = broker.partition_dir("first").parent
    assert f"log directory offline directory={offline} reason=" in broker.log
    with broker.client() as client:
        assert produce(client, "first", batch_of(b"0")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    with broker.client() as client:
        write_values(client, "second", [b"0"])
    assert numbers_of(broker, "second") == [0]

    second = 1 + fill(broker, "second")
    assert broker.exit_code() == 1
    assert broker.log.rstrip().splitlines()[-1].startswith("error: All log directories have failed, the last was ")
    assert "Traceback" not in broker.log

    broker.start()
    assert numbers_of(broker, "first") == list(range(first))
    assert numbers_of(broker, "second") == [0, *range(second - 1)]
    with broker.client() as client:
        write_values(client, "first", [b"7"])


def test_a_disk_that_is_gone(two_disks: OwnBroker) -> None:
    broker = two_disks
    with broker.client() as client:
        write_values(client, "second", [b"0"])
    gone = broker.partition_dir("first").parent
    gone.rename(gone.with_name("unmounted"))
    with broker.client() as client:
        produce(client, "first", batch_of(b"into a file without a name"))  # the next checkpoint finds no directory
    eventually(lambda: f"log directory offline directory={gone} " in broker.log)
    with broker.client() as client:
        assert produce(client, "first", batch_of(b"0")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        write_values(client, "second", [b"1"])
    assert numbers_of(broker, "second") == [0, 1]
    assert broker.stop() == 0
    assert "Traceback" not in broker.log


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, where the system lets us have one."""
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", path], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system to fill: {mounted.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_file_system_without_space(tmp_path: Path, zookeeper: str, small_disk: Path) -> None:
    with running(OwnBroker(tmp_path, zookeeper, log_dirs=f"{small_disk}/logs")) as broker:
        broker.create_topic("first")
        taken = fill(broker, "first")
        assert broker.exit_code() == 1
        assert "No space left on device" in broker.log.rstrip().splitlines()[-1]
        assert "Traceback" not in broker.log
        subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
        broker.start()
        assert numbers_of(broker, "first") == list(range(taken))


# ---- rot


def test_rot_in_a_closed_segment_is_seen(tmp_path: Path, zookeeper: str) -> None:
    with running(OwnBroker(tmp_path, zookeeper, log_segment_bytes="10000")) as broker:
        broker.create_topic("rot")
        with broker.client() as client:
            write_values(client, "rot", MANY)
        directory = broker.partition_dir("rot")
        assert run_odradek("dump-log", "--verify", directory).returncode == 0
        closed = min(directory.glob("*.log"))
        content = bytearray(closed.read_bytes())
        content[len(content) // 2] ^= 1
        closed.write_bytes(content)

        found = run_odradek("dump-log", "--verify", directory)
        assert found.returncode == 1
        assert closed.name in found.stderr

        assert first_error(broker.bootstrap, "rot").code() == ClientError._BAD_MSG


def first_error(bootstrap: str, topic: str) -> ClientError:
    """Return the error of a consumer that checks checksums."""
    settings = {"group.id": "unused", "enable.auto.commit": False, "check.crcs": True, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline = time.monotonic() + 10
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(10, 0.5):
                if (error := message.error()) is not None:
                    return error
    finally:
        consumer.close()
    raise AssertionError("it read everything")
