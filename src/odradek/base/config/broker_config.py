"""The broker's configuration: server.properties as typed values.

`BrokerConfig` has a field for each value that code reads, named like its key with dots as underscores, and a few that
are computed from several keys. Every other key is reachable by name through `get`. It is immutable; a changed
configuration is a new one.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from odradek.base.config import broker_checks
from odradek.base.config.definition import ConfigValue
from odradek.base.config.keys import BROKER_KEYS, STATIC_KEYS
from odradek.base.config.listeners import Listener, split_list, split_map
from odradek.base.config.properties import parse_properties
from odradek.base.config.support_checks import key_of, refuse_unsupported, unknown_settings
from odradek.base.config.topic_defaults import topic_defaults
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass


# Neither compared nor printed: the values hold secrets, and generating those methods costs milliseconds at start.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BrokerConfig:
    # identity of the broker
    broker_id: int
    broker_id_generation_enable: bool
    reserved_broker_max_id: int
    broker_rack: str | None

    # threads and requests
    num_network_threads: int
    num_io_threads: int
    queued_max_requests: int
    queued_max_request_bytes: int
    request_timeout_ms: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    quota_window_num: int
    quota_window_size_seconds: int
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int

    # listeners and sockets
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    inter_broker_listener_name: str
    control_plane_listener_name: str | None
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    max_connection_creation_rate: int
    connections_max_idle_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connection_failed_authentication_delay_ms: int

    # ZooKeeper
    zookeeper_connect: str
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int
    zookeeper_max_in_flight_requests: int
    zookeeper_set_acl: bool
    zookeeper_ssl_client_enable: bool

    # security
    authorizer_class_name: str
    super_users: str
    allow_everyone_if_no_acl_found: bool
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_expiry_check_interval_ms: int
    password_encoder_cipher_algorithm: str
    password_encoder_keyfactory_algorithm: str | None
    password_encoder_iterations: int
    password_encoder_key_length: int

    # topics
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int

    # the log
    log_dirs: tuple[str, ...]
    num_recovery_threads_per_data_dir: int
    log_initial_task_delay_ms: int
    log_retention_check_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_max_bytes_per_second: float
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    num_replica_alter_log_dirs_threads: int | None
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int

    # consumer groups
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_initial_rebalance_delay_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_required_acks: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int

    # transactions
    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    transaction_partition_verification_enable: bool
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int

    # replication and control
    replica_lag_time_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    num_replica_fetchers: int
    unclean_leader_election_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    controller_socket_timeout_ms: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    inter_broker_protocol_version: str
    replica_selector_class: str | None
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int

    # keys that Kafka doesn't have
    odradek_audit_dir: str | None
    odradek_audit_max_bytes: int
    odradek_failed_authentication_rate_per_ip: int
    odradek_metrics_host: str
    odradek_metrics_port: int
    odradek_metrics_keystore_location: str | None
    odradek_transaction_version: int
    odradek_recorder_enable: bool
    odradek_recorder_dir: str | None
    odradek_recorder_max_bytes: int

    # sources of the values
    values: Mapping[str, ConfigValue]
    """Every known key with its value or its default."""
    originals: Mapping[str, str]
    """Settings of the file, unknown keys and listener overrides included."""
    topic_defaults: Mapping[str, ConfigValue]
    """Every topic key with the value that a topic without overrides has on this broker."""
    warnings: tuple[str, ...]
    """Warnings for the operator, logged once at start."""

    @classmethod
    def from_file(cls, path: Path, overrides: Mapping[str, str] | None = None) -> "BrokerConfig":
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"{path} can't be read: {error.strerror}") from None
        return cls.from_properties(parse_properties(text) | dict(overrides or {}))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        """The configuration that the properties give, or ConfigError naming the key that can't be used."""
        originals = _with_synonyms(properties)
        values = _parse(originals)
        refuse_unsupported(originals)
        derived = _derive(originals, values)
        broker_checks.check(originals, values, derived)
        # Each field is typed as its key is; mypy can't see that, a test does.
        arguments: dict[str, Any] = {**derived, "warnings": _warnings(originals, derived)}
        for field in fields(cls):
            if field.name not in arguments:
                arguments[field.name] = values[field.name.replace("_", ".")]
        return cls(**arguments)

    def get(self, name: str) -> ConfigValue:
        """The value of any known key; KeyError for an unknown one."""
        return self.values[name]

    def integer(self, name: str) -> int:
        """The value of a key that is known to be a number."""
        value = self.values[name]
        assert isinstance(value, int), f"{name} is not an integer"
        return value

    def for_listener(self, listener_name: str, name: str) -> ConfigValue:
        """The value of a key for one listener: `listener.name.<listener>.<key>` where it is set, else the key's own."""
        text = self.originals.get(f"listener.name.{listener_name.lower()}.{name}")
        return self.values[name] if text is None else BROKER_KEYS[name].parse(text)


