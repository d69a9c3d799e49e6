"""The floor of each figure: the same system calls without a broker around them, in C and in Python, on this machine.

One raw server at a time (`floor.c`, `floor_server.py`) and one raw client: the best possible figure of a broker, and
the cost of the language alone.
"""

import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from odradek.apps.lab.bench.clients import Metrics
from odradek.apps.lab.bench.process_stats import thread_cpu_seconds

ANSWER_BYTES = 400  # of ApiVersions
SMALL_FRAME = (10).to_bytes(4, "big") + bytes(10)
BATCHES_PER_REQUEST = 5
FETCHED_BYTES = 1 << 20
ACKNOWLEDGEMENT = 60


@dataclass(frozen=True, slots=True)
class Floor:
    mode: str
    frame: bytes
    piece_bytes: int
    answer_bytes: int
    moved_bytes: int
    """Records of one request."""


def floors() -> dict[str, Floor]:
    """Return the floors by the names that figures give."""

    def produce(batch_bytes: int) -> Floor:
        size = BATCHES_PER_REQUEST * batch_bytes
        return Floor("produce", size.to_bytes(4, "big") + bytes(size), batch_bytes, ACKNOWLEDGEMENT, size)

    return {
        "wire": Floor("wire", SMALL_FRAME, ANSWER_BYTES, ANSWER_BYTES, 0),
        "single": Floor("produce", (200).to_bytes(4, "big") + bytes(200), 200, ACKNOWLEDGEMENT, 0),
        "produce 16": produce(16 << 10),
        "produce 64": produce(64 << 10),
        "consume": Floor("consume", SMALL_FRAME, FETCHED_BYTES, FETCHED_BYTES + ACKNOWLEDGEMENT, FETCHED_BYTES),
    }


def measure_floors(names: set[str], directory: Path, *, quick: bool) -> dict[str, dict[str, Metrics]]:
    """Metrics by floor and language; without a C compiler, or the source, there is no C."""
    commands = {"Python": [sys.executable, str(Path(__file__).with_name("floor_server.py"))]}
    source = Path(__file__).with_name("floor.c")
    if shutil.which("gcc") and source.exists():
        program = directory / "floor"
        subprocess.run(["gcc", "-O2", "-o", str(program), str(source)], check=True)
        commands["C"] = [str(program)]
    share = 10 if quick else 1
    known = floors()
    return {
        name: {language: _measure(known[name], command, directory, share) for language, command in commands.items()}
        for name in sorted(names)
    }


def _measure(floor: Floor, command: list[str], directory: Path, share: int) -> Metrics:
    file = directory / "floor-file"
    file.write_bytes(bytes(FETCHED_BYTES))
    arguments = [*command, floor.mode, str(file), str(floor.piece_bytes)]
    server = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with socket.create_connection(("127.0.0.1", int(server.stdout.readline()))) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _exchanges(floor, peer, server.pid, share)
    finally:
        server.kill()
        server.wait()
        file.unlink(missing_ok=True)


def _exchanges(floor: Floor, peer: socket.socket, pid: int, share: int) -> Metrics:
    if not floor.moved_bytes:
        one, many = (_per_s(floor, peer, depth, 40_000 // share) for depth in (1, 20))
        return {"sequential_per_s": one, "pipelined_per_s": many, "requests_per_s": one}
    count = (1 << 30) // floor.moved_bytes // share
    before = thread_cpu_seconds([pid])
    _per_s(floor, peer, 5, count)
    return {"cpu_s_per_gb": (thread_cpu_seconds([pid]) - before) / (count * floor.moved_bytes / 1e9)}


def _per_s(floor: Floor, peer: socket.socket, depth: int, count: int) -> float:
    buffer = bytearray(1 << 20)
    start, sent, received = time.perf_counter(), depth, 0
    peer.sendall(floor.frame * depth)
    while received < count * floor.answer_bytes:
        received += peer.recv_into(buffer)
        due = min(count, received // floor.answer_bytes + depth) - sent
        if due > 0:
            peer.sendall(floor.frame * due)
            sent += due
    return count / (time.perf_counter() - start)
