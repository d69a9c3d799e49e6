"""The controller's channels to the brokers: one queue, one connection and one send thread per broker, itself included.

Requests are sent one at a time in the order in which they were queued, and repeated until the broker answers or the
channel is closed. The event thread never waits for a broker: it only queues. If a broker doesn't answer for a long
time, requests about the same partition replace each other in its queue, so that it later gets fewer of them. Answers to
LeaderAndIsr and StopReplica become events. Correlation ids increase across all connections of a term; a broker uses
them to recognize late requests (`api.control_gate`).
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.controller.core.events import Event
from odradek.broker.controller.core.request_merge import merged
from odradek.broker.controller.request_answers import event_of
from odradek.broker.controller.trace import request_text
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker
from odradek.model.topology import Broker, Endpoint
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UPDATE_OF_ALL, UpdateMetadataRequest
from odradek.protocol.schema import Request

log = get_logger(__name__)

RETRY_BACKOFF_MS = 100
MERGE_ABOVE = 32
"""Most requests that wait; further ones are merged into them."""


class BrokerChannels:
    """Channels of one term of the controller; only its event thread opens, closes and sends."""

    def __init__(
        self,
        controller_id: int,
        listener: str,
        *,
        timeout_ms: int,
        setup_timeout: Callable[[], SetupTimeout],
        answered: Callable[[Event], None],
    ) -> None:
        self._controller_id = controller_id
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._setup_timeout = setup_timeout
        self._answered = answered
        self._channels: dict[int, _Channel] = {}
        self._correlation_ids = itertools.count(1)

    def open(self, broker: Broker) -> None:
        """An open channel to it is closed: the broker has restarted, or its address has changed."""
        self.close(broker.id)
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            log.error("controller failed to connect to broker", broker=broker.id, listener=self._listener)
            return
        channel = _Channel(
            self._controller_id,
            broker.id,
            endpoint,
            self._timeout_ms,
            self._setup_timeout(),
            self._answered,
            self._correlation_ids,
        )
        self._channels[broker.id] = channel
        channel.start()

    def close(self, broker_id: int) -> None:
        """Close the channels: waiting requests are not sent, answers are ignored."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def send(self, broker_id: int, request: Request) -> None:
        channel = self._channels.get(broker_id)
        if channel is None:
            log.warning(
                "controller request not sent, broker is offline", broker=broker_id, request=type(request).__name__
            )
        else:
            channel.put(request)

    def close_all(self) -> None:
        for broker_id in list(self._channels):
            self.close(broker_id)


class _Channel:
    def __init__(
        self,
        controller_id: int,
        broker_id: int,
        endpoint: Endpoint,
        timeout_ms: int,
        setup: SetupTimeout,
        answered: Callable[[Event], None],
        correlation_ids: Iterator[int],
    ) -> None:
        self._client_id = str(controller_id)
        self._broker_id = broker_id
        self._endpoint = endpoint
        self._timeout_ms = timeout_ms
        self._setup = setup
        self._answered = answered
        self._correlation_ids = correlation_ids
        self._changed = threading.Condition()
        self._requests: deque[Request] = deque()
        self._closed = False
        self._client: BrokerClient | None = None
        self._failing = False
        self._thread = SupervisedThread(target=self._run, name=f"controller-{controller_id}-to-broker-{broker_id}")

    def start(self) -> None:
        """Start the thread. If that fails, the next request tries again: no other thread sends those that wait."""
        if self._thread.ident is None:
            try:
                self._thread.start()
            except RuntimeError:
                log.exception("thread of a controller channel can't be started", broker=self._broker_id)

    def put(self, request: Request) -> None:
        self.start()
        with self._changed:
            if len(self._requests) < MERGE_ABOVE or not self._merge(request):
                self._requests.append(request)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._requests.clear()
            client = self._client
            self._changed.notify()
        if client is not None:
            client.abort()

    def _merge(self, request: Request) -> bool:
        """Merge into the newest waiting request of its kind, unless a request in between must not be overtaken: a
        StopReplica, or all metadata of the cluster, by which a broker sets aside replicas that are on other brokers."""
        for i in range(len(self._requests) - 1, -1, -1):
            waiting = self._requests[i]
            if isinstance(waiting, StopReplicaRequest):
                return False
            if (both := merged(waiting, request)) is not None:
                self._requests[i] = both
                return True
            if isinstance(waiting, UpdateMetadataRequest) and waiting.type == UPDATE_OF_ALL:
                return False
        return False

    def _run(self) -> None:
        while (request := self._next()) is not None:
            try:
                self._deliver(request)
            except Exception:
                log.exception("controller request dropped", broker=self._broker_id, request=request_text(request))
                self._disconnect()
        self._disconnect()

    def _next(self) -> Request | None:
        with self._changed:
            while not self._closed and not self._requests:
                self._changed.wait()
            return None if self._closed else self._requests.popleft()

    def _deliver(self, request: Request) -> None:
        """Send until it is answered, or the channel is closed."""
        while not self._closed:
            try:
                answer = self._connected().send(request)
            except (ConnectionFailed, UnsupportedByBroker) as error:
                self._failed(error)
                continue
            if self._failing:
                log.info("controller reconnected to broker", broker=self._broker_id)
                self._failing = False
            event = event_of(self._broker_id, request, answer)
            if event is not None and not self._closed:
                self._answered(event)
            return

    def _connected(self) -> BrokerClient:
        if self._client is None:
            client = self._setup.connect(self._attempt)
            with self._changed:
                self._client = client
                if self._closed:
                    client.abort()
        return self._client

    def _attempt(self, limit_ms: int) -> BrokerClient:
        return BrokerClient(
            self._endpoint.host,
            self._endpoint.port,
            self._client_id,
            self._timeout_ms,
            connect_timeout_ms=limit_ms,
            correlation_ids=self._correlation_ids,
            security=self._setup.security,
        )

    def _failed(self, error: Exception) -> None:
        self._disconnect()
        with self._changed:
            if self._closed:
                return
            if not self._failing:
                log.warning(
                    "controller failed to connect to broker, retrying", broker=self._broker_id, error=str(error)
                )
                self._failing = True
            self._changed.wait_for(lambda: self._closed, RETRY_BACKOFF_MS / 1000)

    def _disconnect(self) -> None:
        with self._changed:
            client, self._client = self._client, None
        if client is not None:
            client.close()
