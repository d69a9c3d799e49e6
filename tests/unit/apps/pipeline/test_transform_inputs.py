"""Views that a transform reads, by its text."""

from pathlib import Path

from odradek.apps.pipeline.spec import PythonTransform, SqlTransform
from odradek.apps.pipeline.transform_inputs import inputs_of

SQL = SqlTransform("t", Path("t.sql"))
VIEWS = ["orders", "clicks"]


def test_comments_and_texts_name_no_input() -> None:
    assert inputs_of(SQL, "-- from orders\nSELECT 'orders' FROM clicks /* orders */", VIEWS) == ("clicks",)


def test_a_quote_inside_a_text_ends_it_not() -> None:
    assert inputs_of(SQL, r"SELECT 'it\'s' FROM orders WHERE a = 'x'", VIEWS) == ("orders",)


def test_a_hint_names_an_input() -> None:
    assert inputs_of(SQL, "SELECT /*+ BROADCAST(clicks) */ * FROM Orders", VIEWS) == ("orders", "clicks")


def test_a_function_has_its_parameters() -> None:
    function = PythonTransform("t", Path("t.py"), "f")
    assert inputs_of(function, "def g(orders): ...\ndef f(clicks, spark): ...", VIEWS) == ("clicks",)


def test_a_function_that_is_not_found_may_read_all_that_is_named() -> None:
    function = PythonTransform("t", Path("t.py"), "f")
    assert inputs_of(function, "f = lambda orders: orders", VIEWS) == ("orders",)
