"""Every request that the broker advertises, as it should be and then damaged, on a live socket.

The decoders are fuzzed in `tests/wire`; here the handlers are behind them. Whatever comes, the broker answers or closes
the connection: no exception reaches its loop, and it lives on.
"""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.fields import Field
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.response_header import ResponseHeader

from .own_broker import STEADY, OwnBroker, batch_of, produce, read_all, running

TOPIC = "target"
PING_ID = 77_777
ANSWER_PATIENCE_S = 0.2
GROWTH_MAX = 128 << 20
# What a correct broker never logs, whatever it is sent.
FAULTS = ("Traceback", "request failed", "response failed", "second response", "background task failed")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path_factory.mktemp("fuzz"), zookeeper, **STEADY)) as started:
        for topic in (TOPIC, "good"):
            started.create_topic(topic)
        yield started


@pytest.fixture(scope="module")
def advertised(broker: OwnBroker) -> list[tuple[int, int]]:
    with broker.client() as client:
        return [(key, version) for key, versions in client.versions.items() for version in versions]


def connect(broker: OwnBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=10)


def receive(connection: socket.socket) -> bytes:
    data = bytearray()
    size = 4
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
        if len(data) == 4:
            size = 4 + struct.unpack(">i", data)[0]
    return bytes(data[4:])


# ---- as it should be


def test_every_advertised_version_is_answered_in_that_version(
    broker: OwnBroker, advertised: list[tuple[int, int]]
) -> None:
    assert len(advertised) > 100
    for number, (key, version) in enumerate(advertised):
        api = APIS[key]
        request = ProduceRequest(acks=-1) if key == ApiKey.PRODUCE else api.request()
        with connect(broker) as connection:
            connection.sendall(encode_request(request, version, number, None))
            frame = memoryview(receive(connection))
        flexible = version in api.response.FLEXIBLE and key != ApiKey.API_VERSIONS
        header, position = ResponseHeader.decode(frame, 0, int(flexible))
        _, end = api.response.decode(frame, position, version)
        assert header.correlation_id == number
        assert end == len(frame), f"{api.name} v{version} has {len(frame) - end} bytes too many"
    assert not [fault for fault in FAULTS if fault in broker.log]


# ---- damaged


NAMES = (TOPIC, TOPIC, TOPIC, "retention.ms", "1", "__consumer_offsets")
WILD_NAMES = ("", "../x", "a\0b", "n" * 250, "\N{SNOWMAN}")
# A topic of 2^15 partitions, made by chance, would take its time; and the topic must not go away.
SAFE_NAMES = {
    ApiKey.CREATE_TOPICS: (TOPIC,),
    ApiKey.CREATE_PARTITIONS: ("nobody",),
    ApiKey.DELETE_TOPICS: ("nobody", "1"),
}
WILD_NUMBERS = {
    "bool": (0, 1),
    "int8": (0, 1, 2, 4, -1, 127, -128),
    "int16": (0, 1, -1, -2, 2**15 - 1, -(2**15)),
    "int32": (0, 1, 2, -1, -2, 10**6, 2**31 - 1, -(2**31)),
    "int64": (0, 1, -1, -2, -3, 10**6, 2**63 - 1, -(2**63)),
    "float64": (0.0, -1.0, 1e308, float("nan"), float("inf")),
}


