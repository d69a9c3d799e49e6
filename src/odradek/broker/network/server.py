"""The socket server, put together: per listener one acceptor and its processors, one request channel for all.

acceptor ──▶ processor ──▶ application.begin          (cannot block: served on the processor's thread)
                 │
                 └──▶ request channel ──▶ application.run   (may block: served on a handler thread)
"""

import threading
from collections.abc import Iterable, Mapping

from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.network.acceptor import Acceptor
from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_quotas import ConnectionQuotas
from odradek.broker.network.handshake_pool import HandshakePool
from odradek.broker.network.placement import Placement
from odradek.broker.network.processor import Processor
from odradek.broker.network.read_watch import ReadWatch
from odradek.broker.network.request import Application
from odradek.broker.network.request_channel import RequestChannel
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.security.authentication.listener_security import ListenerSecurity

log = get_logger(__name__)

_SURPLUS_DRAIN_S = 2.0


class SocketServer:
    def __init__(
        self,
        settings: ServerSettings,
        application: Application,
        address_limits: AddressLimits | None = None,
        security: Mapping[str, ListenerSecurity] | None = None,
    ) -> None:
        """`security` of each listener that is not PLAINTEXT, by its name."""
        self._security = {} if security is None else security
        self.settings = settings
        self.channel = RequestChannel(
            application, capacity=settings.queued_max_requests, max_threads=settings.num_io_threads
        )
        self.processors: list[Processor] = []
        self._peers: dict[int, Processor] = {}
        self._handshakes = HandshakePool()
        self._read_watch = ReadWatch(lambda: [processor.tls_reads for processor in self.processors])
        self._application = application
        self._quotas = ConnectionQuotas(settings, address_limits or AddressLimits())
        self._unprotected: list[Processor] = []
        self._acceptors: dict[str, Acceptor] = {}
        self._resizing = threading.Lock()
        self._stopped = False

    @property
    def connections(self) -> int:
        return self._quotas.total

    @property
    def held_bytes(self) -> int:
        return sum(processor.held_bytes for processor in self.processors)

    def port(self, listener_name: str) -> int:
        return self._acceptors[listener_name].port

    def has_room_for(self, size: int) -> bool:
        """Return whether a frame of this size may be read now; a single one always may, or it could never be."""
        limit = self.settings.queued_max_request_bytes
        held = self.held_bytes
        return limit < 0 or not held or held + size <= limit

    def bind(self) -> None:
        """Open every listener's port; clients queue there until `start`. Raises FatalError if one can't be had."""
        try:
            for listener in self.settings.listeners:
                placement = Placement()
                placement.processors = self._new_processors(
                    listener.name, placement, range(self._threads_of(listener.name))
                )
                self._acceptors[listener.name] = Acceptor(
                    listener,
                    self.settings,
                    placement,
                    self._quotas,
                    self._make_room,
                    self._security_of(listener),
                )
        except BaseException:
            self.stop(0)
            raise

    def _security_of(self, listener: ListenerSettings) -> ListenerSecurity | None:
        if listener.security_protocol == "PLAINTEXT":
            return None
        if listener.name not in self._security:
            raise FatalError(f"listener {listener.name} is {listener.security_protocol} and has no security settings")
        return self._security[listener.name]

    def start(self) -> None:
        if not self._acceptors:
            self.bind()
        for processor in self.processors:
            processor.start()
        if any(security.tls is not None for security in self._security.values()):
            self._read_watch.start()
        for name, acceptor in self._acceptors.items():
            acceptor.start()
            log.info("listening", listener=name, port=acceptor.port)

    def reconfigure(self, settings: ServerSettings) -> None:
        """Apply new limits and numbers of threads. Connections of a removed thread are closed."""
        with self._resizing:
            if self._stopped:
                return
            self.settings = settings
            self._quotas.reconfigure(settings)
            self.channel.resize(settings.num_io_threads)
            for name, acceptor in self._acceptors.items():
                if self._threads_of(name) != len(acceptor.placement.processors):
                    self._resize(name, acceptor.placement)

    def _threads_of(self, listener_name: str) -> int:
        listener = next(listener for listener in self.settings.listeners if listener.name == listener_name)
        return listener.num_network_threads or self.settings.num_network_threads

    def _resize(self, name: str, placement: Placement) -> None:
        kept, count = list(placement.processors), self._threads_of(name)
        added = self._new_processors(name, placement, range(len(kept), count))
        for processor in added:
            processor.start()
        placement.processors = kept[:count] + added
        for surplus in kept[count:]:
            SupervisedThread(
                target=self._retire, args=(surplus,), name=f"retire-{surplus.name}", is_essential=False
            ).start()

    def _retire(self, surplus: Processor) -> None:
        """Stop the processor in a thread of its own: the request that removed it may wait for its answer there."""
        surplus.drain(_SURPLUS_DRAIN_S)
        surplus.join()
        with self._resizing:
            self.processors = [processor for processor in self.processors if processor is not surplus]
            self._unprotected = [processor for processor in self._unprotected if processor is not surplus]

    def stop(self, drain_s: float = 2.0) -> None:
        """Accept no more, read no more, send the answers that come within the time, close."""
        self._quotas.stop()
        with self._resizing:
            self._stopped = True
        for acceptor in self._acceptors.values():
            acceptor.stop()
        self._read_watch.stop()
        for processor in self.processors:
            processor.drain(drain_s)
        for processor in self.processors:
            processor.join()
        self._handshakes.stop()
        self.channel.stop(drain_s)

    def _new_processors(self, listener: str, placement: Placement, numbers: Iterable[int]) -> list[Processor]:
        processors = [self._new_processor(f"network-{listener}-{number}", placement) for number in numbers]
        self.processors += processors
        if not self._quotas.is_protected(listener):
            self._unprotected += processors
        return processors

    def _new_processor(self, name: str, placement: Placement) -> Processor:
        return Processor(
            name,
            self.settings,
            self._application,
            self.channel,
            self,
            placement,
            self._peers,
            self._handshakes,
            self._connection_closed,
        )

    def _make_room(self) -> None:
        """Close a connection of another listener, because a protected listener has accepted one above the limit."""
        max(self._unprotected, key=lambda processor: processor.connections).close_least_recently_active()

    def _connection_closed(self, connection: Connection) -> None:
        if connection.held_up_others:
            self._quotas.flooded(connection.client_host)
        elif connection.left_before_login:
            self._quotas.login_failed(connection.client_host)
        self._quotas.leave(connection.listener_name, connection.client_host)
