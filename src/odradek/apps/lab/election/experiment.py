"""Kills one of three brokers, which leads a third of the partitions, and measures the cost of the elections.

Time runs from the end of the dead broker's session, because no design can notice the crash earlier. Notifications,
reads and writes are ZooKeeper's own counts; they contain the few pings of the sessions, and the one watch of this
laboratory.
"""

import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from odradek.apps.lab.cluster import ChaosBroker, ChaosCluster
from odradek.apps.lab.election.naive import NaiveBroker
from odradek.apps.lab.lagging_ensemble import LaggingEnsemble
from odradek.apps.lab.line import Line
from odradek.base.errors import FatalError
from odradek.broker.zk.session import ZkSession
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic
from odradek.local.zookeeper_server import free_port

BROKERS = 3
SESSION_MS = 6000
_PATIENCE_S = 120.0
_LOOK_S = 0.02
# Work after the last election, mostly changes of ISRs, belongs to the cost.
_SETTLE_S = 2.0
_CONTROL_REQUESTS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


@dataclass(frozen=True, slots=True)
class Election:
    """One row of the table."""

    design: str
    partitions: int
    led_by_the_dead: int
    led_again_s: float | None
    """None: not within the time that it was given."""
    notifications: int
    reads: int
    writes: int
    requests: int


def naive_election(ensemble: LaggingEnsemble, partitions: int) -> Election:
    leaders: dict[int, int] = {}
    root = f"/naive-{partitions}"
    victims_server = ensemble.servers[-1].partition(":")
    line = Line((victims_server[0], int(victims_server[2])))
    brokers = [
        NaiveBroker(
            line.connect if number == 0 else ensemble.fast,
            root,
            number,
            partitions,
            SESSION_MS,
            lambda broker, partition: leaders.update({partition: broker}),
        )
        for number in range(BROKERS)
    ]
    victim = brokers[0]
    try:
        for broker in brokers:
            broker.start(range(broker.id, partitions, BROKERS))
        for broker in brokers:
            broker.follow()
        led = sum(leader == victim.id for leader in leaders.values())
        with _SessionEnd(ensemble.fast, f"{root}/broker-{victim.id}") as session_end:
            before = ensemble.counters()
            line.cut()
            victim.stop()
            session_end.wait()
            led_again_s = _seconds_until(lambda: victim.id not in dict(leaders).values())
            time.sleep(_SETTLE_S)
            cost = _difference(ensemble.counters(), before)
    finally:
        for broker in brokers:
            broker.close()
        line.close()
    return Election("naive", partitions, led, led_again_s, requests=0, **cost)


def controller_election(ensemble: LaggingEnsemble, directory: Path, partitions: int) -> Election:
    settings = {"zookeeper.session.timeout.ms": str(SESSION_MS), "num.partitions": "1"}
    cluster = ChaosCluster(directory, ensemble.fast, brokers=BROKERS, settings=settings)
    metrics = {broker.id: _open_metrics(broker) for broker in cluster.brokers}
    topic = f"elections-{partitions}"
    with cluster:
        with ClusterClient(cluster.bootstrap, timeout_ms=60_000) as client:
            create_topic(client, topic, partitions=partitions, replication_factor=BROKERS)
        if _seconds_until(lambda: _is_led(cluster, topic, partitions, None)) is None:
            raise FatalError(f"the topic of the experiment got no leaders within {_PATIENCE_S:.0f} s")
        controller = cluster.controller()
        victim = next(broker for broker in cluster.brokers if broker.id != controller)
        led = sum(leader == victim.id for leader in _leaders(victim, topic).values())
        survivors = [port for broker_id, port in metrics.items() if broker_id != victim.id]
        with _SessionEnd(cluster.zookeeper, f"/brokers/ids/{victim.id}") as session_end:
            before, sent_before = ensemble.counters(), sum(map(_control_requests, survivors))
            victim.kill()
            session_end.wait()
            led_again_s = _seconds_until(lambda: _is_led(cluster, topic, partitions, victim.id))
            time.sleep(_SETTLE_S)
            cost = _difference(ensemble.counters(), before)
            requests = sum(map(_control_requests, survivors)) - sent_before
    return Election("controller", partitions, led, led_again_s, requests=requests, **cost)


class _SessionEnd:
    """Tells when a broker's node is gone."""

    def __init__(self, zookeeper: str, path: str) -> None:
        self._changed = threading.Event()
        self._path = path
        self._session = ZkSession(
            zookeeper,
            session_timeout_ms=30_000,
            connection_timeout_ms=30_000,
            on_znode=lambda path: self._changed.set(),
        )

    def __enter__(self) -> "_SessionEnd":
        """Wait for the registration: a broker on a busy machine may just have lost its session."""
        self._session.start()
        if _seconds_until(self._is_there) is None:
            self._session.close()
            raise FatalError(f"the broker that was to die is not registered at {self._path}")
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    def wait(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while self._is_there():
            if not self._changed.wait(end - time.monotonic()):
                raise FatalError(f"ZooKeeper did not end the dead broker's session within {_PATIENCE_S:.0f} s")

    def _is_there(self) -> bool:
        """Return whether the registration exists; `_changed` is set when that changes."""
        self._changed.clear()
        return bool(self._session.watch_nodes([self._path])[self._path])


def _seconds_until(condition: Callable[[], bool]) -> float | None:
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > _PATIENCE_S:
            return None
        time.sleep(_LOOK_S)
    return time.monotonic() - began


def _is_led(cluster: ChaosCluster, topic: str, partitions: int, dead: int | None) -> bool:
    """Return whether every live broker knows a live leader of every partition."""
    for broker in cluster.brokers:
        if broker.id != dead:
            leaders = _leaders(broker, topic)
            if len(leaders) < partitions or not {-1, dead}.isdisjoint(leaders.values()):
                return False
    return True


def _leaders(broker: ChaosBroker, topic: str) -> dict[int, int]:
    metadata = broker.metadata()
    found = [] if metadata is None else [t for t in metadata.topics if t.name == topic]
    return {p.partition_index: p.leader_id for t in found for p in t.partitions}


def _difference(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}


def _open_metrics(broker: ChaosBroker) -> int:
    port = free_port()
    with broker.properties.open("a") as properties:
        properties.write(f"odradek.metrics.port={port}\n")
    return port


def _control_requests(port: int) -> int:
    """Count the requests that the controller has sent to the broker whose metrics are at this port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("kafka_network_requestmetrics_requests_total{")]
    wanted = [line for line in counted if any(f'request="{name}"' in line for name in _CONTROL_REQUESTS)]
    return sum(int(float(line.rpartition(" ")[2])) for line in wanted)
