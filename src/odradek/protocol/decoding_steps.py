"""The budget of a decoder: how many steps a message may take, and how many each part of a declaration takes.

A frame is a few bytes per element on the wire and far more in the broker, so its size says little about its cost. Every
element of an array and every tagged field is therefore paid for, by the count that the frame claims, before it is read;
a message whose steps are used up is refused (`OverBudget`). Arrays, tagged fields, and both nested in each other draw
on the same budget.

One step is at most 20 ns of CPU (on the machine of docs/internals/codec.md) and 16 bytes of memory: a field of fixed
size among others. The other parts are measured in it; `tests/wire/test_costliest_frames.py` measures again.
"""

from typing import Any, Final

from odradek.protocol.fields import FIXED_FORMATS, FRESH, Field, Kind
from odradek.protocol.primitives import TAGGED_SECTION_STEPS, UNKNOWN_TAG_STEPS
from odradek.protocol.source_writer import SourceWriter

STEPS_MAX: Final = 24_000_000
"""Budget of one request. For 200,000 partitions of three replicas LeaderAndIsr takes 23 million, UpdateMetadata 20
million."""
RESPONSE_STEPS_MAX: Final = 5 * STEPS_MAX
"""Budget of an answer, for which this process has asked: the configs of a thousand topics take more than any
request."""
HEADER_STEPS_MAX: Final = 100 * UNKNOWN_TAG_STEPS + TAGGED_SECTION_STEPS
"""Budget of the tagged fields of a header, of which Kafka has none so far. A header is read by the thread that
received it."""

SHORT_ARRAY_STEPS: Final = 8
SHORT_ARRAY_VALUE_STEPS: Final = 3
LONG_ARRAY_STEPS: Final = 75
LONG_ARRAY_VALUE_STEPS: Final = 8
"""Cost of an array of values of fixed size, and of each value. A long array may need a Struct of its own; its values,
which are quickly read, charge for their memory."""

ELEMENT_STEPS: Final = 20
"""Cost of an element of an array beside its content, for its later processing."""
_OBJECT_STEPS: Final = 7
_RUN_STEPS: Final = 3
_VARIABLE_STEPS: Final[dict[Kind, int]] = {"string": 14, "bytes": 14, "records": 12, "uuid": 70}
_EMPTY_ARRAY_STEPS: Final = 12
_EMPTY_FIXED_ARRAY_STEPS: Final = 6
_NO_TAGGED_FIELDS_STEPS: Final = 2
_ABSENT_PER_STEP: Final = 3


def element_steps(writer: SourceWriter, field: Field) -> int:
    """Cost of one element that is not of fixed size, with all that is in it but for the elements of its arrays and its
    tagged fields, which are paid for when their own count is read."""
    if field.element == "struct":
        return ELEMENT_STEPS + _struct_steps(writer, field.struct)
    assert field.element is not None
    return ELEMENT_STEPS + _VARIABLE_STEPS[field.element]


def tag_steps(writer: SourceWriter, struct: Any) -> int:
    """Cost of one tagged field of the struct, whichever it is."""
    known = (_field_steps(writer, field) for _, field in writer.tagged(struct))
    return UNKNOWN_TAG_STEPS + max(known, default=0)


def _struct_steps(writer: SourceWriter, struct: Any) -> int:
    total = _OBJECT_STEPS + (_NO_TAGGED_FIELDS_STEPS if writer.flexible else 0)
    in_run = False
    for _, field in writer.present(struct):
        is_fixed = field.kind in FIXED_FORMATS or field.kind == "uuid"
        total += _field_steps(writer, field) + (_RUN_STEPS if is_fixed and not in_run else 0)
        in_run = is_fixed
    unset = writer.absent(struct) + writer.tagged(struct)
    return total + -(-len(unset) // _ABSENT_PER_STEP) + sum(_default_steps(field) for _, field in unset)


def _field_steps(writer: SourceWriter, field: Field) -> int:
    if field.kind in FIXED_FORMATS:
        return 1
    if field.kind == "array":
        return _EMPTY_FIXED_ARRAY_STEPS if field.element in FIXED_FORMATS else _EMPTY_ARRAY_STEPS
    if field.kind == "struct":
        return _struct_steps(writer, field.struct)
    return _VARIABLE_STEPS[field.kind] + field.steps


def _default_steps(field: Field) -> int:
    if field.default is not FRESH:
        return 0
    return 2 if field.kind == "array" else 2 * _OBJECT_STEPS + len(field.struct.FIELDS)
