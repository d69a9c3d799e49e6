import struct
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from odradek.base.file_slice import FileSlice
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.framing import (
    FixedResponse,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.primitives import STRING_LENGTH_MAX, EncodeError, ProtocolError


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[FileIO]:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    with FileIO(path) as file:
        yield file


@pytest.mark.parametrize("version", HeartbeatRequest.VERSIONS)
@pytest.mark.parametrize("client_id", [None, "", "büro"])
def test_requests_come_back(version: int, client_id: str | None) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = encode_request(request, version, 42, client_id)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    header, decoded = decode_request(memoryview(frame)[4:])
    assert header[:4] == (ApiKey.HEARTBEAT, version, 42, client_id)
    assert decoded == request


def test_the_oldest_controlled_shutdown_has_no_client_id() -> None:
    frame = encode_request(ControlledShutdownRequest(broker_id=7), 0, 1, "ignored")
    assert frame == struct.pack(">ihhii", 12, 7, 0, 1, 7)
    header, request = decode_request(memoryview(frame)[4:])
    assert header == RequestHeader(7, 0, 1, None, 8)
    assert request == ControlledShutdownRequest(broker_id=7)


def test_tagged_fields_of_the_request_header_are_skipped() -> None:
    body = HeartbeatRequest(group_id="g").encode(4)
    frame = struct.pack(">hhih", 12, 4, 5, -1) + b"\x01\x09\x02??" + body
    assert decode_request(memoryview(frame))[1] == HeartbeatRequest(group_id="g")


@pytest.mark.parametrize(("key", "version"), [(18, 99), (18, -1), (55, 0), (-1, 0), (32767, 32767)])
def test_unknown_requests_are_told_with_their_header(key: int, version: int) -> None:
    frame = memoryview(struct.pack(">hhih1s", key, version, 5, 1, b"c") + b"\x00garbage")
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(frame)
    assert refused.value.header[:4] == (key, version, 5, "c")
    assert parse_request_header(frame)[:4] == (key, version, 5, "c")


@pytest.mark.parametrize("frame", [b"", b"\x00\x12\x00\x00", struct.pack(">hhih", 18, 0, 1, 9), b"\x00" * 9])
def test_broken_headers(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(memoryview(frame))


@pytest.mark.parametrize(
    ("encoded", "client_id"),
    [(b"\xc3\x28", "\ufffd("), (b"caf\xe9", "caf\ufffd"), (b"\xff" * 32_767, "\ufffd" * 10_922)],
)
def test_a_client_id_that_is_not_utf_8(encoded: bytes, client_id: str) -> None:
    frame = memoryview(struct.pack(">hhih", 18, 0, 1, len(encoded)) + encoded + b"body")
    assert parse_request_header(frame) == (18, 0, 1, client_id, 10 + len(encoded))
    assert len(client_id.encode()) <= STRING_LENGTH_MAX


@pytest.mark.parametrize(("version", "header_size"), [(3, 4), (4, 5)])
def test_small_responses_are_one_chunk(version: int, header_size: int) -> None:
    response = HeartbeatResponse(throttle_time_ms=1, error_code=27)
    (frame,) = encode_response(9, response, version)
    assert isinstance(frame, bytes)
    body = response.encode(version)
    assert frame == struct.pack(">ii", header_size + len(body), 9) + bytes(header_size - 4) + body
    assert decode_response(HeartbeatResponse, memoryview(frame)[4:], version) == (9, response)


def test_api_versions_always_answers_with_the_oldest_header() -> None:
    (frame,) = encode_response(9, ApiVersionsResponse(), 3)
    assert isinstance(frame, bytes)
    assert frame[8:] == ApiVersionsResponse().encode(3)
    assert decode_response(ApiVersionsResponse, memoryview(frame)[4:], 3) == (9, ApiVersionsResponse())
    assert 3 in ApiVersionsRequest.FLEXIBLE


@pytest.mark.parametrize("version", FetchResponse.VERSIONS)
def test_file_slices_are_interleaved(segment: FileIO, version: int) -> None:
    first, second, empty = FileSlice(segment, 0, 4), FileSlice(segment, 4, 5), FileSlice(segment, 0, 0)
    partitions = [
        PartitionData(partition_index=0, records=first),
        PartitionData(partition_index=1, records=[b"ab", second, memoryview(b"cd")]),
        PartitionData(partition_index=2, records=empty),
        PartitionData(partition_index=3, records=None),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    chunks = encode_response(3, response, version)
    assert [chunk for chunk in chunks if isinstance(chunk, FileSlice)] == [first, second]
    frame = b"".join(chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    assert encode_response(3, response, version, copied_max=9) == [frame]
    assert encode_response(3, response, version, copied_max=8) == chunks
    assert frame.endswith(response.encode(version))
    _, decoded = decode_response(FetchResponse, memoryview(frame)[4:], version)
    received = [partition.records for partition in decoded.responses[0].partitions]
    assert received == [b"0123", b"ab45678cd", b"", None]
    assert isinstance(received[0], memoryview)


def test_a_file_that_ends_before_its_slice_makes_no_answer(segment: FileIO) -> None:
    partition = PartitionData(partition_index=0, records=FileSlice(segment, 4, 100))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    with pytest.raises(EncodeError, match="bytes of records are missing"):
        encode_response(3, response, 12, copied_max=100)


def test_the_table_and_the_classes_agree() -> None:
    assert len(APIS) == 62 == len(ApiKey)
    for key, api in APIS.items():
        assert api.request.KEY == api.response.KEY == key
        assert api.request.VERSIONS == api.response.VERSIONS == api.versions
        assert api.request.FLEXIBLE == api.response.FLEXIBLE
        assert (api.min_version, api.max_version) == (api.versions[0], api.versions[-1])


def test_a_fixed_response_differs_only_in_whom_it_answers() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, min_version=2, max_version=3)])
    fixed = FixedResponse(response)
    for version in (0, 3):
        for correlation_id in (1, -7, 2**31 - 1):
            assert encode_response(correlation_id, fixed, version) == encode_response(correlation_id, response, version)
