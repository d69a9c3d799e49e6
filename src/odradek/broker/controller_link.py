"""Connection of a broker to the controller: one request at a time, each tried once.

A caller that can't wait for the requests of others has its own link. A request to a replaced controller is abandoned as
soon as this broker learns of the new one.
"""

import threading
from typing import Any

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker
from odradek.model.metadata_image import MetadataCache, MetadataImage
from odradek.protocol.schema import Request


class ControllerLink:
    def __init__(self, broker_id: int, config: BrokerConfig, metadata: MetadataCache) -> None:
        self._client_id = f"broker-{broker_id}"
        self._listener = config.inter_broker_listener_name
        self._timeout_ms = config.controller_socket_timeout_ms
        self._setup = SetupTimeout.of(config)
        self._metadata = metadata
        self._turn = threading.Lock()
        self._client: BrokerClient | None = None
        self._peer: tuple[int, str, int] | None = None
        self._closed = False
        metadata.on_publish.append(self._hang_up_on_another)

    def send(self, request: Request) -> Any:
        """Send a request; return the controller's answer. KafkaError NOT_CONTROLLER: none is known, or it can't be
        reached."""
        with self._turn:
            client = self._connected()
            try:
                return client.send(request)
            except (ConnectionFailed, UnsupportedByBroker) as error:
                self._hang_up()
                raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error

    def close(self) -> None:
        """End a request in progress, and refuse others."""
        self._closed = True
        if (client := self._client) is not None:
            client.abort()

    def _connected(self) -> BrokerClient:
        peer = self._address(self._metadata.image)
        if peer is None or self._closed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This broker knows of no controller at the moment.")
        if self._client is None or self._peer != peer:
            self._hang_up()
            try:
                self._setup.connect(
                    lambda limit_ms: BrokerClient(
                        peer[1],
                        peer[2],
                        self._client_id,
                        self._timeout_ms,
                        limit_ms,
                        security=self._setup.security,
                        connected=lambda client: self._take(client, peer),
                    )
                )
            except BaseException as error:
                self._hang_up()
                if isinstance(error, ConnectionFailed):
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error
                raise
        assert self._client is not None
        return self._client

    def _take(self, client: BrokerClient, peer: tuple[int, str, int]) -> None:
        """Connect to the controller. A frozen one accepts the connection and never answers."""
        self._client, self._peer = client, peer
        if self._closed or peer != self._address(self._metadata.image):
            client.abort()

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._peer = None

    def _address(self, image: MetadataImage) -> tuple[int, str, int] | None:
        controller = image.brokers.get(image.controller_id)
        endpoint = controller.endpoint(self._listener) if controller else None
        return (image.controller_id, endpoint.host, endpoint.port) if endpoint else None

    def _hang_up_on_another(self, image: MetadataImage) -> None:
        client, peer = self._client, self._peer
        if client is not None and peer is not None and peer != self._address(image):
            client.abort()
