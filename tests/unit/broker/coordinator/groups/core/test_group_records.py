"""The records of group state, against bytes that follow Apache Kafka's own definitions."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.base.errors import KafkaError
from odradek.broker.coordinator.groups.core.group_records import (
    CommittedOffset,
    GroupKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetKey,
    StateKey,
    decode_group,
    decode_key,
    decode_offset,
    encode_group,
    encode_key,
    encode_offset,
)
from odradek.broker.coordinator.state.state_log import java_hash
from odradek.model.topology import TopicPartition

OFFSET_KEY = bytes.fromhex("0001 0001 67 0006 6f7264657273 00000003")
GROUP_KEY = bytes.fromhex("0002 0001 67")
OFFSET_V3 = bytes.fromhex("0003 000000000000002a 00000007 0004 6d657461 0000000000000064")
OFFSET_V1 = bytes.fromhex("0001 000000000000002a 0004 6d657461 0000000000000064 00000000000000c8")
OFFSET_V4 = bytes.fromhex("0004 000000000000002a 00000007 05 6d657461 0000000000000064 00")
GROUP_V3 = bytes.fromhex(
    "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0001 6d 0000000000000064 00000001"
    "0001 6d 0001 69 0001 63 0002 2f68 00000bb8 000007d0 00000001 73 00000002 6161"
)
GROUP_V0 = bytes.fromhex(
    "0000 0008 636f6e73756d6572 00000005 0005 72616e6765 0001 6d 00000001"
    "0001 6d 0001 63 0002 2f68 000007d0 00000001 73 00000002 6161"
)


def test_keys() -> None:
    known: list[tuple[StateKey, bytes]] = [
        (OffsetKey("g", TopicPartition("orders", 3)), OFFSET_KEY),
        (GroupKey("g"), GROUP_KEY),
    ]
    for key, raw in known:
        assert encode_key(key) == raw
        assert decode_key(raw) == key
    assert decode_key(b"\0\0" + OFFSET_KEY[2:]) == OffsetKey("g", TopicPartition("orders", 3))
    assert decode_key(b"\0\x03" + GROUP_KEY[2:]) is None, "a kind of a newer coordinator"


def test_offsets() -> None:
    committed = CommittedOffset(42, 7, "meta", 100)
    assert encode_offset(committed) == OFFSET_V3
    assert decode_offset(OFFSET_V3) == decode_offset(OFFSET_V4) == committed
    expiring = CommittedOffset(42, -1, "meta", 100, 200)
    assert encode_offset(expiring) == OFFSET_V1
    assert decode_offset(OFFSET_V1) == expiring


def test_groups() -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=3000,
        session_timeout=2000,
        subscription=b"s",
        assignment=b"aa",
    )
    group = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="m",
        current_state_timestamp=100,
        members=[member],
    )
    assert encode_group(group) == GROUP_V3
    assert decode_group(GROUP_V3) == group
    oldest = decode_group(GROUP_V0)
    assert oldest.members[0].rebalance_timeout == oldest.members[0].session_timeout == 2000


@given(st.binary(max_size=60))
def test_bytes_that_are_no_record_are_refused_or_read(raw: bytes) -> None:
    for decode in (decode_key, decode_offset, decode_group):
        with suppress(KafkaError):
            decode(raw)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("console-consumer-1", 35782224), ("polygenelubricants", -(2**31)), ("grüße 🧵", 347379104)],
)
def test_java_hash(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed
