"""Context of a handler: the broker's services, the client, and the way to answer."""

from collections.abc import Callable
from time import monotonic_ns
from typing import ParamSpec, TypeAlias

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.live_config import LiveConfig
from odradek.base.logs import get_logger
from odradek.base.metrics import Registry
from odradek.base.value_classes import dataclass
from odradek.broker.admin.entity_configs import EntityConfigs
from odradek.broker.admin.producer_ids import ProducerIds
from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.admin.zookeeper_offsets import ZooKeeperOffsets
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.api.request_metrics import ApiTimings
from odradek.broker.api.security_services import SecurityServices
from odradek.broker.controller.controller import Controller
from odradek.broker.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.network.connection import Connection
from odradek.broker.network.request import InboundRequest
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.replication.directory_moves import DirectoryMoves
from odradek.broker.replication.leader.fetch_sessions import FetchSessions
from odradek.broker.replication.leader.marker_writer import MarkerWriter
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.broker.security.audit_log import Entry
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.metadata_image import MetadataCache
from odradek.protocol.framing import FixedResponse, RequestHeader
from odradek.protocol.schema import Response

log = get_logger(__name__)

P = ParamSpec("P")

Answer: TypeAlias = Response | FixedResponse | bytes
"""The response to encode, or the frame of one that is encoded."""


@dataclass(frozen=True, slots=True)
class BrokerServices:
    """The parts of the broker that handlers talk to. Made once by the composition root."""

    id: int
    live: LiveConfig
    clock: Clock
    metadata: MetadataCache
    replicas: PartitionTable
    roles: ReplicaManager
    logs: LogDirs
    moves: DirectoryMoves
    control: ControlGate
    controller: Controller
    topics: TopicAdmin
    configs: EntityConfigs
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    zookeeper_offsets: ZooKeeperOffsets
    transactions: TransactionCoordinator
    markers: MarkerWriter
    quotas: ClientQuotas
    security: SecurityServices
    authorizer: AclAuthorizer | None
    """The one of `security`, for the paths of records."""
    metrics: Registry

    @property
    def config(self) -> BrokerConfig:
        """The current configuration."""
        return self.live.current


class RequestContext:
    """One request being served. The dispatcher makes it; the handler answers by returning, or later by `reply`."""

    __slots__ = (
        "_send",
        "_timings",
        "audit_entry",
        "broker",
        "handled_ns",
        "header",
        "is_from_broker",
        "may_block",
        "replied_ns",
        "request",
        "started_ns",
        "throttle_ms",
        "was_put_off",
    )

    def __init__(
        self,
        broker: BrokerServices,
        header: RequestHeader,
        request: InboundRequest,
        timings: ApiTimings,
        send: Callable[["RequestContext", Answer | None], None],
        *,
        may_block: bool = True,
    ) -> None:
        self.broker = broker
        self.header = header
        self.request = request
        self.started_ns = monotonic_ns()
        self.handled_ns = self.replied_ns = 0
        self.may_block = may_block
        """True on a handler thread. A network thread has other connections to serve."""
        self.was_put_off = False
        """True when a network thread has begun the request, and found before any change that it takes long."""
        self.is_from_broker = False
        """Set by handlers of requests that followers send as well as clients."""
        self.audit_entry: Entry | None = None
        """Set for a request that changes the cluster, where there is an audit log; written with the answer."""
        self.throttle_ms = 0
        """Throttle time of the response; handlers may raise it until they answer."""
        self._timings = timings
        self._send = send

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def principal(self) -> KafkaPrincipal:
        return self.request.connection.principal

    @property
    def client_host(self) -> str:
        """The client's address, without its port."""
        return self.request.connection.client_host

    @property
    def user(self) -> str:
        """The principal's name, to which quotas belong."""
        return self.request.connection.principal.name

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def reply(self, response: Answer | None) -> None:
        """Answer, from any thread, exactly once. None ends a request that has no answer."""
        self.replied_ns = now_ns = monotonic_ns()
        if not self.handled_ns:  # its handler answers before it returns
            self.handled_ns = now_ns
        self._send(self, response)

    def reply_with(self, build: Callable[P, Answer]) -> Callable[P, None]:
        """Return a callback that answers with the result of `build`. If that fails, the connection is closed, because
        the client would wait for an answer forever."""

        def answer(*args: "P.args", **kwargs: "P.kwargs") -> None:  # quoted: else evaluated each time
            try:
                self.reply(build(*args, **kwargs))
            except Exception:
                log.exception("request failed", connection=self.connection.id, api_key=self.header.api_key)
                self.close("its request failed")

        return answer

    def close(self, reason: str) -> None:
        """Close the connection of the client."""
        self.request.close_connection(reason)

    def sent(self, sent_ns: int) -> None:
        """Called when the last byte of the answer has left: only now is it known how long everything took."""
        self.request.on_sent = None  # it refers to this object: without the circle no garbage collection is needed
        self._timings.record(
            self.header.api_version,
            (self.request.received_ns, self.started_ns, self.handled_ns, self.replied_ns, sent_ns),
        )
