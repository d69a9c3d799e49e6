"""Groups from records in order, as another broker may have left them."""

from odradek.broker.coordinator.groups.core.group_records import (
    CommittedOffset,
    GroupKey,
    GroupMetadataValue,
    OffsetKey,
    encode_group,
    encode_key,
    encode_offset,
)
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.group_replay import GroupReplay
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch, read_header
from odradek.protocol.records import ControlType, Record, control_key

KEY = OffsetKey("g", TopicPartition("orders", 0))
NOW = Moment(1_000, 1_000)
PRODUCER = 7


def apply(replayed: GroupReplay, *records: tuple[bytes, bytes | None], **batch: bool | int) -> None:
    made = [Record(index, 0, key, value) for index, (key, value) in enumerate(records)]
    raw = build_batch(made, **batch)  # type: ignore[arg-type]
    replayed.apply(raw, 0, read_header(raw))


def position(offset: int) -> tuple[bytes, bytes]:
    return encode_key(KEY), encode_offset(CommittedOffset(offset, -1, "", 0))


def marker(outcome: ControlType) -> tuple[bytes, bytes]:
    return control_key(outcome), b"\0\0\0\0\0\0"


def offsets(replayed: GroupReplay) -> dict[str, list[int]]:
    return {group.id: [each.offset for each in offsets.values()] for group, offsets in replayed.groups(NOW)}


def test_the_last_record_counts_and_a_tombstone_takes_it_away() -> None:
    replayed = GroupReplay()
    apply(replayed, position(1), position(2))
    assert offsets(replayed) == {"g": [2]}
    apply(replayed, (encode_key(KEY), None))
    assert offsets(replayed) == {}


def test_a_group_goes_and_its_offsets_stay() -> None:
    replayed = GroupReplay()
    apply(replayed, position(1), (encode_key(GroupKey("g")), encode_group(GroupMetadataValue(generation=3))))
    assert [(group.generation, len(found)) for group, found in replayed.groups(NOW)] == [(3, 1)]
    apply(replayed, (encode_key(GroupKey("g")), None))
    assert [(group.generation, len(found)) for group, found in replayed.groups(NOW)] == [(0, 1)]


def test_a_transaction_counts_when_it_is_committed() -> None:
    replayed = GroupReplay()
    apply(replayed, position(1))
    apply(replayed, position(2), transactional=True, producer_id=PRODUCER)
    assert offsets(replayed) == {"g": [1]}
    apply(replayed, marker(ControlType.ABORT), transactional=True, control=True, producer_id=PRODUCER)
    assert offsets(replayed) == {"g": [1]}
    apply(replayed, position(3), transactional=True, producer_id=PRODUCER)
    apply(replayed, marker(ControlType.COMMIT), transactional=True, control=True, producer_id=PRODUCER)
    assert offsets(replayed) == {"g": [3]}


def test_what_cannot_be_read_is_passed_over() -> None:
    replayed = GroupReplay()
    apply(replayed, (b"", b""), (b"\0\x09new kind", b""), (encode_key(KEY), b"\0\x09"), position(4))
    assert offsets(replayed) == {"g": [4]}
