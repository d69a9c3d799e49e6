"""The coordinators of a broker, and what they share: the writer of their state, their connections to other brokers."""

from collections.abc import Callable
from contextlib import ExitStack

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.value_classes import dataclass
from odradek.broker.broker_parts import BrokerParts
from odradek.broker.coordinator.groups.core.group_requests import Rebalanced
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter
from odradek.broker.coordinator.transactions.batch_channel import Connect
from odradek.broker.coordinator.transactions.core.transaction_story import TransactionEvent
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.broker.replication.leader.marker_writer import MarkerWriter
from odradek.broker.replication.partition_table import PartitionTable
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.metadata_image import MetadataCache


@dataclass(frozen=True, slots=True)
class Coordinators:
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: PartitionVerifier
    markers: MarkerWriter


def start_coordinators(
    parts: BrokerParts,
    replicas: PartitionTable,
    verifier: PartitionVerifier,
    new_producer_id: Callable[[], int],
    rebalanced: Callable[[Rebalanced], None],
    transaction_moved: Callable[[TransactionEvent], None] | None,
    started: ExitStack,
) -> Coordinators:
    config, metadata, reaper, clock = parts.live.current, parts.metadata, parts.reaper, parts.clock
    writer = StateLogWriter()
    group_log = GroupLog(config, replicas, metadata, clock)
    groups = GroupCoordinator(config, group_log, reaper, clock, writer, on_rebalance=rebalanced)
    started.callback(groups.stop)
    connect = connector(parts.id, config, metadata)
    markers = MarkerWriter(replicas, groups, config.request_timeout_ms)
    transactions = TransactionCoordinator(
        parts.id,
        config,
        TransactionLog(config, replicas, metadata, clock),
        metadata,
        reaper,
        clock,
        writer,
        new_producer_id,
        connect,
        markers,
        transaction_moved,
    )
    started.callback(transactions.stop)
    verifier.start(transactions)
    started.callback(verifier.stop)
    return Coordinators(groups, transactions, verifier, markers)


def connector(broker_id: int, config: BrokerConfig, metadata: MetadataCache) -> Connect:
    """Connections to other brokers by their id, through the listener that brokers use."""
    listener, timeout_ms = config.inter_broker_listener_name, config.request_timeout_ms
    connect_timeout_ms = config.socket_connection_setup_timeout_ms
    security = SetupTimeout.of(config).security

    def connect(to: int, connected: Callable[[BrokerClient], None]) -> BrokerClient:
        broker = metadata.image.brokers.get(to)
        endpoint = broker.endpoint(listener) if broker else None
        if endpoint is None:
            raise ConnectionFailed(f"broker {to} is not known to have a listener {listener}")
        return BrokerClient(
            endpoint.host,
            endpoint.port,
            f"broker-{broker_id}-txn",
            timeout_ms,
            connect_timeout_ms,
            security=security,
            connected=connected,
        )

    return connect
