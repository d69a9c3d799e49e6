"""Types, bounds and texts of single keys."""

import pytest

from odradek.base.config.constraints import is_version
from odradek.base.config.definition import ConfigKey, ConfigType, ConfigValue, Password, format_value, read_table
from odradek.base.errors import ConfigError


def key(type_: str, constraint: str = "-", default: str = "-") -> ConfigKey:
    return read_table(f"some.key {type_} {default} {constraint} low read-only obeyed")["some.key"]


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("boolean", " TRUE ", True),
        ("boolean", "False", False),
        ("int", " +7 ", 7),
        ("int", "-2147483648", -(2**31)),
        ("short", "32767", 32767),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "1e8", 1e8),
        ("double", ".5f", 0.5),
        ("double", "Infinity", float("inf")),
        ("list", "a , b,,c", ("a", "b", "", "c")),
        ("list", "  ", ()),
        ("string", "  x y  ", "x y"),
        ("class", "java.lang.String", "java.lang.String"),
        ("password", " s ", Password("s")),
    ],
)
def test_parses_as_kafka_does(type_: str, text: str, expected: ConfigValue) -> None:
    assert key(type_).parse(text) == expected


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("boolean", "yes"),
        ("boolean", ""),
        ("int", "2147483648"),
        ("int", "1_000"),
        ("int", "0x10"),
        ("int", "1.0"),
        ("int", "٣"),
        ("int", "9" * 10_000),
        ("short", "32768"),
        ("long", "9223372036854775808"),
        ("double", "1_0"),
        ("double", "inf"),
        ("double", ""),
    ],
)
def test_refuses_what_kafka_refuses(type_: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"some\.key"):
        key(type_).parse(text)


@pytest.mark.parametrize(
    ("type_", "constraint", "good", "bad"),
    [
        ("int", ">=1", ["1", "99"], ["0", "-1"]),
        ("int", ">=-2", ["-2"], ["-3"]),
        ("int", "1..9|-1", ["1", "9", "-1"], ["0", "10", "-2"]),
        ("int", "-131072..22", ["-131072", "22"], ["23", "-131073"]),
        ("double", "0..0.5", ["0", "0.5"], ["0.51", "-0.1", "NaN"]),
        ("string", "a|b", ["a", "b"], ["A", "c", "", "a|b"]),
        ("list", "a|b", ["a,b", ""], ["a,c"]),
        ("string", "non-empty", ["x"], [""]),
        ("string", "version", ["3.9", "3.9-IV0", "3.9.1", "0.10.2", "0.10.2-IV0"], ["9", "3.9-IV1", "3", "0.10", "x"]),
        ("list", "throttled-replicas", ["*", "0:1,2:3", ""], ["a:1", "0", "*,0:1"]),
    ],
)
def test_bounds(type_: str, constraint: str, good: list[str], bad: list[str]) -> None:
    bounded = key(type_, constraint)
    for text in good:
        bounded.parse(text)
    for text in bad:
        with pytest.raises(ConfigError, match=r"for configuration some\.key"):
            bounded.parse(text)


def test_the_message_names_value_and_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value 0 for configuration some\.key: the value must be at least 1"):
        key("int", ">=1").parse("0")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (("a", "b"), "a,b"),
        (5, "5"),
        (0.5, "0.5"),
        (1e8, "1.0E8"),
        (12345678.9, "1.23456789E7"),
        (0.0001, "1.0E-4"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (-0.5, "-0.5"),
        (0.0, "0.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (Password("secret"), "[hidden]"),
    ],
)
def test_texts_are_java_s(value: ConfigValue, text: str | None) -> None:
    assert format_value(value) == text


def test_a_table_line_may_go_on() -> None:
    keys = read_table('\na.key int\n    5 >=1 high per-broker obeyed\nb.key string "" - low read-only obeyed\n')
    assert keys["a.key"].default == 5
    assert keys["a.key"].type is ConfigType.INT
    assert keys["b.key"].default == ""


def test_versions_that_the_first_releases_had_no_increment_of() -> None:
    assert is_version("0.9.0")
    assert not is_version("0.9.0-IV0")
