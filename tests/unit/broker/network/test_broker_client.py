"""The blocking client, against a server that answers ApiVersions like an old or a new broker."""

import queue
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from frame_client import Echo

from odradek.base.errors import ErrorCode
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker
from odradek.client.pipelined_connection import PipelinedConnection
from odradek.protocol.framing import RequestHeader, decode_request, decode_response, encode_request, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.schema import Request, Response


class SmallBroker(Echo):
    """Knows ApiVersions up to `newest` and Heartbeat in versions 1 to 3; silent to all else."""

    def __init__(self, newest: int = 4) -> None:
        self._newest = newest
        self.asked: list[tuple[RequestHeader, Request]] = []

    def begin(self, request: InboundRequest) -> bool:
        header, message = decode_request(request.frame)
        self.asked.append((header, message))
        answer, version = self._answer(header, message)
        if answer is not None:
            request.reply(encode_response(header.correlation_id, answer, version))
        return True

    def _answer(self, header: RequestHeader, message: Request) -> tuple[Response | None, int]:
        if isinstance(message, ApiVersionsRequest):
            if header.api_version > self._newest:
                return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), 0
            keys = [
                ApiVersion(api_key=18, min_version=0, max_version=self._newest),
                ApiVersion(api_key=12, min_version=1, max_version=3),
            ]
            return ApiVersionsResponse(api_keys=keys), header.api_version
        if isinstance(message, HeartbeatRequest) and message.group_id != "silence":
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), header.api_version
        return None, 0


@pytest.mark.parametrize("newest", [0, 3, 4])
def test_it_speaks_the_highest_common_version(serve, newest):
    broker = SmallBroker(newest)
    with BrokerClient("127.0.0.1", serve(broker).port("PLAINTEXT"), client_id="tool") as client:
        answer = client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        assert answer == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        header, message = broker.asked[-1]
        assert (header.api_version, header.client_id, message.group_id) == (3, "tool", "g")
        client.send(HeartbeatRequest(group_id="g"), version=1)
        assert broker.asked[-1][0].api_version == 1


def test_a_request_that_the_broker_lacks_is_named(serve):
    with (
        BrokerClient("127.0.0.1", serve(SmallBroker()).port("PLAINTEXT")) as client,
        pytest.raises(UnsupportedByBroker, match="has no Metadata request"),
    ):
        client.send(MetadataRequest())


def test_silence_becomes_an_error_that_says_what_was_asked(serve):
    with (
        BrokerClient("127.0.0.1", serve(SmallBroker()).port("PLAINTEXT"), timeout_ms=200) as client,
        pytest.raises(ConnectionFailed, match="didn't answer Heartbeat within 200 ms"),
    ):
        client.send(HeartbeatRequest(group_id="silence"))


def test_nobody_there_is_a_clear_error():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with pytest.raises(ConnectionFailed, match=f"no broker answers at 127.0.0.1:{port}: Connection refused"):
            BrokerClient("127.0.0.1", port)


def test_something_that_is_no_broker_is_a_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as web:
        thread = threading.Thread(target=_refuse_one, args=(web,))
        thread.start()
        with pytest.raises(ConnectionFailed, match="doesn't speak the Kafka protocol"):
            BrokerClient("127.0.0.1", web.getsockname()[1], timeout_ms=2000)
        thread.join()


def _refuse_one(web: socket.socket) -> None:
    connected, _ = web.accept()
    with connected:
        connected.recv(100)
        connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_who_waits_for_an_answer_can_be_let_go(serve):
    broker = SmallBroker()
    client = BrokerClient("127.0.0.1", serve(broker).port("PLAINTEXT"), timeout_ms=60_000)
    failures: queue.Queue[Exception] = queue.Queue()

    def wait() -> None:
        try:
            client.send(HeartbeatRequest(group_id="silence"))
        except ConnectionFailed as error:
            failures.put(error)

    threading.Thread(target=wait, daemon=True).start()
    client.abort()
    assert isinstance(failures.get(timeout=60), ConnectionFailed)
    client.abort()


