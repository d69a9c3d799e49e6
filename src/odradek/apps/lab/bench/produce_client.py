"""A process that logs in once and sends Produce requests that are all the same; run by `security_figures`.

    python -m odradek.apps.lab.bench.produce_client PORT USER PASSWORD TOPIC PARTITIONS REQUESTS

The number of requests is fixed, while with real clients it depends on the time of the answers. So two runs do equal
work, and their processor time can be compared.
"""

import secrets
import socket
import sys

from odradek.apps.lab.bench.login_client import connected, log_in
from odradek.apps.lab.bench.systems import SCRAM
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.security.scram import ScramClient

RECORDS, RECORD_BYTES, IN_FLIGHT = 15, 1024, 5
_VERSION = 9
_NOW_MS = 1_700_000_000_000


def produce(port: int, user: str, password: str, topic: str, partitions: int, requests: int) -> None:
    """ConnectionError where the login, or the first or last request, is refused."""
    frames = [_frame(topic, partition) for partition in range(partitions)]
    with connected(port) as connection:
        log_in(connection, ScramClient(SCRAM, user, password, secrets.token_urlsafe(24)))
        for number in range(requests + IN_FLIGHT):
            if number < requests:
                connection.sendall(frames[number % partitions])
            if number >= IN_FLIGHT:
                answer = _answer(connection)
                if number in (IN_FLIGHT, requests + IN_FLIGHT - 1):
                    _check(answer)


def _frame(topic: str, partition: int) -> bytes:
    batch = bytes(build_batch([Record(n, _NOW_MS, None, bytes(RECORD_BYTES)) for n in range(RECORDS)]))
    data = [PartitionProduceData(index=partition, records=batch)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return encode_request(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), _VERSION, 1, "bench")


def _answer(connection: socket.socket) -> bytes:
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return connection.recv(size, socket.MSG_WAITALL)


def _check(answer: bytes) -> None:
    _, response = decode_response(ProduceResponse, memoryview(answer), _VERSION)
    for partition in response.responses[0].partition_responses:
        if partition.error_code:
            raise ConnectionError(f"Produce refused: error {partition.error_code}")


if __name__ == "__main__":
    port, user, password, topic, partitions, requests = sys.argv[1:]
    produce(int(port), user, password, topic, int(partitions), int(requests))
