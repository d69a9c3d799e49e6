"""A deletion of records that waits until no live replica has them any more."""

from collections.abc import Callable
from typing import TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.purgatory.purgatory import DelayedOperation
from odradek.broker.replication.partition import Partition
from odradek.model.topology import TopicPartition

DeleteOutcomes: TypeAlias = dict[TopicPartition, int | KafkaError]
"""The reached low watermark, or the error."""


class DelayedDelete(DelayedOperation):
    __slots__ = ("_awaited", "_done", "_outcomes")

    def __init__(
        self,
        timeout_ms: int,
        outcomes: DeleteOutcomes,
        awaited: dict[TopicPartition, tuple[Partition, int]],
        done: Callable[[DeleteOutcomes], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._outcomes = outcomes
        self._awaited = awaited
        self._done = done

    def try_complete(self) -> bool:
        for tp, (partition, offset) in list(self._awaited.items()):
            try:
                reached = partition.low_watermark()
            except KafkaError as error:
                self._outcomes[tp] = error
            else:
                if reached < offset:
                    continue
                self._outcomes[tp] = reached
            self._awaited.pop(tp, None)
        return not self._awaited and self.force_complete()

    def on_complete(self) -> None:
        for tp in list(self._awaited):
            self._outcomes[tp] = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self._done(self._outcomes)
