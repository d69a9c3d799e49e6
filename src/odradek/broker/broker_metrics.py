"""Metrics of a broker, under the names that Kafka's JMX exporter gives them."""

from collections.abc import Callable, Iterable

from odradek.base.clock import Clock
from odradek.base.logs import logged_exceptions
from odradek.base.metrics import Registry, Sample, histogram_samples
from odradek.base.threads import failed_threads
from odradek.broker.api.context import BrokerServices
from odradek.broker.coordinator.transactions.partition_verifier import PartitionVerifier
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.log.compaction.log_cleaner import LogCleaner
from odradek.broker.network.server import SocketServer
from odradek.native.load import IMPLEMENTATION

_TRAFFIC = [f"kafka_server_brokertopicmetrics_{name}_total" for name in ("messagesin", "bytesin", "bytesout")]
_LOGS = [
    "kafka_log_log_size",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_logendoffset",
    "kafka_cluster_partition_highwatermark",
    "kafka_cluster_partition_laststableoffsetlag",
]
LATE_TRANSACTION_BUFFER_MS = 300_000
"""Time beyond the longest timeout before Kafka counts a transaction as late."""


def register_broker_metrics(services: BrokerServices, server: SocketServer) -> None:
    registry = services.metrics
    replicas, image = services.replicas, services.metadata
    registry.gauge("kafka_controller_kafkacontroller_activecontrollercount", lambda: int(services.controller.is_active))
    registry.gauge("kafka_controller_kafkacontroller_globaltopiccount", lambda: len(image.image.topics))
    registry.gauge("kafka_server_replicamanager_partitioncount", lambda: len(replicas.partitions))
    registry.gauge(
        "kafka_server_replicamanager_leadercount",
        lambda: sum(partition.is_leader for partition in replicas.partitions.copy().values()),
    )
    registry.gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        lambda: sum(partition.is_under_replicated for partition in replicas.partitions.copy().values()),
    )
    registry.gauge(
        "kafka_server_replicamanager_underminisrpartitioncount",
        lambda: sum(partition.is_under_min_isr for partition in replicas.partitions.copy().values()),
    )
    registry.gauge(
        "kafka_server_replicamanager_partitionswithlatetransactionscount", lambda: _late_transactions(services)
    )
    registry.gauge(
        "kafka_server_replicamanager_produceridcount",
        lambda: sum(len(partition.log.producers.entries) for partition in replicas.partitions.copy().values()),
    )
    registry.gauge("kafka_controller_kafkacontroller_offlinepartitionscount", lambda: _offline_partitions(services))
    registry.gauge("kafka_server_replicamanager_offlinereplicacount", lambda: len(replicas.offline))
    registry.gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", lambda: len(services.fetch_sessions))
    registry.gauge("kafka_network_requestchannel_requestqueuesize", lambda: server.channel.size)
    registry.gauge("kafka_server_socketservermetrics_connection_count", lambda: server.connections)
    registry.add(lambda: [Sample("odradek_inner_loop_info", "gauge", 1, {"implementation": IMPLEMENTATION})])
    registry.add(lambda: [Sample("odradek_failed_threads_total", "counter", failed_threads(), {})])
    registry.add(lambda: [Sample("odradek_logged_exceptions_total", "counter", logged_exceptions(), {})])
    registry.add(services.quotas.samples)
    registry.add(lambda: _traffic(services), _TRAFFIC)
    registry.add(lambda: _logs(services), _LOGS)


def register_transaction_metrics(
    registry: Registry, transactions: TransactionCoordinator, verifier: PartitionVerifier
) -> None:
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    registry.gauge(f"{markers}_unknowndestinationqueuesize", lambda: transactions.ends.markers.unknown_destinations)
    registry.gauge(f"{markers}_logappendretryqueuesize", lambda: transactions.ends.append_retries)
    loads = "kafka_server_transaction_coordinator_metrics_partition_load_time"
    registry.gauge(f"{loads}_max", lambda: max(transactions.load_times_ms, default=0))
    registry.gauge(f"{loads}_avg", lambda: sum(transactions.load_times_ms) / max(len(transactions.load_times_ms), 1))
    verification = "kafka_server_addpartitionstotxnmanager_verification"
    times, failures = f"{verification}timems", f"{verification}failurerate_count"
    registry.add(
        lambda: histogram_samples(times, list(verifier.recent_ns), verifier.count, {}), [times, f"{times}_count"]
    )
    registry.add(lambda: [Sample(failures, "unknown", verifier.failures, {})], [failures])


def register_cleaner_metrics(registry: Registry, cleaner: LogCleaner, clock: Clock) -> None:
    def gauge(name: str, value: Callable[[], float]) -> None:
        registry.gauge(f"kafka_log_{name}", value)

    gauge("logcleanermanager_max_dirty_percent", lambda: int(100 * cleaner.max_dirty_ratio))
    gauge("logcleanermanager_time_since_last_run_ms", lambda: clock.now_ms() - cleaner.last_run_ms)
    gauge("logcleanermanager_uncleanable_partitions_count", lambda: len(cleaner.uncleanable))
    gauge("logcleaner_max_buffer_utilization_percent", lambda: int(100 * cleaner.last_stats.buffer_utilisation))
    gauge(
        "logcleaner_cleaner_recopy_percent",
        lambda: 100 * cleaner.last_stats.bytes_written // max(1, cleaner.last_stats.bytes_read),
    )
    gauge("logcleaner_max_clean_time_secs", lambda: cleaner.last_stats.took_ms // 1000)
    gauge("logcleaner_deadthreadcount", lambda: cleaner.dead_threads)


def _offline_partitions(services: BrokerServices) -> int:
    """Offline partitions on the controller; 0 on other brokers, so that a sum counts each partition once."""
    if not services.controller.is_active:
        return 0
    topics = services.metadata.image.topics.values()
    return sum(partition.leader < 0 for topic in topics for partition in topic.partitions.values())


def _late_transactions(services: BrokerServices) -> int:
    """Partitions with a transaction that its coordinator should have ended long ago, which blocks readers."""
    max_open_ms = services.config.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    oldest_ms = services.clock.now_ms() - max_open_ms
    partitions = services.replicas.partitions.copy().values()
    return sum(partition.log.producers.has_transaction_since(oldest_ms) for partition in partitions)


def _traffic(services: BrokerServices) -> Iterable[Sample]:
    """Per topic and, without a label, of the whole broker."""
    topics: dict[str, list[int]] = {}
    for tp, partition in services.replicas.partitions.copy().items():
        sums = topics.setdefault(tp.topic, [0, 0, 0])
        for i, value in enumerate((partition.messages_in, partition.bytes_in, partition.bytes_out)):
            sums[i] += value
    for i, name in enumerate(_TRAFFIC):
        yield Sample(name, "counter", sum(sums[i] for sums in topics.values()), {})
        for topic, sums in topics.items():
            yield Sample(name, "counter", sums[i], {"topic": topic})


def _logs(services: BrokerServices) -> Iterable[Sample]:
    for tp, partition in services.replicas.partitions.copy().items():
        labels = {"topic": tp.topic, "partition": str(tp.partition)}
        log = partition.log
        watermark = partition.high_watermark
        stable_lag = watermark - partition.committed.last_stable_offset(watermark)
        values = (log.files.size_bytes, log.log_start_offset, log.log_end_offset, watermark, stable_lag)
        for name, value in zip(_LOGS, values, strict=True):
            yield Sample(name, "gauge", value, labels)
