"""Settings of the socket server, as plain values. Defaults are Kafka's where Kafka has the key.

`broker/server_settings.py` builds one `ServerSettings` from the configuration; this package only reads it.
"""

from collections.abc import Mapping
from dataclasses import field

from odradek.base.value_classes import dataclass

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    name: str
    security_protocol: str
    host: str  # "" is every interface
    port: int  # 0 is any free port: ask `SocketServer.port(name)`
    max_connections: int = UNLIMITED
    max_connection_creation_rate: int = UNLIMITED  # per second
    num_network_threads: int | None = None  # those of the server


@dataclass(frozen=True, slots=True)
class ServerSettings:
    listeners: tuple[ListenerSettings, ...]
    inter_broker_listener: str | None = None  # exempt from max.connections where it is not the only listener

    num_network_threads: int = 3  # of each listener that has no number of its own
    num_io_threads: int = 8
    queued_max_requests: int = 500
    queued_max_request_bytes: int = 256 << 20  # -1 is no limit, which is Kafka's default

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = 409_600  # -1 leaves it to the system; Kafka's own default is 102,400
    socket_receive_buffer_bytes: int = 1 << 20  # as above
    socket_listen_backlog_size: int = 50

    connections_max_idle_ms: int = 600_000
    first_frame_timeout_ms: int = 30_000
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_connection_creation_rate: int = UNLIMITED  # per second
    quota_windows: int = 11
    quota_window_ms: int = 1000

    max_unanswered_per_connection: int = 128
    max_unsent_bytes_per_connection: int = 64 << 20
