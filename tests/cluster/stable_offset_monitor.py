"""Monitor of last stable offsets while a test breaks things: none goes back, and each moves again in time."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import ask_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel

LATEST = -1
LOOK_S = 0.05
SLACK_S = 10
"""Time after a transaction's timeout within which the stable offset has to move."""


class StableOffsetMonitor:
    def __init__(self, bootstrap: str, partitions: Sequence[TopicPartition]) -> None:
        self._client = ClusterClient(bootstrap, client_id="monitor", timeout_ms=2_000)
        self._partitions = partitions
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self.offsets: dict[TopicPartition, int] = {}
        self.went_back: list[str] = []
        self._thread = threading.Thread(target=self._run, name="stable-offset-monitor")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._client.close()

    def await_beyond(self, tp: TopicPartition, offset: int, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        with self._changed:
            while self.offsets.get(tp, -1) <= offset:
                left_s = deadline - time.monotonic()
                assert left_s > 0, f"last stable offset of {tp} is stuck at {self.offsets.get(tp)}"
                self._changed.wait(left_s)

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            try:
                self._look()
            except (KafkaError, ConnectionFailed):
                continue  # a leader is away: there is no answer, which is not a lower one

    def _look(self) -> None:
        for leader, tps in self._client.leaders(self._partitions).items():
            times = dict.fromkeys(tps, LATEST)
            answers = ask_offsets(self._client, leader, times, isolation=IsolationLevel.READ_COMMITTED)
            for tp, answer in answers.items():
                if not answer.error_code:
                    self._take(tp, answer.offset, leader)

    def _take(self, tp: TopicPartition, offset: int, leader: int) -> None:
        with self._changed:
            before = self.offsets.get(tp, 0)
            if offset < before:
                self.went_back.append(f"{tp}: {before} → {offset}, leader {leader}")
            self.offsets[tp] = offset
            self._changed.notify_all()


@contextmanager
def stable_offsets(bootstrap: str, *partitions: TopicPartition) -> Iterator[StableOffsetMonitor]:
    """The offsets never went back, in the end."""
    monitor = StableOffsetMonitor(bootstrap, partitions)
    monitor.start()
    try:
        yield monitor
    finally:
        monitor.stop()
    assert monitor.went_back == []
