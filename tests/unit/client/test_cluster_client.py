"""The tools' client, against brokers whose controller moves while all connections stay."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import delete_topic
from odradek.protocol.framing import decode_request, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from odradek.protocol.schema import Request, Response

SPOKEN = {18: 3, 3: 12, 20: 6}  # ApiVersions, Metadata, DeleteTopics


class Brokers:
    """Two of them; the one that isn't the controller deletes nothing."""

    def __init__(self) -> None:
        self.controller = 0
        self.deleted_by: list[int] = []
        self._servers = [SocketServer(_settings(), SmallBroker(number, self)) for number in range(2)]
        for server in self._servers:
            server.start()

    @property
    def ports(self) -> list[int]:
        return [server.port("PLAINTEXT") for server in self._servers]

    def stop(self) -> None:
        for server in self._servers:
            server.stop(0.1)

    def answer(self, asked: int, request: Request) -> Response:
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in SPOKEN.items()]
            )
        if isinstance(request, MetadataRequest):
            brokers = [
                MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port)
                for number, port in enumerate(self.ports)
            ]
            return MetadataResponse(brokers=brokers, controller_id=self.controller, topics=[])
        assert isinstance(request, DeleteTopicsRequest)
        self.deleted_by.append(asked)
        code = ErrorCode.NONE if asked == self.controller else ErrorCode.NOT_CONTROLLER
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders", error_code=code)])


class SmallBroker:
    def __init__(self, number: int, brokers: Brokers) -> None:
        self._number = number
        self._brokers = brokers

    def begin(self, request: InboundRequest) -> bool:
        header, message = decode_request(request.frame)
        answer = self._brokers.answer(self._number, message)
        request.reply(encode_response(header.correlation_id, answer, header.api_version))
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        raise AssertionError("nothing was declined")


def _settings() -> ServerSettings:
    return ServerSettings((ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0),), num_network_threads=1)


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.stop()


def test_a_controller_that_has_moved_is_looked_for_anew(brokers: Brokers) -> None:
    with ClusterClient(f"127.0.0.1:{brokers.ports[0]}") as client:
        delete_topic(client, "orders")
        brokers.controller = 1
        delete_topic(client, "orders")
        delete_topic(client, "orders")
    assert brokers.deleted_by == [0, 0, 1, 1]
