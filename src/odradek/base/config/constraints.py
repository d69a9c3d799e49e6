"""Constraints of configuration values, in the notation of the key tables.

    -                  anything of the type
    >=1                at least
    1..9               between, both ends included
    1..9|-1            between, or exactly that one
    a|b|c              one of; for a list: each element one of
    non-empty          a string that is not empty
    version            a Kafka release: 3.9, 3.9-IV0, 0.10.2 …
    throttled-replicas * or partition:broker,partition:broker…

Only values that a user set are checked; tests check the defaults.
"""

import re

from odradek.base.errors import ConfigError

_RANGE = r"(-?[0-9.]+?)\.\.(-?[0-9.]+)(?:\|(-?[0-9]+))?"
_REPLICA = r"(?:[0-9]+:[0-9]+)?"

# Number of increments (IV0, IV1 …) of each release of Kafka; the first four have none.
_RELEASES = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3,
    "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2,
    "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1, "4.0": 2,
}  # fmt: skip


def check(name: str, value: object, constraint: str) -> None:
    """Raise ConfigError with key and value if the value violates the constraint."""
    if constraint == "-" or (problem := _problem(value, constraint)) is None:
        return
    raise ConfigError(f"Invalid value {_shown(value)} for configuration {name}: {problem}")


def _shown(value: object) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def _problem(value: object, constraint: str) -> str | None:
    if constraint == "non-empty":
        return None if value else "the text must not be empty"
    if constraint == "version":
        return None if is_version(str(value)) else f"{value} is not a known Kafka version"
    if constraint == "throttled-replicas":
        return _throttled_replicas_problem(value)
    if isinstance(value, int | float):
        return _number_problem(value, constraint)
    allowed = constraint.split("|")
    for text in value if isinstance(value, tuple) else (value,):
        if text not in allowed:
            return f"{text!r} is not one of {', '.join(allowed)}"
    return None


def _number_problem(value: float, constraint: str) -> str | None:
    if constraint.startswith(">="):
        return None if value >= int(constraint[2:]) else f"the value must be at least {constraint[2:]}"
    found = re.fullmatch(_RANGE, constraint)
    assert found, f"not a constraint for a number: {constraint}"
    low, high, also = found.groups()
    if float(low) <= value <= float(high) or (also is not None and value == int(also)):
        return None
    return f"the value must be between {low} and {high}" + (f", or {also}" if also is not None else "")


def _throttled_replicas_problem(value: object) -> str | None:
    assert isinstance(value, tuple)
    if "".join(value) == "*" or all(re.fullmatch(_REPLICA, replica) for replica in value):
        return None
    return "expected * or a list of partition:broker pairs"


def is_version(text: str) -> bool:
    """A release, with or without its increment; a patch number after the release is ignored, as Kafka does."""
    segments = text.split(".")
    kept = ".".join(segments[: 3 if text.startswith("0.") else 2])
    release, _, increment = kept.partition("-IV")
    count = _RELEASES.get(release)
    if count is None:
        return False
    return "-" not in kept or (increment.isdecimal() and int(increment) < count and str(int(increment)) == increment)


def release_of(version: str) -> tuple[int, int]:
    """Major and minor number of a known version: (3, 9) of 3.9-IV0."""
    major, minor = version.partition("-")[0].split(".")[:2]
    return int(major), int(minor)
