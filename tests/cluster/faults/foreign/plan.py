"""Plan of a run. With the same plan the same faults are drawn in the same order; what they meet is up to the
machine."""

from dataclasses import dataclass
from typing import Final

TOPIC: Final = "orders"
PARTITIONS: Final = 6
REPLICATION_FACTOR: Final = 3

_DEFAULTS: Final = {
    "zookeeper.session.timeout.ms": "18000",
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.wait.max.ms": "500",
    "replica.socket.timeout.ms": "30000",
    "replica.fetch.backoff.ms": "1000",
    "controller.socket.timeout.ms": "30000",
    "controlled.shutdown.retry.backoff.ms": "5000",
}
ALL_FAULTS: Final = ("kill", "kill", "freeze", "stop", "birth", "birth")
SESSION_S: Final = {"short": 3.0, "default": 18.0}


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float
    librdkafka: int = 4
    """Producers of this kind from the start."""
    java: int = 0
    partitions: int = PARTITIONS
    """Partitions of the topic that is there from the start."""
    rate: float = 1000.0
    """Records per second and producer."""
    faults: tuple[str, ...] = ("kill", "kill", "freeze", "stop")
    """Faults to draw from, see the nemesis; twice makes one twice as likely."""
    born_partitions: tuple[int, ...] = (1, 6, 18)
    """Numbers of partitions of created topics."""
    born_lose_by: tuple[str, ...] = ("kill", "kill", "freeze", "stop")
    """Ways in which a created topic loses its first leader."""
    births: bool = False
    """Topics, partitions and producers are born while a broker is frozen."""
    operations: bool = False
    """Preferred elections and reassignments between faults."""
    niceness: int = 0
    """Processor time of the producers: threads that wait long for a core meet each other at odd moments."""
    hasty: bool = False
    """The next fault needn't wait until all replicas are in sync."""
    timeouts: str = "short"
    """Timeouts of ZooKeeper sessions, lagging replicas and sockets between brokers: short, or Kafka's default."""
    transactional: int = 0
    """Transactional producers, if they are what is judged: see `transaction_run`."""
    copiers: int = 0
    """librdkafka programs that copy in transactions; with any of them, Kafka's own one too."""
    brokers: str = "odradek"
    """Or kafka."""

    @property
    def session_s(self) -> float:
        return SESSION_S[self.timeouts]

    @property
    def settings(self) -> dict[str, str]:
        common = {
            "auto.create.topics.enable": "false",
            "num.partitions": str(self.partitions),
            "transaction.state.log.num.partitions": "3",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        }
        return common if self.timeouts == "short" else {**common, **_DEFAULTS}
