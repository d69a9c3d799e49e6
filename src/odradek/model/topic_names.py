"""Rules for topic names. Names become directories and metric labels, so the alphabet is small."""

import re

from odradek.base.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


def is_internal(name: str) -> bool:
    return name in INTERNAL


def check_topic_name(name: str) -> None:
    """KafkaError INVALID_TOPIC_EXCEPTION with the reason, unless the name is fine."""
    if why := name_fault(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def name_fault(name: str) -> str | None:
    """Return the reason why no topic can have this name; None for a valid name."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name[:20]}…' is longer than the max allowed length {MAX_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def collides(name: str, other: str) -> bool:
    """Metric names turn '.' into '_', so two topics that differ only there would be taken for one."""
    return name != other and name.replace(".", "_") == other.replace(".", "_")
