import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.markup import link, tag, together

HOSTILE = "\"'><script>alert(1)</script>&"


def test_text_and_attributes_are_escaped_and_html_is_not_escaped_twice() -> None:
    html = tag("a", HOSTILE, tag("b", HOSTILE), href=HOSTILE, data_act="x")
    assert html.count("<") == 4
    assert "data-act" in html
    assert "&amp;lt;" not in html
    assert html.unescape().count(HOSTILE) == 3


def test_lists_are_gone_into_and_nothing_is_nothing() -> None:
    assert together("a", None, ["<", (tag("br"), 7)]) == "a&lt;<br/>7"
    assert tag("button", "x", disabled=True, title=None, hidden=False) == "<button disabled>x</button>"


def test_links_quote_every_part() -> None:
    assert link("topics", "../../x?y#z") == "/topics/..%2F..%2Fx%3Fy%23z"
    assert link("messages", topic='a"b', partition=None) == "/messages?topic=a%22b"