def _warnings(originals: Mapping[str, str], derived: Mapping[str, Any]) -> tuple[str, ...]:
    names = [listener.name for listener in derived["listeners"]]
    return (*unknown_settings(originals, names), *broker_checks.advice(originals))


def _with_synonyms(properties: Mapping[str, str]) -> dict[str, str]:
    """broker.id and node.id are synonyms."""
    originals = dict(properties)
    if "broker.id" in originals:
        originals.setdefault("node.id", originals["broker.id"])
    elif "node.id" in originals:
        originals["broker.id"] = originals["node.id"]
    return originals


def _parse(originals: Mapping[str, str]) -> dict[str, ConfigValue]:
    values = {name: key.default for name, key in STATIC_KEYS.items()}
    for name, text in originals.items():
        key = key_of(name)
        if key is None:
            continue
        value = key.parse(text)
        if key.name == name:
            values[name] = value
    return values


def _derive(originals: Mapping[str, str], values: Mapping[str, ConfigValue]) -> dict[str, object]:
    """Compute the fields that aren't the value of one key."""
    if values["zookeeper.connect"] is None:
        raise ConfigError("zookeeper.connect is required and has no default")
    session_timeout_ms = values["zookeeper.session.timeout.ms"]
    connection_timeout_ms = values["zookeeper.connection.timeout.ms"]
    log_dirs = values["log.dir"] if values["log.dirs"] is None else values["log.dirs"]
    return broker_checks.derive_listeners(originals, values) | {
        "log_dirs": tuple(split_list(str(log_dirs))),
        "zookeeper_connection_timeout_ms": session_timeout_ms
        if connection_timeout_ms is None
        else connection_timeout_ms,
        "max_connections_per_ip_overrides": MappingProxyType(_connection_overrides(values)),
        "queued_max_request_bytes": _queued_max_request_bytes(originals, values),
        "values": MappingProxyType(dict(values)),
        "originals": MappingProxyType(dict(originals)),
        "topic_defaults": MappingProxyType(topic_defaults(values)),
    }


def _connection_overrides(values: Mapping[str, ConfigValue]) -> dict[str, int]:
    name = "max.connections.per.ip.overrides"
    counts = BROKER_KEYS["max.connections.per.ip"]
    overrides: dict[str, int] = {}
    for host, text in split_map(name, str(values[name])).items():
        count = counts.parse(text)
        assert isinstance(count, int)
        overrides[host] = count
    return overrides


def _queued_max_request_bytes(originals: Mapping[str, str], values: Mapping[str, ConfigValue]) -> ConfigValue:
    """The default budget must not be below a larger `socket.request.max.bytes` that is configured."""
    queued, largest = values["queued.max.request.bytes"], values["socket.request.max.bytes"]
    assert isinstance(queued, int)
    assert isinstance(largest, int)
    return queued if "queued.max.request.bytes" in originals else max(queued, largest)
