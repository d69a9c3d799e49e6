"""Values of input fields: parsed, with faults shown at the field."""

from collections.abc import Callable
from typing import TypeVar

from nicegui import ui

T = TypeVar("T")


class WrongInput(Exception):
    """The value is invalid, and the fault is shown at the field already."""


def meaning(field: ui.input | ui.textarea, parse: Callable[[str], T]) -> T:
    """Parse the text of a field, without blanks around it; the message of a ValueError appears below the field."""
    try:
        value = parse((field.value or "").strip())
    except ValueError as error:
        field.error = str(error)
        raise WrongInput(str(error)) from error
    field.error = None
    return value


def whole_number(what: str) -> Callable[[str], int]:
    """Parser of numbers that are not negative: offsets, partitions, counts."""

    def parse(text: str) -> int:
        if not text.isdecimal():
            raise ValueError(f"'{text}' is not {what}" if text else f"{what} is wanted here")
        return int(text)

    return parse
