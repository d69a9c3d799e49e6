import pytest

from odradek.client.config_admin import parse_changes


def test_brackets_hold_values_with_commas() -> None:
    assert parse_changes("a=1,b=[x,y], c = z ,d=,e=[p=q]") == {"a": "1", "b": "x,y", "c": "z", "d": "", "e": "p=q"}


@pytest.mark.parametrize("text", ["a", "a=1=2", "a b=1", "=1"])
def test_what_is_no_setting(text: str) -> None:
    with pytest.raises(ValueError):
        parse_changes(text)
