"""One story: a topic, clients at work on it, something that breaks, and the verdict.

    with Story(cluster) as story:
        story.let_it_work()
        cluster.brokers[0].kill()
        story.let_it_work(500)
        cluster.start(0)
    assert story.verdict == []

Leaving the story heals it: every broker is back, the ISR is full, the producers have ended, the consumers have read
everything, and then it is judged: by what clients saw, by the replicas' bytes, and by what ZooKeeper says.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.clients import ChaosConsumer, ChaosProducer, await_condition, drain
from chaos.history import History
from chaos.judge import judge
from chaos.replica_files import differences
from odradek.apps.lab.cluster import ChaosCluster
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

TOPIC = "orders"
PARTITIONS = 3
HEAL_S_MAX = 90.0
WORK_S_MAX = 90.0
AGREE_S_MAX = 15.0


class Story:
    def __init__(
        self,
        cluster: ChaosCluster,
        *,
        topic: str = TOPIC,
        producers: int = 2,
        rate: float = 100.0,
        replication_factor: int = 3,
        configs: Mapping[str, str] | None = None,
        idempotent: bool = True,
        request_timeout_ms: int = 10_000,
        delivery_timeout_ms: int = 120_000,
        drain_s: float = 60.0,
        debug_logs: Path | None = None,
    ) -> None:
        """`topic`: one of its own for each story on the same cluster; `drain_s`: time for all consumers together to
        read the acknowledged records once all faults have ended; `debug_logs`: the directory of the producers' debug
        lines."""
        self.cluster = cluster
        self.history = History()
        self._topic = topic
        self.partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
        self.verdict: list[str] = []
        self._idempotent = idempotent
        self.replication_factor = replication_factor
        self._configs = configs or {}
        self._drain_s = drain_s
        settings = {
            "enable.idempotence": idempotent,
            "request.timeout.ms": request_timeout_ms,
            "socket.timeout.ms": request_timeout_ms,
            "delivery.timeout.ms": delivery_timeout_ms,
        }
        self.producers = [
            ChaosProducer(
                f"p{n}",
                cluster.bootstrap,
                self.partitions,
                self.history,
                rate=rate,
                settings=settings,
                debug_log=None if debug_logs is None else debug_logs / f"p{n}.log",
            )
            for n in range(producers)
        ]
        self.consumers = [ChaosConsumer(f"c{n}", cluster.bootstrap, self.partitions, self.history) for n in range(2)]

    def __enter__(self) -> Self:
        self._create_topic()
        for client in (*self.producers, *self.consumers):
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._heal()
            self._judge()
        for client in (*self.producers, *self.consumers):
            client.stop()

    def let_it_work(self, records: int = 100, limit_s: float = WORK_S_MAX) -> None:
        """Wait until so many more records are acknowledged."""
        goal = self.history.acknowledged_count() + records
        if not await_condition(lambda: self.history.acknowledged_count() >= goal, limit_s):
            got = self.history.acknowledged_count() - goal + records
            raise TimeoutError(f"only {got} of {records} records were acknowledged within {limit_s:.0f} s")

    def await_isr(self, size: int, limit_s: float = HEAL_S_MAX) -> None:
        """Until every partition has an ISR of this size, by the account of every live broker."""

        def holds() -> bool:
            views = self.cluster.all_views(self.partitions).values()
            return all(len(v) == 1 and len(next(iter(v))[2]) == size and next(iter(v))[0] >= 0 for v in views)

        if not await_condition(holds, limit_s):
            found = {str(tp): sorted(map(str, self.cluster.views(tp))) for tp in self.partitions}
            raise TimeoutError(f"no ISR of {size} everywhere after {limit_s:.0f} s: {found}")

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of the partition, by the first live broker that knows it."""
        views = (self.cluster.partition(tp, broker) for broker in self.cluster.brokers if broker.pid)
        return next((tuple(view.replica_nodes) for view in views if view is not None), ())

    # ---- the beginning

    def _create_topic(self) -> None:
        topic = CreatableTopic(
            name=self._topic,
            num_partitions=PARTITIONS,
            replication_factor=self.replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in self._configs.items()],
        )
        deadline = time.monotonic() + HEAL_S_MAX
        while not self._created(topic):
            if time.monotonic() > deadline:
                raise TimeoutError("the topic could not be created")
            time.sleep(0.2)
        self.await_isr(self.replication_factor)

    def _created(self, topic: CreatableTopic) -> bool:
        controller = self.cluster.controller()
        if controller is None or controller < 0:
            return False
        try:
            with BrokerClient(*self.cluster.brokers[controller].address, timeout_ms=30_000) as client:
                answer = client.send(CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
        except ConnectionFailed:
            return False
        already_exists = 36
        return answer.topics[0].error_code in (0, already_exists)

    # ---- the end

    def _heal(self) -> None:
        for broker in self.cluster.brokers:
            broker.resume()
        self.cluster.start(*[broker.id for broker in self.cluster.brokers if broker.pid is None])
        self.await_isr(self.replication_factor)
        for producer in self.producers:
            producer.stop()
        deadline = time.monotonic() + self._drain_s
        for consumer in self.consumers:
            drain(consumer, self.history, max(0.0, deadline - time.monotonic()))
            consumer.stop()

    def _judge(self) -> None:
        faults = [f"{client.name}: {client.fault}" for client in (*self.producers, *self.consumers) if client.fault]
        anomalies = [str(anomaly) for anomaly in judge(self.history, idempotent=self._idempotent)]
        self.verdict = faults + anomalies[:20] + self._replica_differences() + self._zookeeper_differences()

    def _replica_differences(self) -> list[str]:
        """Compare the assigned replicas: a broker that was away while its replica was moved may still have files."""
        found = []
        for tp in self.partitions:
            homes = {id: self.cluster.brokers[id].log_dir / str(tp) for id in self.replicas(tp)}
            replicas = {id: path for id, path in homes.items() if path.is_dir()}
            found += [f"{tp}: broker {id} has no files of its replica" for id in homes.keys() - replicas.keys()]
            end = max((ack.offset + 1 for ack in self.history.acknowledged if ack.sent.partition == tp), default=0)
            found += differences(replicas, tp, end)
        return found

    def _zookeeper_differences(self) -> list[str]:
        """Compare the state nodes with the brokers' metadata; they may need seconds to agree."""
        session = ZkSession(self.cluster.zookeeper, session_timeout_ms=10_000, connection_timeout_ms=30_000)
        session.start()
        store = ZkStore(session)

        def disagreements() -> list[str]:
            states = store.partition_states.load_partition_states(self.partitions)
            written = {tp: (s.leader, s.leader_epoch, frozenset(s.isr)) for tp, s in states.items()}
            told = self.cluster.all_views(self.partitions)
            return [
                f"{tp}: ZooKeeper has {written.get(tp)}, the brokers tell {views}"
                for tp, views in told.items()
                if views != {written.get(tp)}
            ]

        try:
            await_condition(lambda: not disagreements(), AGREE_S_MAX)
            return disagreements()
        finally:
            session.close()
