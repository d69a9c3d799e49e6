import pytest

from odradek.base.errors import KafkaError
from odradek.client.bootstrap import parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("h:1", [("h", 1)]),
        ("h", [("h", 9092)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_bootstrap_lists(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", "h:", "h:x", ":1", "h:0", "h:70000", "a:1,,b:2"])
def test_what_is_no_bootstrap_list(text: str) -> None:
    with pytest.raises(KafkaError, match="is not HOST:PORT"):
        parse_bootstrap(text)
