"""Decoding of request frames and encoding of response frames, for the broker and for its own clients.

A frame is the content after the four-byte length on the socket: a header, whose version depends on the API and its
version, and the body. Responses are lists of chunks, because records may still be in files.
"""

from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple, TypeVar

from odradek.base.file_slice import FileSlice
from odradek.native.load import compiled
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.decoding_steps import HEADER_STEPS_MAX, RESPONSE_STEPS_MAX, STEPS_MAX
from odradek.protocol.messages import request_header
from odradek.protocol.messages.response_header import ResponseHeader
from odradek.protocol.primitives import (
    STRING_LENGTH_MAX,
    EncodeError,
    ProtocolError,
    Splices,
    bad_length,
    skip_tagged_fields,
)
from odradek.protocol.schema import Decoder, Request, Response

_FIXED_HEADER = Struct(">hhi")
_CLIENT_ID_LENGTH = Struct(">h")
_INT32 = Struct(">i")
_LENGTH_AND_CORRELATION = Struct(">ii")

_REPLACEMENT_BYTES = 3  # U+FFFD in UTF-8
_VERSIONS_MAX = 32
_header_versions = bytearray(128 * _VERSIONS_MAX)
"""Header versions of APIs and versions that have been asked for, 0 for others; for the compiled inner loop."""

R = TypeVar("R", bound=Response)


class RequestHeader(NamedTuple):
    """Header of a request: API, version, correlation id and client id. A tuple, since every request builds one."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class UnsupportedVersion(Exception):
    """A request that this protocol level doesn't know. To ApiVersions the answer is error 35 in version 0."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API key {header.api_key} version {header.api_version} is not supported")
        self.header = header


def is_produce(frame: memoryview) -> bool:
    """The one request whose size is in its records, which decoding leaves as they are."""
    return len(frame) >= 2 and frame[0] == 0 and frame[1] == ApiKey.PRODUCE


def parse_request_header(frame: memoryview) -> RequestHeader:
    """Parse the header, of an unknown API too, as far as all versions agree; its body position means nothing then."""
    if compiled is not None:
        found = compiled.request_header(RequestHeader, _header_versions, frame)
        if found is not None:
            return found
    try:
        key, version, correlation_id = _FIXED_HEADER.unpack_from(frame)
        header_version = _request_header_version(key, version)
        if header_version == 0:
            return RequestHeader(key, version, correlation_id, None, 8)
        (length,) = _CLIENT_ID_LENGTH.unpack_from(frame, 8)
        pos = 10 + length if length > 0 else 10
        if pos > len(frame):
            raise bad_length("a client id", length, len(frame) - 10)
        client_id = None if length < 0 else _client_id(frame[10:pos])
        if header_version == 2:
            pos = pos + 1 if frame[pos] == 0 else skip_tagged_fields(frame, pos, HEADER_STEPS_MAX)[0]
    except (struct_error, IndexError):
        raise ProtocolError("a request header ends too early") from None
    return RequestHeader(key, version, correlation_id, client_id, pos)


