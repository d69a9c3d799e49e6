"""DER (X.690), as far as names of certificates and keys in old key stores need it. Pure."""

from typing import NamedTuple

SEQUENCE, SET = 0x30, 0x31


class Element(NamedTuple):
    tag: int
    begin: int
    first: int
    """Position of the content."""
    end: int


def element_at(data: bytes, at: int, end: int) -> Element:
    """Return the element that begins there. ValueError unless it ends by `end`."""
    first = at + 2
    if first > end:
        raise ValueError("an element is missing")
    size = data[at + 1]
    if size & 0x80:
        count = size & 0x7F
        if not 0 < count <= 4 or first + count > end:
            raise ValueError("the length of an element is malformed")
        size = int.from_bytes(data[first : first + count], "big")
        first += count
    if size > end - first:
        raise ValueError("an element ends too late")
    return Element(data[at], at, first, first + size)


def elements_of(data: bytes, outer: Element, tag: int | None = None) -> list[Element]:
    """Return the elements inside of another, which must have this tag if one is given."""
    if tag is not None and outer.tag != tag:
        raise ValueError("an element has another type")
    found, at = [], outer.first
    while at < outer.end:
        found.append(element_at(data, at, outer.end))
        at = found[-1].end
    return found