class RequestMaker:
    """Requests with something in every field: sensible, or what the type allows and nobody means."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._wild = 0.0
        self._names: tuple[str, ...] = NAMES

    def frame(self, key: int, version: int, wild: float) -> bytes:
        """Without its size. `wild` is the share of fields that make no sense."""
        self._wild = wild
        self._names = SAFE_NAMES.get(ApiKey(key), NAMES)
        return encode_request(self._fill(APIS[key].request, version), version, 1, "fuzz")[4:]

    def _fill(self, struct_class: Any, version: int) -> Any:
        fields: dict[str, Field] = struct_class.FIELDS
        values = {
            field_name: True if field_name == "validate_only" else self._value(field, version)
            for field_name, field in fields.items()
            if version in field.versions
        }
        return struct_class(**values)

    def _value(self, field: Field, version: int) -> Any:
        chance = self._chance
        wild = chance.random() < self._wild
        if wild and version in field.nullable and chance.random() < 0.5:
            return None
        if field.kind == "array":
            count = chance.choice([0, 3, 50] if wild else [1, 1, 2])
            return [self._single(field, field.element or "", version, wild) for _ in range(count)]
        return self._single(field, field.kind, version, wild)

    def _single(self, field: Field, kind: str, version: int, wild: bool) -> Any:
        chance = self._chance
        match kind:
            case "struct":
                return self._fill(field.struct, version)
            case "string":
                return chance.choice(WILD_NAMES if wild else self._names)
            case "records":
                whole = batch_of(b"some", b"records")
                return damaged(whole, chance) if wild else whole
            case "uuid":
                return UUID(int=chance.getrandbits(128) if wild else 0)
            case "bytes":
                return chance.randbytes(chance.choice([0, 1, 1000]) if wild else 10)
        return chance.choice(WILD_NUMBERS[kind] if wild else (0, 0, 1))


INTERESTING = (0, 1, -1, 127, 255, 2**15 - 1, 2**31 - 1, -(2**31), 10**6)


def damaged(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.choice([1, 1, 2, 5])):
        # The first bytes say which request it is: seldom touched, so that handlers get their share.
        at = chance.randrange(8 if len(data) > 8 and chance.random() < 0.95 else 0, len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                data[at : at + 4] = struct.pack(">i", chance.choice(INTERESTING))
            case 2:
                del data[at : at + chance.randrange(1, 9)]
            case 3:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 4:
                data[at:at] = data[at : at + chance.randrange(1, 40)]
            case _:
                del data[at:]
    return bytes(data)


class Mutator:
    """Sends damaged and senseless requests, each with a good one behind it, and waits for that one's answer or for the
    end."""

    def __init__(self, broker: OwnBroker, chance: random.Random) -> None:
        self._broker = broker
        self._chance = chance
        self._requests = RequestMaker(chance)
        self._ping = encode_request(ApiVersionsRequest(), 0, PING_ID, None)
        self._connection: socket.socket | None = None
        self.answered = self.closed = self.silent = 0

    def send(self, key: int, version: int) -> None:
        if self._chance.random() < 0.5:
            frame = damaged(self._requests.frame(key, version, wild=0.05), self._chance)
        else:
            frame = self._requests.frame(key, version, wild=0.2)
        try:
            self._exchange(struct.pack(">i", len(frame)) + frame + self._ping)
            self.answered += 1
        except TimeoutError:
            self.silent += 1  # a fetch that may wait
            self.close()
        except (EOFError, ConnectionError):
            self.closed += 1
            self.close()

    def _exchange(self, data: bytes) -> None:
        if self._connection is None:
            self._connection = connect(self._broker)
            self._connection.settimeout(ANSWER_PATIENCE_S)
        self._connection.sendall(data)
        while struct.unpack_from(">i", receive(self._connection))[0] != PING_ID:
            continue

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# Whoever sends these is obeyed, as by Apache Kafka without an authorizer: a broker that is told to delete, does.
ORDERS = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}


def survive(broker: OwnBroker, advertised: list[tuple[int, int]], seed: int, count: int) -> Mutator:
    chance = random.Random(seed)
    mutator = Mutator(broker, chance)
    requests = [(key, version) for key, version in advertised if key not in ORDERS]
    before = broker.rss_bytes
    with contextlib.closing(mutator):
        for _ in range(count):
            mutator.send(*chance.choice(requests))
    told = f"seed {seed}: {mutator.answered} answered, {mutator.closed} closed, {mutator.silent} silent"
    log = broker.log
    faults = [fault for fault in FAULTS if fault in log]
    assert not faults, f"{told}\n{log[max(log.index(faults[0]) - 2000, 0) :][:6000]}"
    assert broker.rss_bytes - before < GROWTH_MAX, told
    with broker.client() as client:
        offset = produce(client, "good", batch_of(b"still there")).base_offset
        assert read_all(client, "good")[-1] == (offset, b"still there"), told
    return mutator


def test_damaged_requests(broker: OwnBroker, advertised: list[tuple[int, int]]) -> None:
    mutator = survive(broker, advertised, seed=3, count=3000)
    assert mutator.answered > 500
    assert mutator.closed > 500


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_damaged_requests(broker: OwnBroker, advertised: list[tuple[int, int]]) -> None:
    began = int(time.time())
    for seed in range(began, began + 10):
        survive(broker, advertised, seed, count=10_000)
