"""Settings of the socket server, from the broker's configuration."""

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.listeners import Listener
from odradek.broker.network.settings import ListenerSettings, ServerSettings


def server_settings(config: BrokerConfig) -> ServerSettings:
    return ServerSettings(
        listeners=tuple(_listener_settings(config, listener) for listener in config.listeners),
        inter_broker_listener=config.inter_broker_listener_name,
        num_network_threads=config.num_network_threads,
        num_io_threads=config.num_io_threads,
        queued_max_requests=config.queued_max_requests,
        queued_max_request_bytes=config.queued_max_request_bytes,
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        max_connection_creation_rate=config.max_connection_creation_rate,
        quota_windows=config.quota_window_num,
        quota_window_ms=config.quota_window_size_seconds * 1000,
    )


def _listener_settings(config: BrokerConfig, listener: Listener) -> ListenerSettings:
    def number(key: str) -> int:
        value = config.for_listener(listener.name, key)
        assert isinstance(value, int)
        return value

    return ListenerSettings(
        listener.name,
        listener.security_protocol.name,
        listener.host,
        listener.port,
        max_connections=number("max.connections"),
        max_connection_creation_rate=number("max.connection.creation.rate"),
        num_network_threads=number("num.network.threads"),
    )
