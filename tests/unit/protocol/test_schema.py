"""Declared messages as objects, and values that the codec refuses to write."""

from uuid import UUID

import pytest

from odradek.protocol.primitives import EncodeError
from odradek.protocol.schema import Message, Response, Struct, array, bool_, int16, int32, int64, string, struct, uuid

TOPIC_ID = UUID("c0ffee00-0000-4000-8000-000000000001")


class Inner(Struct):
    size: int = int32()
    name: str = string()


class Note(Struct):
    text: str = string(default="none")


class Sample(Message, versions="0-3", flexible="2+"):
    name: str = string()
    alias: str | None = string("1+", nullable="1+", default=None)
    epoch: int = int32("1+", default=-1)
    hint: int = int16("1+", ignorable=True)
    inners: list[Inner] = array(Inner)
    inner: Inner = struct(Inner, "1+")
    ids: list[int] | None = array(int64, nullable="2+")
    ready: bool = bool_("3+", tag=1)
    topic_id: UUID = uuid("3+", tag=0)
    note: Note | None = struct(Note, "3+", tag=4)


def test_defaults_are_fresh_in_every_object() -> None:
    first, second = Sample(), Sample()
    first.inners.append(Inner())
    first.inner.size = 5
    assert second.inners == []
    assert second.inner == Inner()


def test_objects_are_slotted_comparable_and_readable() -> None:
    assert Inner(size=1) == Inner(size=1, name="")
    assert Inner(size=1) != Inner(size=2)
    assert repr(Inner(size=1, name="x")) == "Inner(size=1, name='x')"
    with pytest.raises(AttributeError):
        Inner().sise = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Inner(sise=3)  # type: ignore[call-arg]


def test_old_version_bytes() -> None:
    assert Sample(name="ab", inners=[Inner(size=1)], ids=[7]).encode(0) == (
        b"\x00\x02ab"
        b"\x00\x00\x00\x01" + b"\x00\x00\x00\x01" + b"\x00\x00"
        b"\x00\x00\x00\x01" + b"\x00\x00\x00\x00\x00\x00\x00\x07"
    )


def test_flexible_version_bytes_with_tags_in_order() -> None:
    sample = Sample(name="ab", hint=2, ready=True, topic_id=TOPIC_ID, note=Note(text="x"))
    assert sample.encode(3) == (
        b"\x03ab" + b"\x00" + b"\xff\xff\xff\xff" + b"\x00\x02" + b"\x01"
        b"\x00\x00\x00\x00\x01\x00"
        b"\x01"
        b"\x03" + b"\x00\x10" + TOPIC_ID.bytes + b"\x01\x01\x01" + b"\x04\x03\x02x\x00"
    )


@pytest.mark.parametrize("version", range(4))
def test_fields_that_a_version_lacks_have_their_defaults_after_reading(version: int) -> None:
    encoded = Sample(name="n", ids=[1, 2]).encode(version)
    assert Sample.decode(memoryview(encoded), 0, version) == (Sample(name="n", ids=[1, 2]), len(encoded))


def test_a_field_that_the_version_lacks_must_have_its_default_or_be_ignorable() -> None:
    assert Sample(hint=9).encode(0) == Sample().encode(0)
    with pytest.raises(EncodeError, match=r"Sample\.epoch does not exist in Sample v0"):
        Sample(epoch=3).encode(0)
    with pytest.raises(EncodeError, match=r"Sample\.inner does not exist"):
        Sample(inner=Inner(size=1)).encode(0)


@pytest.mark.parametrize(
    "sample",
    [
        Sample(ids=None),
        Sample(name=None),  # type: ignore[arg-type]
        Sample(inners=[None]),  # type: ignore[list-item]
        Sample(ids=[2**63]),
        Sample(name="x" * 40_000),
        Sample(name="\ud800"),
    ],
)
def test_values_that_do_not_fit_are_refused(sample: Sample) -> None:
    with pytest.raises(EncodeError):
        sample.encode(1)


def test_compact_strings_have_the_same_limit() -> None:
    with pytest.raises(EncodeError, match="too long"):
        Sample(name="x" * 40_000).encode(2)


def test_long_strings_and_arrays() -> None:
    sample = Sample(name="x" * 30_000, inners=[Inner(size=i) for i in range(20_000)], ids=list(range(300)))
    for version in range(4):
        encoded = sample.encode(version)
        assert Sample.decode(memoryview(encoded), 0, version) == (sample, len(encoded))


def test_unknown_tags_are_skipped() -> None:
    encoded = bytearray(Sample(ready=True).encode(3))
    assert encoded.endswith(b"\x01\x01\x01\x01")
    encoded[-4:] = b"\x03" + b"\x01\x01\x01" + b"\x63\x02??" + b"\xe4\x07\x00"
    assert Sample.decode(memoryview(encoded), 0, 3) == (Sample(ready=True), len(encoded))


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="Sample has no version 4"):
        Sample().encode(4)


def test_a_response_leaves_out_what_a_version_has_no_field_for() -> None:
    class Told(Response, versions="0-1", flexible="9+"):
        always: int = int32()
        newer: int = int32("1+")

    assert Told(always=1, newer=2).encode(0) == bytes([0, 0, 0, 1])
    assert Told(always=1, newer=2).encode(1) == bytes([0, 0, 0, 1, 0, 0, 0, 2])
