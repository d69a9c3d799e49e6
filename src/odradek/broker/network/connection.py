"""Connection of a client: its identity, requests and pending answers. Touched by the holder of its processor's turn.

The API layer reads its identity and adds facts about the client (software, principal).
"""

from collections import deque
from collections.abc import Sequence
from select import EPOLLIN, EPOLLRDHUP
from socket import socket
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.base.file_slice import Chunk
from odradek.broker.network.frame_reader import FrameReader
from odradek.broker.network.outbox import Outbox
from odradek.broker.network.request import InboundRequest
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.sasl_session import UNLIMITED_RECEIVE, SaslSession, SaslState
from odradek.broker.security.authorizer.allowed_names import AllowedNames
from odradek.broker.security.principal import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    from odradek.broker.network.tls_transport import TlsTransport

READABLE = EPOLLIN | EPOLLRDHUP
"""Events of a connection that is read: bytes, and the client closing its side behind bytes that are not read yet."""


class ConnectionOwner(Protocol):
    """The processor, as its connections' requests see it. All may be called from any thread."""

    def answer(self, request: InboundRequest, chunks: Sequence[Chunk] | None) -> None: ...

    def mute(self, connection: "Connection", until_ns: int) -> None: ...

    def close(self, connection: "Connection", reason: str) -> None: ...

    def begin_handshake_step(self, connection: "Connection", transport: "TlsTransport") -> None: ...


class Accepted(NamedTuple):
    """A connection on its way from the acceptor to a processor."""

    socket: socket
    id: str
    listener_name: str
    security_protocol: str
    client_host: str
    client_port: int
    security: ListenerSecurity | None = None
    """None: a PLAINTEXT listener."""


class Connection:
    __slots__ = (
        "allowed_names",
        "client_host",
        "client_port",
        "closed",
        "delegated",
        "dirty",
        "fd",
        "first_frame_began_ns",
        "id",
        "interest",
        "is_secured",
        "large_lately",
        "last_active_ns",
        "listener_name",
        "muted_until_ns",
        "outbox",
        "owner",
        "peer_closed",
        "principal",
        "producer_memory",
        "reader",
        "reserved_bytes",
        "reserved_ns",
        "sasl",
        "security_protocol",
        "setup_deadline_ns",
        "socket",
        "tls",
        "unanswered",
        "unread",
    )

    def __init__(self, accepted: Accepted, owner: ConnectionOwner, max_frame_bytes: int, now_ns: int) -> None:
        self.id = accepted.id
        self.listener_name = accepted.listener_name
        self.security_protocol = accepted.security_protocol
        self.client_host = accepted.client_host
        self.client_port = accepted.client_port
        self.principal: KafkaPrincipal = ANONYMOUS
        """Set by authentication; requests are authorized by it."""
        self.allowed_names: AllowedNames | None = None
        """Actions that the authorizer has allowed, for the API layer."""
        self.producer_memory: object = None
        """State of the producers on this connection, for the API layer."""
        self.peer_closed = False
        """The client closed its side before its last requests were read: it does not wait for their answers."""
        self.closed = False

        # From here on the processor's.
        self.owner = owner
        """Changed by the holder of the old owner's turn and the new one's."""
        self.fd = accepted.socket.fileno()
        self.is_secured = accepted.security is not None
        self.sasl: SaslSession | None = None
        """The session that requests have to pass while the client has to authenticate; None: it need not."""
        self.setup_deadline_ns = 0
        """The time at which a client that is not authenticated yet is closed; 0: no limit."""
        self.tls: TlsTransport | None = None
        if accepted.security is None:
            self.socket: socket | TlsTransport = accepted.socket
            self.reader = FrameReader(accepted.socket, max_frame_bytes)
            self.outbox = Outbox(accepted.socket)
        else:
            self._secure(accepted.socket, accepted.security, max_frame_bytes)
        self.unread: deque[bytearray] = deque()
        """Frames that have arrived and not begun, because something before them has to end first."""
        self.unanswered: deque[InboundRequest] = deque()
        """Requests in the order of their arrival; answers wait here for the answers before them."""
        self.delegated: InboundRequest | None = None
        """The request that a handler thread has. What it changes must be changed before the next one begins. A step of
        a TLS handshake that runs elsewhere is an empty one."""
        self.dirty = False
        self.interest = READABLE
        self.reserved_bytes = 0
        """The part of the request memory that is set aside for the unfinished frame."""
        self.reserved_ns = 0
        self.last_active_ns = now_ns
        self.large_lately = 0
        """Raised by each large request or answer, as far as `placement.HEAVY`, and lowered by each small one."""
        self.muted_until_ns = 0
        """Time until which the connection is muted for its client's quota; 0: it isn't."""
        self.first_frame_began_ns: int | None = 0
        """0: nothing has come yet, or nothing since the login. None: the first frame is complete."""

    @property
    def left_before_login(self) -> bool:
        """Return whether a closed connection of a secured listener was given up, or refused by TLS, before its client
        was authenticated. A login that failed is counted where it failed."""
        if not self.setup_deadline_ns:
            return False
        return self.sasl is None or self.sasl.state is not SaslState.FAILED

    @property
    def held_up_others(self) -> bool:
        """Return whether it had to be ended because a read of it never ended."""
        return self.tls is not None and self.tls.was_cut

    def authenticated(self, principal: KafkaPrincipal, max_frame_bytes: int) -> None:
        """Take the principal that TLS or SASL has found, whichever the listener's protocol ends with. On the
        processor's turn, or by a request's handler while nothing more is read."""
        self.principal = principal
        if self.setup_deadline_ns:
            self.setup_deadline_ns = 0
            self.first_frame_began_ns = 0
        self.reader.max_size = max_frame_bytes

    def _secure(self, connected: socket, security: ListenerSecurity, max_frame_bytes: int) -> None:
        first_max_bytes = max_frame_bytes
        if security.sasl is not None:
            self.sasl = security.sasl.new_session(lambda principal: self.authenticated(principal, max_frame_bytes))
            if security.sasl.max_receive_bytes != UNLIMITED_RECEIVE:
                first_max_bytes = min(security.sasl.max_receive_bytes, max_frame_bytes)
        tls = security.tls
        if tls is None:
            self.socket = connected
            self.reader = FrameReader(connected, first_max_bytes)
            self.outbox = Outbox(connected)
            return
        from odradek.broker.network.tls_transport import TlsFrameReader, TlsOutbox, TlsTransport

        def on_handshake(certificate: bytes | None, is_resumed: bool) -> None:
            if is_resumed:
                tls.verify_again(certificate)
            if self.sasl is None:
                self.authenticated(tls.principal_of(certificate), max_frame_bytes)

        def on_refused(reason: str) -> None:
            tls.report_refusal(self.client_host, reason)

        transport = TlsTransport(connected, tls.context, on_handshake, on_refused)
        self.socket = self.tls = transport
        self.reader = TlsFrameReader(
            transport, first_max_bytes, lambda: self.owner.begin_handshake_step(self, transport)
        )
        self.outbox = TlsOutbox(transport)
