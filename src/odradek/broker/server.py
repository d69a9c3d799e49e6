"""The composition root: every part of a broker, made and started in one visible order, stopped in the reverse.

    start   directories → ZooKeeper → cluster id, broker id → logs → replication, control → sockets bound → registration
    → controllers are obeyed → this broker may be one → clients are served stop    leaders are moved away → control →
    serving → replication → ZooKeeper → logs (flushed, checkpointed, marked
            clean)

If a step fails, the parts that were started before it are stopped.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.live_config import LiveConfig
from odradek.base.errors import ConfigError, FatalError
from odradek.base.logs import get_logger
from odradek.base.metrics import Registry
from odradek.base.metrics_endpoint import MetricsEndpoint
from odradek.base.scheduler import Scheduler
from odradek.broker.admin.entity_configs import EntityConfigs
from odradek.broker.admin.producer_ids import ProducerIds
from odradek.broker.admin.stored_passwords import adopt_stored
from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.admin.zookeeper_offsets import ZooKeeperOffsets
from odradek.broker.api.context import BrokerServices
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.api.dispatcher import Dispatcher
from odradek.broker.api.sasl_gate import SaslGate
from odradek.broker.broker_metrics import (
    register_broker_metrics,
    register_cleaner_metrics,
    register_transaction_metrics,
)
from odradek.broker.broker_parts import BrokerParts
from odradek.broker.config_application import ConfigApplication
from odradek.broker.controller.controller import Controller
from odradek.broker.controller_link import ControllerLink
from odradek.broker.log.compaction.log_cleaner import LogCleaner
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.membership import Membership, take_leave
from odradek.broker.network.server import SocketServer
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.recorder.recorder import NOTHING_RECORDED, Records
from odradek.broker.recording import (
    recording_directory_failures,
    recording_session,
    start_recorder,
)
from odradek.broker.replication.leader.fetch_sessions import FetchSessions
from odradek.broker.replication_start import start_replication
from odradek.broker.scheduled_tasks import schedule_tasks
from odradek.broker.security.authentication.listener_settings import check_listeners
from odradek.broker.security.authentication.metrics_access import metrics_access
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.security_start import start_security, watched_listeners
from odradek.broker.server_settings import server_settings
from odradek.broker.zk.change_follower import refresh_on_changes
from odradek.broker.zk.known_configs import KnownConfigs
from odradek.broker.zk.registration import BrokerRegistrar, ensure_roots, generate_broker_id, get_or_create_cluster_id
from odradek.broker.zk.session import SessionEvent, ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.zk_security import ZkLogin, zk_security
from odradek.broker.zk.znodes import ConfigChanges
from odradek.model.metadata_image import MetadataCache, MetadataImage
from odradek.model.topology import Broker, Endpoint

log = get_logger(__name__)

FETCH_SESSION_EVICTION_MS = 120_000
CLUSTER_POLL_S = 0.5
# Python runs the handler of a signal on the main thread, but interrupts its sleep only if the system gives the signal
# to that thread; it may choose any other one.
SIGNAL_POLL_S = 1.0


class BrokerServer:
    """One broker. `start` returns when it serves; `wait` returns when it is asked to stop, or fails."""

    def __init__(self, config: BrokerConfig, zk_login: ZkLogin | None = None) -> None:
        """`zk_login`: by SASL, of the JAAS file."""
        self._zk_login = zk_login
        self._live = LiveConfig(config)
        self.id = -1
        self.port = 0
        self._clock = SYSTEM_CLOCK
        self._running = ExitStack()
        self._stop_asked = threading.Event()
        self._failure: str | None = None
        self._on_session_event: list[Callable[[SessionEvent], None]] = []
        self._on_znode: list[Callable[[str], None]] = []
        self._records: Records = NOTHING_RECORDED

    @property
    def config(self) -> BrokerConfig:
        """The current configuration."""
        return self._live.current

    # ---- life

    def start(self) -> None:
        check_listeners(self.config)
        metrics_access(self.config)
        with ExitStack() as started:
            try:
                self._start(started)
            except ZkUnavailable as error:
                raise FatalError(f"the broker was stopped while it started: {error}") from error
            self._running = started.pop_all()

    def wait(self) -> None:
        """Wait for `ask_to_stop` or a fatal failure, which is raised."""
        while not self._stop_asked.wait(SIGNAL_POLL_S):
            pass
        if self._failure is not None:
            raise FatalError(self._failure)

    def ask_to_stop(self) -> None:
        self._stop_asked.set()

    def stop(self) -> None:
        self._running.close()
        log.info("stopped", broker=self.id)

    @property
    def is_stopping(self) -> bool:
        return self._stop_asked.is_set()

    def fail(self, why: str) -> None:
        """Fail the broker: callers that wait for it get the reason."""
        log.error("fatal error, broker is stopping", why=why)
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
            in_flight_max=config.zookeeper_max_in_flight_requests,
            listener=lambda event: _tell(self._on_session_event, event),
            on_znode=lambda path: _tell(self._on_znode, path),
            security=zk_security(config, self._zk_login),
        )
        session.start()
        session_end = ExitStack()
        session_end.callback(session.close)
        started.callback(session_end.close)
        with session.waiting_for_server(self._stop_asked.is_set):
            self._start_with(session, session_end, logs, scheduler, started)

    def _start_with(
        self, session: ZkSession, session_end: ExitStack, logs: LogDirs, scheduler: Scheduler, started: ExitStack
    ) -> None:
        """Start everything that needs a session, which may be lost and recover in the meantime."""
        ensure_roots(session)
        cluster_id = get_or_create_cluster_id(session)
        self.id = self._settle_id(logs, session, cluster_id)
        self._start_recorder(logs, started)
        store = ZkStore(session)
        self._live.on_change.append(lambda before, after: logs.reconfigure(after))
        adopt_stored(self._live, store, self.id)
        config = self.config

        logs.load()
        started.callback(logs.close)
        started.callback(session_end.close)  # others may take over while the logs are being closed
        scheduler.start()
        started.callback(scheduler.stop)
        reaper = ExpirationReaper(self._clock)
        reaper.start()
        started.callback(reaper.stop)
        metadata = MetadataCache(MetadataImage(cluster_id))
        gate = ControlGate()
        services = self._services(session, store, logs, metadata, reaper, gate, started)
        dispatcher = Dispatcher(services, _sasl_gate(services, reaper))
        security = watched_listeners(services, scheduler, started)
        server = SocketServer(server_settings(config), dispatcher, services.quotas.addresses, security)
        started.callback(gate.stop)
        started.callback(server.stop)
        server.bind()

        membership = self._enter(session, server, services, started)
        register_broker_metrics(services, server)
        self._serve_metrics(services, started)
        schedule_tasks(scheduler, logs, services)
        self._start_cleaner(logs, services, started)
        self._live.on_change.append(lambda before, after: server.reconfigure(server_settings(after)))
        server.start()
        services.controller.start()
        started.callback(services.controller.stop)
        self._await_cluster(metadata)
        dispatcher.open()
        started.callback(take_leave, self.id, gate, config, metadata)
        self.port = membership.endpoints[0].port

    def _services(
        self,
        session: ZkSession,
        store: ZkStore,
        logs: LogDirs,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        gate: ControlGate,
        started: ExitStack,
    ) -> BrokerServices:
        config, clock = self.config, self._clock
        producer_ids = ProducerIds(self.id, store)
        parts = BrokerParts(self.id, self._live, metadata, reaper, clock)
        replication = start_replication(parts, logs, store, gate, self._records, producer_ids.next, started)
        controller = self._controller(store, session)
        link = ControllerLink(self.id, config, metadata)
        topics = TopicAdmin(controller, config, store, metadata, reaper, link.send)
        started.callback(topics.stop)
        self._live.on_change.append(lambda before, after: topics.reconfigure(after))
        started.callback(link.close)
        known_configs = KnownConfigs(session, clock)
        configs = EntityConfigs(self._live, store, known_configs, metadata)
        coordinators, metrics = replication.coordinators, Registry()
        register_transaction_metrics(metrics, coordinators.transactions, coordinators.verifier)
        quotas = ClientQuotas(config, clock)
        credentials = KnownCredentials()
        application = ConfigApplication(
            self.id, self._live, known_configs, configs, replication, controller, quotas, credentials
        )
        self._follow_configs(application, known_configs)
        started.callback(known_configs.stop)
        security = start_security(config, session, clock, credentials, self._on_znode, self._on_session_event, started)
        return BrokerServices(
            id=self.id,
            live=self._live,
            clock=clock,
            metadata=metadata,
            replicas=replication.replicas,
            roles=replication.roles,
            logs=logs,
            moves=replication.moves,
            control=gate,
            controller=controller,
            topics=topics,
            configs=configs,
            producer_ids=producer_ids,
            fetch_sessions=_fetch_sessions(config, clock),
            groups=coordinators.groups,
            zookeeper_offsets=ZooKeeperOffsets(store),
            transactions=coordinators.transactions,
            markers=coordinators.markers,
            quotas=quotas,
            security=security,
            authorizer=security.authorizer,
            metrics=metrics,
        )

    def _start_recorder(self, logs: LogDirs, started: ExitStack) -> None:
        self._records = start_recorder(self.id, self.config, logs, self._clock, started)
        logs.table.on_offline.append(recording_directory_failures(self._records))
        self._on_session_event.append(recording_session(self._records))

    def _start_cleaner(self, logs: LogDirs, services: BrokerServices, started: ExitStack) -> None:
        cleaner = LogCleaner(self.config, services.replicas.partitions, logs.cleaned, self._clock)
        started.callback(cleaner.stop)
        cleaner.start()
        self._live.on_change.append(lambda before, after: cleaner.reconfigure(after))
        register_cleaner_metrics(services.metrics, cleaner, self._clock)

    def _controller(self, store: ZkStore, session: ZkSession) -> Controller:
        controller = Controller(self.id, self.config, store, session, self._clock, self._records)
        self._on_znode.append(controller.znode_changed)
        self._on_session_event.append(controller.session_changed)
        self._live.on_change.append(lambda before, after: controller.reconfigure(after))
        return controller

    def _follow_configs(self, application: ConfigApplication, known: KnownConfigs) -> None:
        refresh_on_changes(known.refresh, (ConfigChanges.path,), self._on_znode, self._on_session_event)
        known.start(application.apply)
        application.apply_all()

    def _enter(self, session: ZkSession, server: SocketServer, services: BrokerServices, started: ExitStack) -> Broker:
        membership = Membership(
            self._describe(server),
            BrokerRegistrar(session, self._clock),
            services.control,
            services.controller.broker_registered,
            self.fail,
        )
        self._on_session_event.append(membership.session_changed)
        broker = membership.enter()
        started.callback(membership.stop)
        return broker

    def _await_cluster(self, metadata: MetadataCache) -> None:
        """Wait until a controller has sent the cluster's metadata, or the broker is stopped."""
        published = threading.Event()
        metadata.on_publish.append(lambda image: published.set())
        while metadata.image.controller_id < 0 and not self._stop_asked.is_set():
            published.wait(CLUSTER_POLL_S)

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

    def _serve_metrics(self, services: BrokerServices, started: ExitStack) -> None:
        port = self.config.odradek_metrics_port
        if port < 0:
            return
        host, access = self.config.odradek_metrics_host, metrics_access(self.config)
        endpoint = MetricsEndpoint(host, port, services.metrics, access.wrap, access.login)
        endpoint.start()
        started.callback(endpoint.stop)
        log.info("metrics", url=f"{access.scheme}://{host}:{endpoint.port}/metrics")


T = TypeVar("T")


def _tell(listeners: list[Callable[[T], None]], news: T) -> None:
    for listener in listeners:
        listener(news)


def _fetch_sessions(config: BrokerConfig, clock: Clock) -> FetchSessions:
    return FetchSessions(config.max_incremental_fetch_session_cache_slots, FETCH_SESSION_EVICTION_MS, clock)


def _sasl_gate(services: BrokerServices, reaper: ExpirationReaper) -> SaslGate:
    return SaslGate.of(services.config, reaper, services.quotas.addresses.failed_logins, services.security.audit)


def _own_host_name() -> str:
    import socket

    return socket.getfqdn()
