"""Producer entries of deleted logs, for the logs that replace them.

A topic may be deleted and created again while a producer continues with its next sequence: clients number the batches
of a partition by its name. The new log would refuse it, because nothing can have been lost there (`producer_state`),
and librdkafka takes that refusal for a fatal error. So the new log inherits the producer entries of the deleted one.
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.log.core.producer_entry import ProducerEntry
from odradek.model.topology import TopicPartition

ENTRIES_MAX: Final = 100_000


class DeletedProducers:
    """Bounded: the entries that were deleted first go first. The owner serialises its callers."""

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, Mapping[int, ProducerEntry]] = {}
        self._size = 0

    def keep(self, tp: TopicPartition, entries: Mapping[int, ProducerEntry]) -> None:
        self.take(tp)
        if not entries or len(entries) > ENTRIES_MAX:
            return
        self._entries[tp] = dict(entries)
        self._size += len(entries)
        while self._size > ENTRIES_MAX:
            self.take(next(iter(self._entries)))

    def take(self, tp: TopicPartition) -> Mapping[int, ProducerEntry]:
        entries = self._entries.pop(tp, {})
        self._size -= len(entries)
        return entries
