"""A produce that waits until all in-sync replicas have its records."""

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.purgatory.purgatory import DelayedOperation
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.partition import Partition
from odradek.model.topology import TopicPartition

AppendOutcome: TypeAlias = AppendResult | KafkaError
"""Offsets of appended records; or an error: not appended, or not known to be committed."""


class Awaited(NamedTuple):
    """Records that are not committed yet: everything before `end_offset` has to be, in the leadership that wrote it."""

    slot: int
    partition: Partition
    end_offset: int
    led_since: int
    records: memoryview


class DelayedProduce(DelayedOperation):
    """Checked again when one of its partitions has changed, and only for that partition.

    `outcomes` begins with what the appends found and is corrected if the wait failed. A batch whose leader has resigned
    counts as refused: it may be truncated before the batches behind it arrive.
    """

    __slots__ = ("_awaited", "_done", "_outcomes", "_refused")

    def __init__(
        self,
        timeout_ms: int,
        outcomes: list[AppendOutcome],
        awaited: list[Awaited],
        done: Callable[[list[AppendOutcome]], None],
        refused: RefusedBatches,
    ) -> None:
        super().__init__(timeout_ms)
        self._outcomes = outcomes
        self._refused = refused
        self._done = done
        self._awaited: dict[TopicPartition, list[Awaited]] = {}
        for wait in awaited:
            self._awaited.setdefault(wait.partition.topic_partition, []).append(wait)

    @property
    def keys(self) -> list[TopicPartition]:
        return list(self._awaited)

    def try_complete(self) -> bool:
        for tp in self.keys:
            self._look_at(tp)
        return not self._awaited and self.force_complete()

    def try_complete_for(self, key: Hashable) -> bool:
        assert isinstance(key, TopicPartition)
        self._look_at(key)
        return not self._awaited and self.force_complete()

    def _look_at(self, tp: TopicPartition) -> None:
        waits = self._awaited.get(tp, ())
        for wait in waits:
            code = wait.partition.acknowledgement(wait.end_offset, wait.led_since)
            if code is None:
                return
            if code is not ErrorCode.NONE:
                self._outcomes[wait.slot] = error = KafkaError(code)
                self._refused.note(tp, wait.records, error)
        self._awaited.pop(tp, None)

    def on_complete(self) -> None:
        for waits in list(self._awaited.values()):
            for wait in waits:
                self._outcomes[wait.slot] = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self._done(self._outcomes)
