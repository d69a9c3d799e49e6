"""The composition root: every part of a broker, made and started in one visible order, stopped in the reverse.

    start   directories → ZooKeeper → cluster id, broker id → logs → sockets bound → registration → control → serving
    stop    serving → control → logs (flushed, checkpointed, marked clean) → ZooKeeper

Whatever fails on the way up stops what was started before it.
"""

import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from odradek.api.context import BrokerServices
from odradek.api.dispatcher import Dispatcher
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.listeners import SecurityProtocol
from odradek.base.errors import ConfigError, FatalError
from odradek.base.logs import get_logger
from odradek.base.metrics import Registry
from odradek.base.scheduler import Scheduler
from odradek.broker.broker_metrics import register_broker_metrics
from odradek.broker.metrics_endpoint import MetricsEndpoint
from odradek.controller.producer_ids import ProducerIds
from odradek.controller.topics import Topics
from odradek.coordinator.group_coordinator import GroupCoordinator
from odradek.coordinator.group_log import GroupLog
from odradek.log.log_dirs import LogDirs
from odradek.model.metadata_image import MetadataCache, MetadataImage
from odradek.model.topology import Broker, Endpoint
from odradek.network.server import SocketServer
from odradek.network.settings import ListenerSettings, ServerSettings
from odradek.purgatory.reaper import ExpirationReaper
from odradek.replication.fetch_sessions import FetchSessions
from odradek.replication.replica_manager import ReplicaManager
from odradek.zk.registration import (
    BrokerRegistrar,
    ensure_roots,
    generate_broker_id,
    get_or_create_cluster_id,
)
from odradek.zk.session import SessionEvent, ZkSession
from odradek.zk.store import ZkStore

log = get_logger(__name__)

FETCH_SESSION_EVICTION_MS = 120_000
PRODUCER_EXPIRY_CHECK_MS = 600_000
NEVER_MS = 2**62


