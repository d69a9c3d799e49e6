"""Limits of quotas, each with its unit."""

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.views.quotas import quota_fault, quota_text


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("producer_byte_rate", 1 << 20, "1.0 MB/s"),
        ("request_percentage", 50.0, "50 %"),
        ("controller_mutation_rate", 2.5, "2.5/s"),
        ("connection_creation_rate", 10.0, "10/s"),
    ],
)
def test_a_limit_has_its_unit(key: str, value: float, shown: str) -> None:
    assert quota_text(key, value) == shown


def test_a_limit_is_a_number_above_zero() -> None:
    assert quota_fault("1.5") is None
    assert quota_fault("0") == "more than 0"
    assert quota_fault("much") is not None
