"""A cluster of real broker processes that can be killed, frozen, cut off and brought back, one by one."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from odradek.apps.lab.hosts import Hosts
from odradek.base.config.properties import format_properties
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.local.server_process import Launch, ServerProcess, odradek_command
from odradek.local.zookeeper_server import free_port
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition

START_S_MAX = 90.0
View = tuple[int, int, frozenset[int]]
"""Leader, leader epoch and ISR of a partition."""
# Short, so that stories end soon: most of them wait for these times, which are 18 s and 30 s by default.
SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "200",
    "replica.socket.timeout.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    "controller.socket.timeout.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
}


class ChaosBroker(ServerProcess):
    """A broker process, with requests for its metadata."""

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        address: tuple[str, int],
        launch: Launch,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.id = broker_id
        self.address = address
        self.log_dir = directory / "logs"
        self.output = directory / "broker.log"
        self.properties = directory / "server.properties"
        super().__init__(f"broker {broker_id}", self.properties, self.output, launch, environment)

    @property
    def bootstrap(self) -> str:
        return "{}:{}".format(*self.address)

    def metadata(self) -> MetadataResponse | None:
        """Return the metadata of this broker, or None if it does not answer."""
        try:
            with BrokerClient(*self.address, client_id="chaos", timeout_ms=3000) as client:
                answer: MetadataResponse = client.send(MetadataRequest(topics=None))
                return answer
        except ConnectionFailed:
            return None


class ChaosCluster:
    """Cluster of brokers that faults are tried on. Use it as a context: the brokers run inside of it."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        *,
        brokers: int = 3,
        hosts: Hosts | None = None,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        launch: Mapping[int, Launch] | None = None,
        first: Sequence[int] | None = None,
    ) -> None:
        """`launch` says how to run the brokers that are not Odradek's, `first` which are to run from the start."""
        self._environment = environment or {}
        self._launch = launch or {}
        self._first = range(brokers) if first is None else first
        self.zookeeper = f"{zookeeper}/{directory.name}-{uuid4().hex[:12]}"  # a chroot of its own
        self.brokers = [self._new_broker(n, directory, hosts, settings or {}) for n in range(brokers)]

    def _new_broker(
        self, broker_id: int, directory: Path, hosts: Hosts | None, settings: Mapping[str, str]
    ) -> ChaosBroker:
        own = directory / f"broker-{broker_id}"
        own.mkdir(parents=True)
        host = "127.0.0.1" if hosts is None else hosts.address(broker_id)
        launch = self._launch.get(broker_id, odradek_command)
        on_host = launch if hosts is None else lambda properties: hosts.command(broker_id, launch(properties))
        broker = ChaosBroker(broker_id, own, (host, free_port()), on_host, self._environment)
        properties = {
            "broker.id": str(broker_id),
            "listeners": "PLAINTEXT://{}:{}".format(*broker.address),
            "log.dirs": str(broker.log_dir),
            "zookeeper.connect": self.zookeeper,
            **SETTINGS,
            **settings,
        }
        broker.properties.write_text(format_properties(properties))
        return broker

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def __enter__(self) -> Self:
        try:
            self.start(*self._first)
        except BaseException:
            self._kill_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill_all()

    def start(self, *broker_ids: int) -> None:
        """Start these and wait until every live broker knows of all live ones."""
        for broker_id in broker_ids:
            self.brokers[broker_id].start()
        deadline = time.monotonic() + START_S_MAX
        while not self._agree_on_members():
            dead = [broker_id for broker_id in broker_ids if self.brokers[broker_id].pid is None]
            if dead or time.monotonic() > deadline:
                ends = {b.id: b.output.read_text(errors="replace")[-800:] for b in self.brokers}
                raise TimeoutError(f"the brokers did not find each other; their last words: {ends}")
            time.sleep(0.1)

    def _agree_on_members(self) -> bool:
        live = [broker for broker in self.brokers if broker.pid is not None]
        expected = {broker.id for broker in live}
        answers = [broker.metadata() for broker in live]
        return all(m is not None and {node.node_id for node in m.brokers} == expected for m in answers)

    def _kill_all(self) -> None:
        for broker in self.brokers:
            broker.resume()
            broker.kill()

    # ---- answers of the brokers

    def controller(self) -> int | None:
        """The controller that every live broker names."""
        named = {m.controller_id for broker in self.brokers if broker.pid and (m := broker.metadata()) is not None}
        return named.pop() if len(named) == 1 else None

    def partition(self, tp: TopicPartition, asked: ChaosBroker) -> MetadataResponsePartition | None:
        return _partition(tp, asked.metadata())

    def leader(self, tp: TopicPartition) -> int:
        """The leader according to any live broker; -1: none."""
        for broker in self.brokers:
            if broker.pid and (found := self.partition(tp, broker)) is not None:
                return found.leader_id
        return -1

    def views(self, tp: TopicPartition) -> set[View]:
        """Leader, epoch and ISR according to the live brokers; several values if they don't agree yet."""
        return self.all_views([tp])[tp]

    def all_views(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, set[View]]:
        """The views of each of these partitions; every broker is asked once."""
        answers = [broker.metadata() for broker in self.brokers if broker.pid]
        return {tp: {_view(_partition(tp, metadata)) for metadata in answers} for tp in tps}


def _partition(tp: TopicPartition, metadata: MetadataResponse | None) -> MetadataResponsePartition | None:
    topics = [] if metadata is None else [t for t in metadata.topics if t.name == tp.topic]
    return next((p for t in topics for p in t.partitions if p.partition_index == tp.partition), None)


def _view(found: MetadataResponsePartition | None) -> View:
    return (-1, -1, frozenset()) if found is None else (found.leader_id, found.leader_epoch, frozenset(found.isr_nodes))
