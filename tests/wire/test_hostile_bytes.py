"""Bad bytes get a ProtocolError, at once, whatever they claim."""

import contextlib
import struct
import tracemalloc
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kio_oracle import drawn_messages, every_message_and_version, kio_class

from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.codec import python_decoder
from odradek.protocol.framing import UnsupportedVersion, decode_request, encode_request
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Decoder, Message

quick = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
NEWEST = {message: (version, module) for message, version, module in every_message_and_version()}
OLDEST = {message: (version, module) for message, version, module in reversed(list(every_message_and_version()))}
CASES = [
    pytest.param(message, version, module, id=f"{message.__name__}-v{version}")
    for message, version, module in {(m, *vm) for table in (NEWEST, OLDEST) for m, vm in table.items()}
]
DRAWN = 3
FLIPS = 5
CASES.sort(key=lambda case: str(case.id))


def decode_or_refuse(decode: Decoder[Message], encoded: bytes) -> bool:
    try:
        decode(memoryview(encoded), 0)
    except ProtocolError:
        return False
    return True


@pytest.mark.parametrize(("message", "version", "kio_module"), CASES)
def test_cut_and_flipped_messages(message: type[Message], version: int, kio_module: str) -> None:
    twins: tuple[Decoder[Message], ...] = (message.decoder(version), python_decoder(message, version))
    chance = Random(f"{message.__name__} v{version}")
    for value in drawn_messages(message, kio_class(message, kio_module), version, DRAWN):
        encoded = value.encode(version)
        for cut in cuts(len(encoded)):
            assert not any(decode_or_refuse(decode, encoded[:cut]) for decode in twins)
        for _ in range(FLIPS if encoded else 0):
            flipped = bytearray(encoded)
            flipped[chance.randrange(len(flipped))] ^= chance.randint(1, 255)
            assert len({decode_or_refuse(decode, bytes(flipped)) for decode in twins}) == 1


def cuts(length: int) -> Iterator[int]:
    """Every byte of a short message, the ends and a sample of a long one."""
    yield from range(min(length, 200))
    yield from range(200, length, 997)
    yield from range(max(200, length - 20), length)


def every_request() -> list[tuple[ApiKey, int]]:
    return [(api.key, version) for api in APIS.values() for version in api.versions]


@settings(quick, max_examples=1500)
@given(st.sampled_from(every_request()), st.binary(max_size=300))
@example((ApiKey.FETCH, 12), b"\x00\x00\x00\x00" * 6)
def test_random_bodies(request_kind: tuple[int, int], body: bytes) -> None:
    frame = struct.pack(">hhih", *request_kind, 1, -1) + body
    with contextlib.suppress(ProtocolError):
        decode_request(memoryview(frame))


@settings(quick, max_examples=500)
@given(st.binary(max_size=64))
def test_random_frames(frame: bytes) -> None:
    with contextlib.suppress(ProtocolError, UnsupportedVersion):
        decode_request(memoryview(frame))


HUGE = [
    pytest.param(1, struct.pack(">i", 2**31 - 1), id="array of 2^31-1, old style"),
    pytest.param(9, b"\xff\xff\xff\xff\x0f", id="compact array of 2^32-2"),
    pytest.param(9, b"\xff\xff\xff\xff\xff\x01", id="varint of six bytes"),
    pytest.param(9, b"\x02\xff\xff\xff\xff\x0f", id="compact string of 2^32-2 bytes"),
    pytest.param(9, b"\x02\x81\x80\x02", id="compact string beyond the limit of strings"),
    pytest.param(9, b"\x01\x00\x00\x00\xff\xff\xff\xff\x0f", id="2^32-1 tagged fields"),
    pytest.param(9, b"\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f", id="tagged field of 2^32-1 bytes"),
    pytest.param(1, struct.pack(">ih", 1, -2), id="string of negative length"),
    pytest.param(1, struct.pack(">ih2s", 1, 2, b"\xc3\x28"), id="invalid UTF-8"),
    pytest.param(0, struct.pack(">i", -1), id="null array where version 0 knows none"),
]


@pytest.mark.parametrize(("version", "body"), HUGE)
def test_claims_that_the_bytes_do_not_keep(version: int, body: bytes) -> None:
    padded = memoryview(body + b"\x01" * 64)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            MetadataRequest.decode(padded, 0, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_errors_name_the_field() -> None:
    with pytest.raises(ProtocolError, match="MetadataRequest v1 topics name claims a length of 500"):
        MetadataRequest.decode(memoryview(struct.pack(">ih", 1, 500)), 0, 1)


def test_a_frame_cut_at_every_byte_is_refused() -> None:
    requests = [
        (MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12),
        (
            ProduceRequest(
                acks=-1,
                topic_data=[
                    TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=1, records=b"r" * 300)])
                ],
            ),
            9,
        ),
    ]
    for request, version in requests:
        frame = encode_request(request, version, 7, "client")[4:]
        assert decode_request(memoryview(frame))[1] == request
        for cut in range(len(frame)):
            with pytest.raises(ProtocolError):
                decode_request(memoryview(frame[:cut]))
