"""Recovery is replay: the groups of one partition of __consumer_offsets, from its records in order.

The last record of a key counts; a record without a value removes the entry. Offsets that were committed inside a
transaction count when its marker says so.
"""

from collections import defaultdict
from collections.abc import Iterator

from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core.group import Group
from odradek.broker.coordinator.groups.core.group_records import (
    CommittedOffset,
    GroupKey,
    GroupMetadataValue,
    OffsetKey,
    decode_group,
    decode_key,
    decode_offset,
)
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.core.offsets import Offsets
from odradek.broker.coordinator.groups.core.pending_offsets import PendingOffsets
from odradek.protocol.record_batch import BatchHeader
from odradek.protocol.records import ControlType, Record, read_control_type, read_records

log = get_logger(__name__)


class GroupReplay:
    def __init__(self) -> None:
        self._groups: dict[str, GroupMetadataValue] = {}
        self._offsets: dict[str, Offsets] = defaultdict(dict)
        self._pending: dict[str, PendingOffsets] = defaultdict(PendingOffsets)

    def apply(self, buf: bytes, pos: int, header: BatchHeader) -> None:
        if header.is_control:
            for record in read_records(buf, pos, header):
                self._end_transaction(header.producer_id, read_control_type(record.key))
            return
        for record in read_records(buf, pos, header):
            try:
                self._apply_record(record, header)
            except KafkaError as error:
                log.warning("invalid group metadata record skipped", offset=record.offset, error=str(error))

    def groups(self, now: Moment) -> Iterator[tuple[Group, Offsets]]:
        """Every group that has members, a generation, or offsets, committed or pending."""
        for group_id, value in self._groups.items():
            yield Group.from_record(group_id, value, now), self._offsets.get(group_id, {})
        for group_id in {**self._offsets, **self._pending}:
            if group_id not in self._groups and (self._offsets.get(group_id) or self._pending.get(group_id)):
                yield Group(group_id, now), self._offsets.get(group_id, {})

    def pending(self, group_id: str) -> PendingOffsets:
        """Offsets in transactions that were open at the end of the log."""
        return self._pending.get(group_id) or PendingOffsets()

    def _apply_record(self, record: Record, header: BatchHeader) -> None:
        key = decode_key(record.key or b"")
        if isinstance(key, GroupKey):
            if record.value is None:
                self._groups.pop(key.group_id, None)
            else:
                self._groups[key.group_id] = decode_group(record.value)
        elif isinstance(key, OffsetKey):
            committed = None if record.value is None else decode_offset(record.value)
            if header.is_transactional:
                self._pending[key.group_id].add(header.producer_id, {key.partition: committed})
                return
            self._apply_offset(key, committed)
            if key.group_id in self._pending:
                self._pending[key.group_id].supersede([key.partition])

    def _apply_offset(self, key: OffsetKey, committed: CommittedOffset | None) -> None:
        if committed is None:
            self._offsets[key.group_id].pop(key.partition, None)
        else:
            self._offsets[key.group_id][key.partition] = committed

    def _end_transaction(self, producer_id: int, outcome: ControlType | None) -> None:
        for group_id, pending in self._pending.items():
            if producer_id in pending.producers:
                changes = pending.end(producer_id, committed=outcome is ControlType.COMMIT)
                for tp, committed in changes.items():
                    self._apply_offset(OffsetKey(group_id, tp), committed)
        self._pending = defaultdict(PendingOffsets, {key: each for key, each in self._pending.items() if each})