@pytest.mark.parametrize("remembers", [False, True])
def test_an_answer_that_is_as_before_is_the_same_for_who_remembers(serve, remembers):
    with BrokerClient("127.0.0.1", serve(SmallBroker()).port("PLAINTEXT"), remembers=remembers) as client:
        first, second = (client.send(HeartbeatRequest(group_id="g")) for _ in range(2))
        assert first == second
        assert (first is second) == remembers
        assert client.send(HeartbeatRequest(group_id="g"), version=1) is not first


# ---- time limits of connecting, and buffers


@pytest.fixture
def deaf() -> Iterator[tuple[str, int]]:
    """A port that completes no handshake: its backlog is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        yield address
        for filler in fillers:
            filler.close()


def refuse(limit_ms: int) -> BrokerClient:
    raise ConnectionFailed(f"after {limit_ms} ms")


def test_each_failure_doubles_the_limit_and_a_success_starts_over(serve):
    port = serve(SmallBroker()).port("PLAINTEXT")
    timeout = SetupTimeout(100, 350)
    limits = []
    for _ in range(4):
        limits.append(timeout.limit_ms)
        with pytest.raises(ConnectionFailed):
            timeout.connect(refuse)
    assert limits == [100, 200, 350, 350]
    timeout.connect(lambda limit_ms: BrokerClient("127.0.0.1", port, connect_timeout_ms=limit_ms)).close()
    assert timeout.limit_ms == 100


OTHER_LIMIT_S = 60
"""The limit that must not be the one that ends the wait: far above the 0.2 s of the one that must."""


def test_a_broker_that_completes_no_handshake_costs_the_setup_timeout_alone(deaf):
    timeout = SetupTimeout(200, 1000)
    began = time.monotonic()
    with pytest.raises(ConnectionFailed, match="timed out"):
        timeout.connect(
            lambda limit_ms: BrokerClient(*deaf, timeout_ms=OTHER_LIMIT_S * 1000, connect_timeout_ms=limit_ms)
        )
    assert 0.2 <= time.monotonic() - began < OTHER_LIMIT_S
    assert timeout.limit_ms == 400


def test_the_request_timeout_holds_for_connecting_as_well(deaf):
    began = time.monotonic()
    with pytest.raises(ConnectionFailed, match="timed out"):
        BrokerClient(*deaf, timeout_ms=200, connect_timeout_ms=OTHER_LIMIT_S * 1000)
    assert time.monotonic() - began < OTHER_LIMIT_S


@pytest.mark.parametrize(("given", "held"), [(-1, None), (20_000, 40_000)])
def test_the_receive_buffer_is_the_kernel_s_unless_given(serve, given, held):
    """Linux doubles what it is given, for its own bookkeeping."""
    port = serve(SmallBroker()).port("PLAINTEXT")
    with (
        BrokerClient("127.0.0.1", port, "follower", 5000) as peer,
        socket.create_connection(("127.0.0.1", port)) as plain,
    ):
        peer.connection.reuse_buffer(given)
        kernel_s = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        with socket.fromfd(peer.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as connected:
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == (held or kernel_s)


@pytest.mark.parametrize("reused", [False, True])
def test_answers_come_in_the_order_of_the_requests(serve, reused):
    with BrokerClient("127.0.0.1", serve(SmallBroker()).port("PLAINTEXT")) as client:
        if reused:
            client.connection.reuse_buffer()
        asked = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        for _ in range(1 if reused else 3):
            client.submit(asked)
        for _ in range(1 if reused else 3):
            assert client.receive().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.send(asked).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pipelined_connection_takes_over_the_client_s(serve):
    asked = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    client = BrokerClient("127.0.0.1", serve(SmallBroker()).port("PLAINTEXT"))
    connection: PipelinedConnection[str] = PipelinedConnection(client)
    for tag in "ab":
        connection.submit(encode_request(asked, 3, 1, None), tag)
    answers: list[tuple[str, memoryview]] = []
    while len(answers) < 2:
        select.select([connection.socket], [], [], 10)
        answers += connection.read()
    connection.close()
    assert [tag for tag, _ in answers] == ["a", "b"]
    _, answer = decode_response(HeartbeatResponse, answers[0][1], 3)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
