"""One listening socket and the thread that empties it: each connection goes to the listener's first processor.

A connection beyond the rate of its address is held, unread, for a time and then closed, because refused clients try
again at once. If an address has many held connections, the kernel drops its further attempts (`address_filter`).
"""

import select
import socket
import threading
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil
from time import monotonic

from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.network.address_filter import AddressFilter
from odradek.broker.network.connection import Accepted
from odradek.broker.network.connection_quotas import ComesTooOften, ConnectionQuotas, Stopped, TooManyConnections
from odradek.broker.network.placement import Placement
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from odradek.broker.security.authentication.listener_security import ListenerSecurity

log = get_logger(__name__)

_PAUSE_AFTER_ERROR_S = 0.1
_HELD_MAX = 1000
_HELD_OF_ADDRESS_MAX = 50
_BURST_MAX = 100
_LOG_INTERVAL_S = 1.0


class Acceptor:
    def __init__(
        self,
        listener: ListenerSettings,
        settings: ServerSettings,
        placement: Placement,
        quotas: ConnectionQuotas,
        make_room: Callable[[], None],
        security: ListenerSecurity | None = None,
    ) -> None:
        """Bind at once, so that a port in use stops the broker's start."""
        self._listener = listener
        self._settings = settings
        self.placement = placement
        self._quotas = quotas
        self._make_room = make_room
        self._security = security
        self._count = 0
        self._held: list[tuple[float, int, socket.socket, str]] = []  # a heap: until when, then in turn
        self._held_of: Counter[str] = Counter()
        self._unlogged, self._logged_at = 0, -_LOG_INTERVAL_S
        self._sleeps_in_accept = False
        self._stopping = threading.Event()
        self._socket = _listen(listener, settings)
        self._local = self._socket.getsockname() if listener.host else None
        """Local address of all its connections; None where each may have another."""
        self._filter = AddressFilter(self._socket)
        self._thread = SupervisedThread(target=self._run, name=f"acceptor-{listener.name}")

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
        except OSError:
            log.debug("wake-up connection to the listener failed", listener=self._listener.name)
        if self._thread.ident is not None:
            self._thread.join()
        for _, _, held, _ in self._held:
            held.close()
        self._socket.close()

    def _run(self) -> None:
        arrivals = select.poll()
        arrivals.register(self._socket, select.POLLIN)
        while not self._stopping.is_set():
            wait_ms = self._let_go()
            if (wait_ms is None) != self._sleeps_in_accept:
                self._sleeps_in_accept = wait_ms is None
                self._socket.setblocking(self._sleeps_in_accept)
            if wait_ms is None:
                self._accept()  # one system call; a check for arrivals would make it two or three
                continue
            arrivals.poll(wait_ms)
            for _ in range(_BURST_MAX):
                if not self._accept():
                    break

    def _accept(self) -> bool:
        """Take a connection and hand it over, or refuse it. False: there is none."""
        try:
            connected, address = self._socket.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if not self._stopping.is_set():
                # Out of descriptors, most often: the connection stays in the kernel's queue meanwhile.
                log.error("accept failed", listener=self._listener.name, detail=str(error))
                self._stopping.wait(_PAUSE_AFTER_ERROR_S)
            return False
        try:
            self._hand_over(connected, str(address[0]), int(address[1]))
        except Stopped:
            connected.close()
        except ComesTooOften as refusal:
            self._hold(connected, refusal)
        except (OSError, TooManyConnections) as error:
            connected.close()
            self._refused(str(error))
        return True

    def _hand_over(self, connected: socket.socket, host: str, port: int) -> None:
        """Refusals come first: a flood of connections costs little more than the system calls of its refusal."""
        host = host.removeprefix("::ffff:")
        if self._quotas.admit(self._listener.name, host):
            self._make_room()
        try:
            local = self._local or connected.getsockname()
        except OSError:
            self._quotas.leave(self._listener.name, host)
            raise
        accepted = Accepted(
            socket=connected,
            id=f"{local[0]}:{local[1]}-{host}:{port}-{self._count}",
            listener_name=self._listener.name,
            security_protocol=self._listener.security_protocol,
            client_host=host,
            client_port=port,
            security=self._security,
        )
        self.placement.first.adopt(accepted)
        self._count += 1

    def _refused(self, detail: str) -> None:
        """Log refusals, one line a second: a client that tries again at once must not fill the log."""
        self._unlogged += 1
        now = monotonic()
        if now - self._logged_at >= _LOG_INTERVAL_S:
            log.warning("connection refused", listener=self._listener.name, detail=detail, count=self._unlogged)
            self._unlogged, self._logged_at = 0, now

    def _hold(self, connected: socket.socket, refusal: ComesTooOften) -> None:
        until = monotonic() + refusal.wait_ms / 1000
        heappush(self._held, (until, self._count, connected, refusal.host))
        self._count += 1
        self._held_of[refusal.host] += 1
        if self._held_of[refusal.host] > _HELD_OF_ADDRESS_MAX:
            self._filter.drop(refusal.host, until)
        if len(self._held) > _HELD_MAX:
            self._close_held()

    def _close_held(self) -> None:
        _, _, held, host = heappop(self._held)
        held.close()
        self._held_of[host] -= 1
        if not self._held_of[host]:
            del self._held_of[host]

    def _let_go(self) -> int | None:
        """Close held connections whose time is over. Return the milliseconds until the next one; None without any."""
        if not self._held and self._filter.next_end is None:
            return None
        now = monotonic()
        while self._held and self._held[0][0] <= now:
            self._close_held()
        self._filter.end(now)
        ends = [end for end in (self._held[0][0] if self._held else None, self._filter.next_end) if end is not None]
        return max(0, ceil((min(ends) - now) * 1000)) if ends else None


def _listen(listener: ListenerSettings, settings: ServerSettings) -> socket.socket:
    """Open the port. Connections inherit the options of the listening socket."""
    everywhere = not listener.host
    dual_stack = everywhere and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual_stack or ":" in listener.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual_stack:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if settings.socket_send_buffer_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.socket_send_buffer_bytes)
        if settings.socket_receive_buffer_bytes >= 0:
            # Before listen: the window scale of a connection is agreed before accept returns it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.socket_receive_buffer_bytes)
        listening.bind((listener.host, listener.port))
        listening.listen(settings.socket_listen_backlog_size)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        where = f"{listener.host or '*'}:{listener.port}"
        raise FatalError(f"listener {listener.name} can't listen on {where}: {error.strerror}") from error
    return listening
