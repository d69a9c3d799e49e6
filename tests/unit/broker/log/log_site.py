"""A broker's log directories with nothing around them, for tests to stop, crash and break."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from log_building import TP

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition

TOPIC_ID = UUID("d5b6a1d5-6b3c-4d7d-9a55-2f0d9f6f1a11")


class Tasks:
    """Background work, done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, Callable[[], object], int]] = []

    def once(self, name: str, action: Callable[[], object], *, delay_ms: int = 0) -> None:
        self.waiting.append((name, action, delay_ms))

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)[1]()


class Site:
    def __init__(self, *directories: Path, **topic: str) -> None:
        """Dots of a topic's configuration key are written as underscores."""
        self.config = BrokerConfig.from_properties(
            {"log.dirs": ",".join(map(str, directories)), "zookeeper.connect": "127.0.0.1:2181"}
        )
        self.topic = TopicConfig.of(self.config, {key.replace("_", "."): value for key, value in topic.items()})
        self.tasks = Tasks()
        self.failures: list[str] = []
        self.dirs = LogDirs(directories, self.config, self.tasks, SYSTEM_CLOCK, self.failures.append)
        self.dirs.lock()
        self.dirs.load()

    def create(self, tp: TopicPartition = TP, topic_id: UUID = TOPIC_ID) -> PartitionLog:
        return self.dirs.get_or_create(tp, topic_id, self.topic)

    def stop(self) -> None:
        self.dirs.close()
        self.dirs.unlock()

    def crash(self) -> None:
        self.dirs.unlock()
