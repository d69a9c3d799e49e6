import pytest

from odradek.apps.cli.name_values import parse_name_value_pairs


def test_name_value_pairs() -> None:
    assert parse_name_value_pairs(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(ValueError, match="'plain' is not of the form NAME=VALUE"):
        parse_name_value_pairs(["plain"])