class BrokerServer:
    """One broker. `start` returns when it serves; `wait` until it is told to stop, or can't go on."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.id = -1
        self.port = 0
        self._clock = SYSTEM_CLOCK
        self._running = ExitStack()
        self._stop_asked = threading.Event()
        self._failure: str | None = None
        self._session_events: SimpleQueue[SessionEvent | None] = SimpleQueue()

    # ---- life

    def start(self) -> None:
        _refuse_what_is_missing(self.config)
        with ExitStack() as started:
            self._start(started)
            self._running = started.pop_all()

    def wait(self) -> None:
        """Until `ask_to_stop` or a fatal failure, which is raised."""
        self._stop_asked.wait()
        if self._failure is not None:
            raise FatalError(self._failure)

    def ask_to_stop(self) -> None:
        self._stop_asked.set()

    def stop(self) -> None:
        self._running.close()
        log.info("stopped", broker=self.id)

    def fail(self, why: str) -> None:
        """The broker can't go on: whoever waits for it learns why."""
        log.error("broker must stop", why=why)
        self._failure = why
        self._stop_asked.set()

    # ---- the order of things

    def _start(self, started: ExitStack) -> None:
        config = self.config
        scheduler = Scheduler(self._clock)
        logs = LogDirs([Path(directory) for directory in config.log_dirs], config, scheduler, self._clock, self.fail)
        started.callback(logs.unlock)
        logs.lock()

        session = ZkSession(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            listener=self._session_events.put,
        )
        session.start()
        started.callback(session.close)
        ensure_roots(session)
        cluster_id = get_or_create_cluster_id(session)
        self.id = self._settle_id(logs, session, cluster_id)

        logs.load()
        started.callback(logs.close)
        scheduler.start()
        started.callback(scheduler.stop)

        reaper = ExpirationReaper(self._clock)
        reaper.start()
        started.callback(reaper.stop)
        metadata = MetadataCache()
        replicas = ReplicaManager(self.id, config, logs, metadata, reaper, self._clock)
        logs.on_offline = replicas.take_offline
        started.callback(lambda: logs.checkpoint_high_watermarks(replicas.high_watermarks()))

        store = ZkStore(session)
        topics = Topics(self.id, config, store, replicas, metadata, self._clock)
        started.callback(topics.stop)
        groups = GroupCoordinator(config, GroupLog(config, replicas, metadata, self._clock), reaper, self._clock)
        started.callback(groups.stop)
        replicas.on_lead, replicas.on_resign = groups.lead, groups.resign
        services = BrokerServices(
            id=self.id,
            config=config,
            clock=self._clock,
            metadata=metadata,
            replicas=replicas,
            logs=logs,
            topics=topics,
            producer_ids=ProducerIds(self.id, store),
            fetch_sessions=FetchSessions(
                config.max_incremental_fetch_session_cache_slots, FETCH_SESSION_EVICTION_MS, self._clock
            ),
            groups=groups,
            metrics=Registry(),
        )
        dispatcher = Dispatcher(services)
        server = SocketServer(_server_settings(config), dispatcher)
        started.callback(server.stop)
        server.bind()

        registrar = BrokerRegistrar(session, self._clock)
        broker = registrar.register(self._describe(server))
        metadata.image = MetadataImage(cluster_id=cluster_id, controller_id=self.id, brokers={self.id: broker})
        topics.take_control()
        topics.load()
        self._follow_session(registrar, broker, topics, started)

        register_broker_metrics(services, server)
        self._schedule(scheduler, logs, replicas)
        scheduler.every(
            "offsets", config.integer("offsets.retention.check.interval.ms"), groups.expire_offsets, delay_ms=0
        )
        self._serve_metrics(services, started)
        server.start()
        dispatcher.open()
        self.port = broker.endpoints[0].port

    def _settle_id(self, logs: LogDirs, session: ZkSession, cluster_id: str) -> int:
        """The configured id, the one that the directories remember, or a new one; then the directories remember it."""
        configured = self.config.broker_id
        remembered = logs.remembered_id(cluster_id)
        if configured >= 0 and remembered is not None and configured != remembered:
            raise FatalError(
                f"broker.id={configured}, but meta.properties in log.dirs says {remembered}: correct the one, or give "
                "the broker empty log.dirs"
            )
        broker_id = configured if configured >= 0 else remembered
        if broker_id is None:
            if not self.config.broker_id_generation_enable:
                raise ConfigError("broker.id must be set when broker.id.generation.enable is false")
            broker_id = generate_broker_id(session, self.config.reserved_broker_max_id)
        logs.remember_id(broker_id, cluster_id)
        return broker_id

    def _describe(self, server: SocketServer) -> Broker:
        endpoints = tuple(
            Endpoint(
                listener.name,
                listener.security_protocol.name,
                listener.host or _own_host_name(),
                listener.port or server.port(listener.name),
            )
            for listener in self.config.advertised_listeners
        )
        return Broker(self.id, endpoints, self.config.broker_rack)

    def _schedule(self, scheduler: Scheduler, logs: LogDirs, replicas: ReplicaManager) -> None:
        config = self.config
        scheduler.every("retention", config.log_retention_check_interval_ms, replicas.delete_expired, delay_ms=30_000)
        scheduler.every(
            "recovery points", config.log_flush_offset_checkpoint_interval_ms, logs.checkpoint_recovery_points
        )
        scheduler.every(
            "log starts", config.log_flush_start_offset_checkpoint_interval_ms, logs.checkpoint_log_start_offsets
        )
        scheduler.every("producers", PRODUCER_EXPIRY_CHECK_MS, logs.expire_producers)
        if config.log_flush_scheduler_interval_ms < NEVER_MS:
            scheduler.every("flush", config.log_flush_scheduler_interval_ms, logs.flush_overdue)
        scheduler.every(
            "high watermarks",
            config.replica_high_watermark_checkpoint_interval_ms,
            lambda: logs.checkpoint_high_watermarks(replicas.high_watermarks()),
        )

    def _serve_metrics(self, services: BrokerServices, started: ExitStack) -> None:
        port = self.config.odradek_metrics_port
        if port < 0:
            return
        endpoint = MetricsEndpoint(self.config.odradek_metrics_host, port, services.metrics)
        endpoint.start()
        started.callback(endpoint.stop)
        log.info("metrics", url=f"http://{self.config.odradek_metrics_host}:{endpoint.port}/metrics")

    # ---- the session with ZooKeeper

    def _follow_session(self, registrar: BrokerRegistrar, broker: Broker, topics: Topics, started: ExitStack) -> None:
        """A new session has lost its ephemeral nodes: register and take control again, away from kazoo's threads."""

        def follow() -> None:
            while (event := self._session_events.get()) is not None:
                if event is not SessionEvent.SESSION_RENEWED:
                    continue
                try:
                    registrar.register(replace(broker, epoch=-1))
                    topics.take_control()
                except Exception as error:
                    self.fail(str(error))
                    return

        thread = threading.Thread(target=follow, name="session", daemon=True)
        thread.start()
        started.callback(thread.join)
        started.callback(self._session_events.put, None)


def _own_host_name() -> str:
    import socket

    return socket.getfqdn()


def _refuse_what_is_missing(config: BrokerConfig) -> None:
    """A setting that would be obeyed by Kafka and not by us must not be taken silently."""
    for listener in config.listeners:
        if listener.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise ConfigError(
                f"listeners: {listener.name} wants {listener.security_protocol.name}, and this version has PLAINTEXT "
                "only. Listen on loopback or on a trusted network."
            )


def _server_settings(config: BrokerConfig) -> ServerSettings:
    return ServerSettings(
        listeners=tuple(
            ListenerSettings(listener.name, listener.security_protocol.name, listener.host, listener.port)
            for listener in config.listeners
        ),
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
    )
