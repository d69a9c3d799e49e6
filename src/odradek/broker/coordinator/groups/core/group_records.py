"""The records of __consumer_offsets, byte for byte as in Apache Kafka.

Each key and each value begins with its version, an int16. The version of a key is also its kind:

    0, 1    the committed offset of a group     value: OffsetCommitValue, null when it expires
    2       a group and its members             value: GroupMetadataValue, null when it is deleted

Key 1 is written with value 3 (1 if the committer requested its own retention), key 2 with value 3; all versions are
read. Unknown kinds belong to newer coordinators and are ignored.
"""

from struct import Struct as Packer
from struct import error as StructError
from typing import Final, TypeAlias, TypeVar

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.model.topology import TopicPartition
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.record_batch import NO_TIMESTAMP
from odradek.protocol.schema import Message, Struct, array, bytes_, int32, int64, string

_VERSION = Packer(">h")

# Keys and positions are written with each commit: packed by hand, from the declarations below.
_KEY_HEAD = Packer(">hh")  # version, length of the group's name
_LENGTH = Packer(">h")
_INT32 = Packer(">i")
_OFFSET_HEAD = Packer(">hqih")  # version, offset, leader epoch, length of the metadata
_EXPIRING_HEAD = Packer(">hqh")  # version, offset, length of the metadata
_INT64 = Packer(">q")
_TWO_INT64 = Packer(">qq")
_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
_VALUE_VERSION: Final = 3
_VALUE_VERSION_WITH_EXPIRY: Final = 1


class OffsetCommitKey(Message, versions="0-1"):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)  # of the last record consumed; -1: not known
    metadata: str = string()  # the committer's own words
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)  # -1: as the broker is configured


class GroupMetadataKey(Message, versions="2"):
    group: str = string()


class MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)  # of static members
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = bytes_()  # the member's metadata for the chosen protocol
    assignment: bytes = bytes_()  # the assignment by the leader


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)  # -1: not known
    members: list[MemberMetadata] = array(MemberMetadata)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's position in a partition: the offset of the record that it wants next."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class OffsetKey:
    group_id: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupKey:
    group_id: str


StateKey: TypeAlias = OffsetKey | GroupKey

StateRecord: TypeAlias = tuple[StateKey, bytes | None]
"""A key and its value; None takes away what the key had."""


def encode_key(key: StateKey) -> bytes:
    group = key.group_id.encode()
    if isinstance(key, GroupKey):
        return _KEY_HEAD.pack(_GROUP_KEY_VERSION, len(group)) + group
    topic, partition = key.partition
    name = topic.encode()
    return b"".join(
        (
            _KEY_HEAD.pack(_OFFSET_KEY_VERSION, len(group)),
            group,
            _LENGTH.pack(len(name)),
            name,
            _INT32.pack(partition),
        )
    )


def encode_offset(committed: CommittedOffset) -> bytes:
    metadata = committed.metadata.encode()
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return b"".join(
            (
                _EXPIRING_HEAD.pack(_VALUE_VERSION_WITH_EXPIRY, committed.offset, len(metadata)),
                metadata,
                _TWO_INT64.pack(committed.commit_timestamp_ms, committed.expire_timestamp_ms),
            )
        )
    head = _OFFSET_HEAD.pack(_VALUE_VERSION, committed.offset, committed.leader_epoch, len(metadata))
    return head + metadata + _INT64.pack(committed.commit_timestamp_ms)


def encode_group(value: GroupMetadataValue) -> bytes:
    return _prefixed(value, _VALUE_VERSION)


def decode_key(raw: bytes) -> StateKey | None:
    """Decode a key; None for an unknown kind."""
    version = _version_of(raw)
    if version in OffsetCommitKey.VERSIONS:
        key = _decode(OffsetCommitKey, raw)
        return OffsetKey(key.group, TopicPartition(key.topic, key.partition))
    if version in GroupMetadataKey.VERSIONS:
        return GroupKey(_decode(GroupMetadataKey, raw).group)
    return None


def decode_offset(raw: bytes) -> CommittedOffset:
    value = _decode(OffsetCommitValue, raw)
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp
    )


def decode_group(raw: bytes) -> GroupMetadataValue:
    """The first version had one timeout for both purposes."""
    value = _decode(GroupMetadataValue, raw)
    for member in value.members:
        if member.rebalance_timeout < 0:
            member.rebalance_timeout = member.session_timeout
    return value


MessageT = TypeVar("MessageT", bound=Message)


def _prefixed(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + message.encode(version)


def _version_of(raw: bytes) -> int:
    try:
        return int(_VERSION.unpack_from(raw)[0])
    except StructError:
        raise _malformed(f"{len(raw)} bytes have no version") from None


def _decode(kind: type[MessageT], raw: bytes) -> MessageT:
    version = _version_of(raw)
    if version not in kind.VERSIONS:
        raise _malformed(f"{kind.__name__} has no version {version}")
    try:
        return kind.decode(memoryview(raw), _VERSION.size, version)[0]
    except ProtocolError as error:
        raise _malformed(f"{kind.__name__}: {error}") from error


def _malformed(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Not a record of group state: {what}")
