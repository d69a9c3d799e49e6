"""Pending changes of the ISR: a leader proposes them; the controller, or a conditional write to ZooKeeper, decides.

`IsrChanges` has one thread and at most one change for each partition; a newer one takes the place of an older. Waiting
changes are sent together, one batch at a time, and repeated until they are answered: only the partition abandons a
change, when the controller sends a directive.

Since inter.broker.protocol.version 2.7 the leader asks the controller (`AlterPartitionUpdater`); before, it writes the
partition's state itself, conditionally, and leaves a notice for the controller (`ZooKeeperIsrUpdater`).
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol, TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.replication.core.isr import REFUSED, IsrChange
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResult,
    TopicData,
)
from odradek.protocol.schema import Request, Response

log = get_logger(__name__)

RETRY_MS = 50
RETRY_MS_MAX = 1_000

Answer: TypeAlias = LeaderAndIsr | ErrorCode
"""The new state of the partition, or the error."""


OnAnswer = Callable[[IsrChange, Answer], None]


class IsrUpdater(Protocol):
    """Updater of ISRs: through the controller or through ZooKeeper."""

    def make(self, changes: Sequence[IsrChange]) -> dict[TopicPartition, Answer]:
        """Make the changes. Partitions missing in the answer are tried again, and all of them when this raises."""


class IsrChanges:
    def __init__(self, way: IsrUpdater) -> None:
        self._way = way
        self._waiting: dict[TopicPartition, IsrChange] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._retry_ms = 0
        self._thread: SupervisedThread | None = None

    def start(self, on_answer: OnAnswer) -> None:
        self._thread = SupervisedThread(target=lambda: self._run(on_answer), name="isr-changes")
        self._thread.start()

    def stop(self) -> None:
        """Stop: wait for the requests in flight, send no others."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def submit(self, change: IsrChange) -> None:
        with self._changed:
            self._waiting[change.partition] = change
            self._changed.notify()

    def _run(self, on_answer: OnAnswer) -> None:
        while changes := self._next():
            try:
                done = self.make(changes, on_answer)
            except Exception as error:
                log.warning("AlterPartition failed, retrying", changes=len(changes), error=str(error))
                done = False
            self._retry_ms = 0 if done else min(max(RETRY_MS, 2 * self._retry_ms), RETRY_MS_MAX)

    def _next(self) -> list[IsrChange]:
        """Return all waiting changes; none after the stop."""
        with self._changed:
            if self._retry_ms:
                self._changed.wait_for(lambda: self._stopped, self._retry_ms / 1000)
            self._changed.wait_for(lambda: self._stopped or self._waiting)
            return [] if self._stopped else list(self._waiting.values())

    def make(self, changes: Sequence[IsrChange], on_answer: OnAnswer) -> bool:
        """Send one round of proposals; return whether all of them are settled."""
        answers = self._way.make(changes)
        settled = True
        for change in changes:
            answer = answers.get(change.partition)
            if answer is not None:
                with self._changed:
                    if self._waiting.get(change.partition) is change:
                        del self._waiting[change.partition]
                on_answer(change, answer)
            settled &= isinstance(answer, LeaderAndIsr) or answer in REFUSED
        return settled


class AlterPartitionUpdater:
    """AlterPartition, version 3."""

    def __init__(
        self, broker_id: int, broker_epoch: Callable[[], int], send_to_controller: Callable[[Request], Response]
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._send = send_to_controller

    def make(self, changes: Sequence[IsrChange]) -> dict[TopicPartition, Answer]:
        response = self._send(self._request(changes))
        assert isinstance(response, AlterPartitionResponse)
        if response.error_code:
            raise RuntimeError(f"the controller answers {ErrorCode(response.error_code).name}")
        names = {change.topic_id: change.partition.topic for change in changes}
        known = {change.partition: change for change in changes}
        answers: dict[TopicPartition, Answer] = {}
        for topic in response.topics:
            for result in topic.partitions:
                tp = TopicPartition(names.get(topic.topic_id, ""), result.partition_index)
                if tp in known:
                    answers[tp] = _answer(result, known[tp])
        return answers

    def _request(self, changes: Sequence[IsrChange]) -> AlterPartitionRequest:
        by_topic = groupby(sorted(changes, key=lambda change: change.partition), key=lambda change: change.topic_id)
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                TopicData(topic_id=topic_id, partitions=[_partition_data(change) for change in of_topic])
                for topic_id, of_topic in by_topic
            ],
        )


def _partition_data(change: IsrChange) -> PartitionData:
    return PartitionData(
        partition_index=change.partition.partition,
        leader_epoch=change.leader_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=broker_id, broker_epoch=epoch)
            for broker_id, epoch in zip(change.isr, change.broker_epochs, strict=True)
        ],
        partition_epoch=change.partition_epoch,
    )


def _answer(result: PartitionResult, change: IsrChange) -> Answer:
    if result.error_code:
        return ErrorCode(result.error_code)
    return LeaderAndIsr(
        result.leader_id, result.leader_epoch, tuple(result.isr), change.controller_epoch, result.partition_epoch
    )


class ZooKeeperIsrUpdater:
    def __init__(
        self,
        update_state: Callable[[TopicPartition, LeaderAndIsr], int | None],
        notify: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        self._update_state = update_state
        self._notify = notify
        self._to_notify: set[TopicPartition] = set()

    def make(self, changes: Sequence[IsrChange]) -> dict[TopicPartition, Answer]:
        answers = {change.partition: self._write(change) for change in changes}
        self._to_notify |= {tp for tp, answer in answers.items() if isinstance(answer, LeaderAndIsr)}
        try:
            if self._to_notify:
                self._notify(self._to_notify)
                self._to_notify = set()
        except Exception as error:
            # The change is made all the same. The notice goes with the next one.
            log.warning("ISR change notification failed", partitions=len(self._to_notify), error=str(error))
        return answers

    def _write(self, change: IsrChange) -> Answer:
        state = LeaderAndIsr(
            change.leader, change.leader_epoch, change.isr, change.controller_epoch, change.partition_epoch
        )
        version = self._update_state(change.partition, state)
        return ErrorCode.INVALID_UPDATE_VERSION if version is None else replace(state, zk_version=version)
