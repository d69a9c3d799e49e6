"""Definition of a configuration key: type, default, constraint, dynamic update mode, and support.

The tables in `keys/` are written in the notation that `read_table` reads, one line per key:

    name   type   default   constraint   importance   update mode   support

A default of `-` is no value, `""` the empty string; an indented line continues the previous one. The notation of
constraints is in `constraints.py`, that of support in `support.py`. Parsing follows Kafka's rules, so that a
server.properties that Kafka takes is taken here, and the other way round.
"""

import re
from collections.abc import Mapping
from enum import Enum, IntEnum

from odradek.base.config.constraints import check
from odradek.base.config.support import Support, read_support
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass


class ConfigType(IntEnum):
    """Numbers fixed by DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Origin of a value. Names and numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Scope in which Kafka lets the key change while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Password:
    """A secret, which is printed as [hidden]."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


ConfigValue = bool | int | float | str | tuple[str, ...] | Password | None


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: ConfigValue
    constraint: str
    importance: Importance
    update_mode: UpdateMode
    support: Support
    reason: str
    """Reason of support other than OBEYED: a name in `support.REFUSALS` or `support.NO_EFFECTS`."""

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> ConfigValue:
        """Parse the text; ConfigError names the key and the text."""
        value = parse_value(self.name, self.type, text)
        check(self.name, value, self.constraint)
        return value


def parse_value(name: str, type_: ConfigType, text: str) -> ConfigValue:
    trimmed = text.strip()
    match type_:
        case ConfigType.BOOLEAN:
            return _parse_boolean(name, trimmed)
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(name, type_, trimmed)
        case ConfigType.DOUBLE:
            return _parse_double(name, trimmed)
        case ConfigType.LIST:
            return tuple(re.split(r"\s*,\s*", trimmed)) if trimmed else ()
        case ConfigType.PASSWORD:
            return Password(trimmed)
        case _:
            return trimmed


def _parse_boolean(name: str, text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ConfigError(f"Invalid value {text} for configuration {name}: expected true or false")


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# Patterns are compiled when a value is parsed, which at start is seldom: compiling them here would cost milliseconds.
_INTEGER = r"[+-]?[0-9]+"
_DOUBLE = r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"


def _parse_integer(name: str, type_: ConfigType, text: str) -> int:
    bits = _BITS[type_]
    # Longer texts can't be in range, and int() must not be handed a megabyte of digits.
    if len(text) <= 40 and re.fullmatch(_INTEGER, text):
        value = int(text)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise ConfigError(f"Invalid value {text} for configuration {name}: not a number of type {type_.name}")


def _parse_double(name: str, text: str) -> float:
    if found := re.fullmatch(_DOUBLE, text):
        return float(found[1])
    raise ConfigError(f"Invalid value {text} for configuration {name}: not a number of type DOUBLE")


def format_value(value: ConfigValue) -> str | None:
    """The text that Kafka's tools show for a value."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _format_double(value)
        case _:
            return str(value)


def _format_double(value: float) -> str:
    """Text of a double as Java prints it: plain between 0.001 and ten million, otherwise 1.5E10."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    text = next(text for digits in range(17) if float(text := f"{value:.{digits}e}") == value)
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def read_table(*tables: str) -> dict[str, ConfigKey]:
    """The keys of the given tables, by name, in their order."""
    keys: dict[str, ConfigKey] = {}
    for line in "".join(tables).replace("\n ", " ").splitlines():
        if line:
            key = _read_line(line)
            keys[key.name] = key
    return keys


_TYPES: Mapping[str, ConfigType] = {t.name.lower(): t for t in ConfigType}
_IMPORTANCES = {i.value: i for i in Importance}
_MODES = {m.value: m for m in UpdateMode}


def _read_line(line: str) -> ConfigKey:
    name, type_name, default_text, constraint, importance, mode, support = line.split()
    type_ = _TYPES[type_name]
    default = None if default_text == "-" else _read_default(type_, "" if default_text == '""' else default_text)
    return ConfigKey(name, type_, default, constraint, _IMPORTANCES[importance], _MODES[mode], *read_support(support))


def _read_default(type_: ConfigType, text: str) -> ConfigValue:
    """Parse a default without the checks of a user's text: tests cover the tables."""
    match type_:
        case ConfigType.BOOLEAN:
            return text == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return int(text)
        case ConfigType.DOUBLE:
            return float(text)
        case ConfigType.LIST:
            return tuple(text.split(",")) if text else ()
        case _:
            return text
