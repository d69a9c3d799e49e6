"""Recovery is replay: the groups of one partition of __consumer_offsets, from its records in order.

The last record of a key counts; one without a value takes away what was there. Offsets that were committed inside a
transaction count when its marker says so.
"""

from collections import defaultdict
from collections.abc import Iterator

from odradek.base.errors import ErrorCode, KafkaError
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
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.protocol.record_batch import BatchHeader, batches
from odradek.protocol.records import ControlType, Record, read_control_type, read_records

log = get_logger(__name__)

_OffsetChanges = dict[OffsetKey, CommittedOffset | None]


class GroupReplay:
    def __init__(self) -> None:
        self._groups: dict[str, GroupMetadataValue] = {}
        self._offsets: dict[str, Offsets] = defaultdict(dict)
        self._transactions: dict[int, _OffsetChanges] = {}

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
        """Every group that has members, a generation, or offsets."""
        for group_id, value in self._groups.items():
            yield Group.from_record(group_id, value, now), self._offsets.get(group_id, {})
        for group_id, offsets in self._offsets.items():
            if group_id not in self._groups and offsets:
                yield Group(group_id, now), offsets

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
                self._transactions.setdefault(header.producer_id, {})[key] = committed
            else:
                self._apply_offset(key, committed)

    def _apply_offset(self, key: OffsetKey, committed: CommittedOffset | None) -> None:
        if committed is None:
            self._offsets[key.group_id].pop(key.partition, None)
        else:
            self._offsets[key.group_id][key.partition] = committed

    def _end_transaction(self, producer_id: int, outcome: ControlType | None) -> None:
        changes = self._transactions.pop(producer_id, {})
        if outcome is ControlType.COMMIT:
            for key, committed in changes.items():
                self._apply_offset(key, committed)


def replay(partition_log: PartitionLog, max_bytes: int) -> GroupReplay:
    """Replay the log to its end, a piece at a time."""
    replayed = GroupReplay()
    offset = partition_log.log_start_offset
    while offset < (end := partition_log.log_end_offset):
        buf = partition_log.read(offset, max_bytes, upper_bound=end).records.read()
        before = offset
        for pos, header in batches(buf, partial_tail=True):
            replayed.apply(buf, pos, header)
            offset = header.next_offset
        if offset == before:
            if buf:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"No batch at offset {offset} of {partition_log.partition}")
            break
    return replayed