def _client_id(encoded: memoryview) -> str:
    """Decode a client id. What is not UTF-8, as in settings in Latin-1, becomes U+FFFD, as in Kafka; of such an id, as
    much is kept as fits into an answer."""
    try:
        return str(encoded, "utf-8")
    except UnicodeDecodeError:
        return str(encoded[: STRING_LENGTH_MAX // _REPLACEMENT_BYTES], "utf-8", "replace")


@lru_cache(maxsize=1024)
def _request_header_version(key: int, version: int) -> int:
    if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    api = APIS.get(key)
    if api is None or version not in api.versions:
        return 1
    header_version = 2 if version in api.request.FLEXIBLE else 1
    _header_versions[key * _VERSIONS_MAX + version] = header_version
    return header_version


def decode_request(frame: memoryview, steps: int = STEPS_MAX) -> tuple[RequestHeader, Request]:
    """Raises OverBudget where the body takes more steps than these."""
    header = parse_request_header(frame)
    decoder = _request_decoder(header.api_key, header.api_version)
    if decoder is None:
        raise UnsupportedVersion(header)
    request, _ = decoder(frame, header.body_position, steps)
    return header, request


@lru_cache(maxsize=1024)
def _request_decoder(key: int, version: int) -> Decoder[Request] | None:
    api = APIS.get(key)
    return api.request.decoder(version) if api and version in api.versions else None


class FixedResponse:
    """A response that is the same for every client: encoded once per version."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._frames: dict[int, bytes] = {}

    @property
    def response(self) -> Response:
        return self._response

    def frame(self, correlation_id: int, version: int) -> bytes:
        known = self._frames.get(version)
        if known is None:
            (chunk,) = encode_response(0, self._response, version)
            assert isinstance(chunk, bytes), "a slice of a file can't be shared by several responses"
            known = self._frames[version] = chunk
        return known[:4] + correlation_id.to_bytes(4, "big", signed=True) + known[8:]


def encode_response(
    correlation_id: int, response: Response | FixedResponse | bytes, version: int, copied_max: int = 0
) -> list[bytes | FileSlice]:
    """The whole frame, its length included. A response without file slices is exactly one chunk; bytes are a frame
    already. File slices of so many bytes together are read and become part of it."""
    if isinstance(response, bytes):
        return [response]
    if isinstance(response, FixedResponse):
        return [response.frame(correlation_id, version)]
    out = bytearray(9 if _has_flexible_header(response, version) else 8)
    splices: Splices = []
    response.encoder(version)(response, out, splices)
    length = len(out) - 4
    if not splices:
        _LENGTH_AND_CORRELATION.pack_into(out, 0, length, correlation_id)
        return [bytes(out)]
    sliced = splices[0][1].size if len(splices) == 1 else sum(file_slice.size for _, file_slice in splices)
    _LENGTH_AND_CORRELATION.pack_into(out, 0, length + sliced, correlation_id)
    if sliced <= copied_max:
        for position, file_slice in reversed(splices):
            out[position:position] = file_slice.read()
        if len(out) - 4 == length + sliced:
            return [bytes(out)]
        raise EncodeError(f"{length + sliced + 4 - len(out)} bytes of records are missing in their files")
    return _interleave(out, splices)


def _interleave(out: bytearray, splices: Splices) -> list[bytes | FileSlice]:
    encoded = bytes(out)
    chunks: list[bytes | FileSlice] = []
    start = 0
    for position, file_slice in splices:
        if position > start:
            chunks.append(encoded[start:position])
        chunks.append(file_slice)
        start = position
    if start < len(encoded):
        chunks.append(encoded[start:])
    return chunks


def _has_flexible_header(response: Response | type[Response], version: int) -> bool:
    """ApiVersions keeps the oldest header, so that a client can read the answer before versions are agreed on."""
    return version in response.FLEXIBLE and response.KEY != ApiKey.API_VERSIONS


def encode_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The whole frame, its length included."""
    out = bytearray(4)
    out += _FIXED_HEADER.pack(request.KEY, version, correlation_id)
    out += _request_header_rest(request.KEY, version, client_id)
    splices: Splices = []
    request.encoder(version)(request, out, splices)
    for position, file_slice in reversed(splices):
        out[position:position] = file_slice.read()
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


@lru_cache(maxsize=256)
def _request_header_rest(key: int, version: int, client_id: str | None) -> bytes:
    """The request header behind the correlation id, which is the same for all requests of a client to an API."""
    header = request_header.RequestHeader(request_api_key=key, request_api_version=version, client_id=client_id)
    out = bytearray()
    header.encoder(_request_header_version(key, version))(header, out, [])
    return bytes(out[_FIXED_HEADER.size :])


def decode_response(response: type[R], frame: memoryview, version: int) -> tuple[int, R]:
    """The correlation id and the response, from a frame without its length."""
    is_flexible = _has_flexible_header(response, version)
    if len(frame) > 4 and (not is_flexible or frame[4] == 0):  # as it nearly always is: no tagged fields
        correlation_id, pos = _INT32.unpack_from(frame)[0], 5 if is_flexible else 4
    else:
        header, pos = ResponseHeader.decode(frame, 0, 1 if is_flexible else 0)
        correlation_id = header.correlation_id
    body, _ = response.decoder(version)(frame, pos, RESPONSE_STEPS_MAX)
    return correlation_id, body
