"""Cluster client of the tools: finds brokers from a bootstrap list, sends each request to the right one, and retries.

One connection per broker, made when it is first needed. Not thread-safe: a command uses one client from one thread.
It speaks the protocol only, so any broker of the cluster may be Odradek or Apache Kafka.
"""

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import RETRIABLE, ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.bootstrap import parse_bootstrap
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.client.command_config import command_security
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.schema import Request, Response

DEFAULT_TIMEOUT_MS = 30_000
_CONNECT_TIMEOUT_MS = 5_000  # three brokers that are gone are found out within the timeout
_FIRST_BACKOFF_MS = 50
_MAX_BACKOFF_MS = 1_000
# A change that was refused with one of these errors was not made, so it can be repeated.
NOT_YET_DONE = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

T = TypeVar("T")
R = TypeVar("R", bound=Response)


@dataclass(frozen=True, slots=True)
class PartitionState:
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_available(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True)
class TopicState:
    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionState, ...]


class ClusterClient:
    """Answers come as the protocol's response objects; a broker that can't be reached is `ConnectionFailed`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "odradek-cli",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        clock: Clock = SYSTEM_CLOCK,
        trusted: Callable[[], int | None] = lambda: None,
        remembers: bool = False,
        security: ClientSecurity | None = None,
    ) -> None:
        """`security`: otherwise that of the process, see `command_config`. `trusted` names the broker to ask first
        where any would do: one that was cut off tells of the past. `remembers`: an answer equal to the one before is
        not decoded again; answers are not to be changed then.
        """
        self._remembers = remembers
        self.security = command_security() if security is None else security
        self.timeout_ms = timeout_ms
        # What a broker may take for a request that waits: it answers before the connection gives up.
        self.request_timeout_ms = timeout_ms * 2 // 3
        self.client_id = client_id
        self._bootstrap = parse_bootstrap(bootstrap)
        self._clock = clock
        self._trusted = trusted
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], BrokerClient] = {}
        self._controller_id = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicState]:
        """Return the named topics, or all of them. Missing ones are left out; none is created."""
        return topic_states(self.metadata(None if names is None else list(names)))

    def topic(self, name: str) -> TopicState:
        """Return the topic, or raise an error with advice."""
        topic = self.topics([name]).get(name)
        if topic is None:
            raise unknown_topic(name)
        return topic

    def topic_made_if_absent(self, name: str) -> TopicState:
        """Return the topic with leaders; the cluster creates it if it is configured for that."""
        self.metadata([name], allow_creation=True)

        def with_leaders() -> TopicState:
            state = self.topic(name)
            self.leaders(TopicPartition(name, partition.partition) for partition in state.partitions)
            return state

        return self.retrying(with_leaders)

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Return the partitions by their present leaders; LEADER_NOT_AVAILABLE if one has none."""
        wanted = list(partitions)
        topics = self.topics(sorted({tp.topic for tp in wanted}))
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp in wanted:
            if tp.topic not in topics:
                raise unknown_topic(tp.topic)
            state = next((p for p in topics[tp.topic].partitions if p.partition == tp.partition), None)
            if state is None:
                raise unknown_partition(tp, len(topics[tp.topic].partitions))
            if not state.is_available:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp} has no leader; are its brokers up?")
            by_leader.setdefault(state.leader, []).append(tp)
        return by_leader

    def brokers(self) -> dict[int, tuple[str, int]]:
        """The live brokers' ids and addresses."""
        self.metadata([])
        return dict(self._addresses)

    def ask_any(self, request: Request, answer: type[R]) -> R:
        """Return the answer of the first broker that gives one: the trusted, the connected, the known, the bootstrap
        list."""
        failure: ConnectionFailed | None = None
        trusted = self._addresses.get(NO_LEADER if (broker := self._trusted()) is None else broker)
        first = [] if trusted is None else [trusted]
        for address in dict.fromkeys([*first, *self._connections, *self._addresses.values(), *self._bootstrap]):
            try:
                return self._ask(address, request, answer)
            except ConnectionFailed as error:
                failure = error
        others = ", nor do the others given" if len(self._bootstrap) > 1 else ""
        advice = "name a cluster with --bootstrap-server or --data, or start one with: odradek up"
        raise ConnectionFailed(f"{failure}{others}", advice=advice)

    def ask_controller(self, request: Request, answer: type[R]) -> R:
        if self._controller_id not in self._addresses:
            self.metadata([])
        if self._controller_id not in self._addresses:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
        return self.ask_broker(self._controller_id, request, answer)

    def ask_broker(self, broker_id: int, request: Request, answer: type[R], version: int | None = None) -> R:
        """Ask in this version, or in the highest that both sides have."""
        return self._ask(self.address(broker_id), request, answer, version)

    def certificate_ends_s(self, broker_id: int) -> float | None:
        """Unix time at which the certificate that the broker has shown ends; None without TLS or a connection."""
        connected = self._connections.get(self.address(broker_id))
        return None if connected is None else connected.connection.certificate_ends_s

    def tell_broker(self, broker_id: int, request: Request) -> None:
        """Send a request without an answer: Produce with acks=0."""
        self._connection(self.address(broker_id)).send(request)

    def versions_of(self, broker_id: int) -> dict[int, range]:
        """The versions that the broker has, by API key."""
        return dict(self._connection(self.address(broker_id)).versions)

    def address(self, broker_id: int) -> tuple[str, int]:
        if broker_id not in self._addresses:
            self.metadata([])
        if broker_id not in self._addresses:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster")
        return self._addresses[broker_id]

    def retrying(self, attempt: Callable[[], T], codes: frozenset[ErrorCode] = RETRIABLE) -> T:
        """Runs `attempt` until it succeeds, as long as its error is one of `codes` and the client's timeout allows.

        A lost connection is tried again too, if everything that may pass is: then the attempt does no harm twice.
        """
        deadline = self._clock.monotonic_ms() + self.timeout_ms
        backoff_ms = _FIRST_BACKOFF_MS
        while True:
            try:
                return attempt()
            except (KafkaError, ConnectionFailed) as error:
                may_pass = error.code in codes if isinstance(error, KafkaError) else codes is RETRIABLE
                if not may_pass or self._clock.monotonic_ms() + backoff_ms > deadline:
                    raise
            time.sleep(backoff_ms / 1000)
            backoff_ms = min(backoff_ms * 2, _MAX_BACKOFF_MS)
            self._controller_id = -1

    def metadata(self, names: list[str] | None, *, allow_creation: bool = False) -> MetadataResponse:
        """Metadata of the named topics, or of all (None); the brokers and the controller come with it."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=allow_creation)
        response = self.ask_any(request, MetadataResponse)
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self._controller_id = response.controller_id
        return response

    def _ask(self, address: tuple[str, int], request: Request, answer: type[R], version: int | None = None) -> R:
        connection = self._connection(address)
        try:
            response = connection.send(request, version)
        except ConnectionFailed:
            self._connections.pop(address).close()
            raise
        assert isinstance(response, answer), f"{type(response).__name__} is not the answer to {type(request).__name__}"
        return response

    def _connection(self, address: tuple[str, int]) -> BrokerClient:
        connection = self._connections.get(address)
        if connection is None:
            connection = BrokerClient(
                *address,
                client_id=self.client_id,
                timeout_ms=self.timeout_ms,
                connect_timeout_ms=min(self.timeout_ms, _CONNECT_TIMEOUT_MS),
                remembers=self._remembers,
                security=self.security,
            )
            self._connections[address] = connection
        return connection


def topic_states(response: MetadataResponse) -> dict[str, TopicState]:
    found: dict[str, TopicState] = {}
    for topic in response.topics:
        name = topic.name or ""
        code = ErrorCode(topic.error_code)
        if code in _UNKNOWN_TOPIC:
            continue
        if code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise KafkaError(code, f"topic '{name}': {code.name}")
        found[name] = TopicState(
            name=name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=tuple(
                PartitionState(
                    partition=partition.partition_index,
                    leader=partition.leader_id,
                    leader_epoch=partition.leader_epoch,
                    replicas=tuple(partition.replica_nodes),
                    isr=tuple(partition.isr_nodes),
                    offline_replicas=tuple(partition.offline_replicas),
                )
                for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
            ),
        )
    return found


def unknown_topic(name: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic '{name}' does not exist",
        advice="see which do with: odradek topics list",
    )


def unknown_partition(tp: TopicPartition, partition_count: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic '{tp.topic}' has no partition {tp.partition}; it has 0 to {partition_count - 1}",
    )
