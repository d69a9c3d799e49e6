"""Requests from this broker to another, batched: one queue, one connection and one thread per destination.

One request is under way at a time; what arrives meanwhile goes with the next. A thread is started by the first item and
sleeps while there is none. The queue is bounded by its users: each item answers a request, or ends a transaction.

A broker that is frozen answers nothing, until the request's time is up. But others lead its partitions when its session
is over: whoever hears that hangs up, and the items are given back.
"""

import threading
from collections import deque
from collections.abc import Callable, Container
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker

log = get_logger(__name__)

Item = TypeVar("Item")
Connect: TypeAlias = Callable[[int, Callable[[BrokerClient], None]], BrokerClient]
"""Connects to a broker. The second argument is called with the connection before its first request."""

_TOGETHER_MAX = 500
_CLOSE_WAIT_S = 5


class BatchChannel(Generic[Item]):
    def __init__(
        self,
        name: str,
        connect: Callable[[Callable[[BrokerClient], None]], BrokerClient],
        exchange: Callable[[BrokerClient, list[Item]], None],
        failed: Callable[[list[Item], Exception], None],
    ) -> None:
        """`connect` and `exchange` may raise ConnectionFailed or UnsupportedByBroker; then `failed` gets the items. So
        it does on the thread that puts an item, if the channel's thread can't be started."""
        self._name = name
        self._connect = connect
        self._exchange = exchange
        self._failed = failed
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._client: BrokerClient | None = None
        self._is_exchanging = False
        self._is_hung_up = False  # for the items that are being sent
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, item: Item) -> bool:
        """False: the channel is closed."""
        with self._changed:
            if self._closed:
                return False
            try:
                self._start_thread()
            except RuntimeError as error:
                failure = error
            else:
                self._items.append(item)
                self._changed.notify()
                return True
        self._give_back([item], failure)
        return True

    def _start_thread(self) -> None:
        if self._thread is None:
            thread = SupervisedThread(self._run, self._name)
            thread.start()  # which may fail: the next item tries again
            self._thread = thread

    def hang_up(self) -> None:
        """Wait no longer for an answer, if one is waited for: `failed` gets the items."""
        with self._changed:
            if not self._is_exchanging:
                return
            self._is_hung_up = True
            client = self._client
        if client is not None:
            client.abort()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._items.clear()
            client, thread = self._client, self._thread
            self._changed.notify()
        if client is not None:
            client.abort()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_WAIT_S)

    def _run(self) -> None:
        while items := self._next():
            try:
                self._exchange(self._connected(), items)
            except (ConnectionFailed, UnsupportedByBroker) as error:
                self._disconnect()
                self._give_back(items, error)
            except Exception as error:
                log.exception("request to another broker failed", channel=self._name)
                self._disconnect()
                self._give_back(items, error)
        self._disconnect()

    def _give_back(self, items: list[Item], error: Exception) -> None:
        try:
            self._failed(items, error)
        except Exception:
            log.exception("items of a failed request dropped", channel=self._name, items=len(items))

    def _next(self) -> list[Item]:
        with self._changed:
            self._is_exchanging = self._is_hung_up = False
            while not self._closed and not self._items:
                self._changed.wait()
            if self._closed:
                return []
            self._is_exchanging = True
            return [self._items.popleft() for _ in range(min(len(self._items), _TOGETHER_MAX))]

    def _connected(self) -> BrokerClient:
        client = self._client
        if client is None:
            client = self._connect(self._take)
            self._take(client)
        return client

    def _take(self, client: BrokerClient) -> None:
        """Take a new connection, perhaps before it is ready."""
        with self._changed:
            self._client = client
            if self._closed or self._is_hung_up:
                client.abort()

    def _disconnect(self) -> None:
        with self._changed:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class BatchChannels(Generic[Item]):
    """A channel to each broker that something was sent to."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        exchange: Callable[[BrokerClient, list[Item]], None],
        failed: Callable[[list[Item], Exception], None],
    ) -> None:
        self._name = name
        self._connect = connect
        self._exchange = exchange
        self._failed = failed
        self._lock = threading.Lock()
        self._channels: dict[int, BatchChannel[Item]] = {}
        self.is_stopped = False

    def put(self, broker: int, item: Item) -> bool:
        """False: the channels are stopped."""
        with self._lock:
            if self.is_stopped:
                return False
            channel = self._channels.get(broker)
            if channel is None:
                channel = self._channels[broker] = BatchChannel(
                    f"{self._name}-{broker}", partial(self._connect, broker), self._exchange, self._failed
                )
        return channel.put(item)

    def hang_up_on_others(self, alive: Container[int]) -> None:
        """Wait no longer for answers of brokers that aren't among those that are alive. Never blocks."""
        with self._lock:
            gone = [channel for broker, channel in self._channels.items() if broker not in alive]
        for channel in gone:
            channel.hang_up()

    def stop(self) -> None:
        with self._lock:
            self.is_stopped = True
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()
