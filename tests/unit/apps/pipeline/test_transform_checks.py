"""Faults of Python transforms that their text shows."""

import pytest

from odradek.apps.pipeline.transform_checks import function_fault

KNOWN = ("orders", "categories")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("def sums(orders, spark):\n    return orders\n", None),
        (
            "x = 1\n\ndef sums(order):\n    return order\n",
            ", line 3: sums wants 'order'; declared before it are: orders",
        ),
        ("def sum(orders):\n    return orders\n", " has no function sums"),
        ("from elsewhere import sums\n", None),
        ("import elsewhere as sums\n", None),
        ("from elsewhere import *\n", None),
        ("sums = make_sums()\n", None),
        ("if True:\n    def sums(orders):\n        return orders\n", None),
        ("def sums(orders:\n", ", line 1: '(' was never closed"),
    ],
)
def test_the_text_tells(text: str, fault: str | None) -> None:
    found = function_fault(text, "sums", KNOWN)
    assert found is None if fault is None else (found or "").startswith(fault)
