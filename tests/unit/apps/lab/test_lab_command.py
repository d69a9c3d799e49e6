"""`odradek lab`: what wrong command lines get, and pages that stand alone."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from odradek.apps.cli.main import run
from odradek.apps.html_page import line_plot
from odradek.apps.lab.election.experiment import Election
from odradek.apps.lab.election.report import html_report as election_page
from odradek.apps.lab.election.report import text_report as election_table
from odradek.apps.lab.rebalance.experiment import Outcome
from odradek.apps.lab.rebalance.recorded_events import Phase, Stretch
from odradek.apps.lab.rebalance.report import html_report, text_report
from odradek.model.topology import TopicPartition


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "there is no experiment 'nonsense'"),
        (["rebalance", "--members", "2"], "'2' is not a list of numbers from 3 to 1000"),
        (["rebalance", "--members", "3,x"], "'3,x' is not a list of numbers"),
        (["rebalance", "--designs", "one,four"], "there is no 'four'; there are one, two, three"),
        (["rebalance", "--lag-ms", "-1"], "--lag-ms: -1 is less than 0"),
        (["rebalance", "--out", "/nowhere/at/all.html"], "can't be written"),
        (["election", "--partitions", "0"], "'0' is not a list of numbers from 3 to 10000"),
        (["election", "stray"], "unexpected argument 'stray'"),
        (["bench", "--only", "nonsense"], "no figures nonsense"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["odradek"])
    assert run(["lab", *arguments]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"], ["rebalance", "--help"], ["election", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", *arguments]) == 0
    assert "usage: odradek lab" in capsys.readouterr().out


class Balance(HTMLParser):
    """Fails on a tag that is closed without being open."""

    ALONE = frozenset({"meta", "line", "circle", "rect", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Closed where it stands."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.ALONE:
            assert self.open.pop() == tag


def assert_stands_alone(page: str) -> None:
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page)


def test_the_page_of_rebalances_shows_every_row_and_needs_nothing_else() -> None:
    phases = [Phase("one", 3, "crash", None, notifications=7), Phase("three", 3, "crash", 5.25)]
    stretch = [Stretch(TopicPartition("t", 0), 0, 0.0, 2.0), Stretch(TopicPartition("t", 0), 2, 2.0, 3.0)]
    outcomes = {("one", 3): Outcome(phases[:1], stretch, [(0.0, "<crash>")]), ("three", 3): Outcome(phases[1:], [], [])}
    page = html_report(outcomes, ["Facts & figures."])
    assert_stands_alone(page)
    assert "&lt;crash&gt;" in page
    assert "Facts &amp; figures." in page
    assert "<figcaption>watch notifications</figcaption>" in page
    assert "<figcaption>requests to brokers</figcaption>" not in page, "nobody sent any"
    assert re.search("Nowhere: .*requests to brokers", page)
    table = text_report(phases)
    assert re.search(r"one +crash +3 +never +7 ", table)
    assert re.search(r"three +crash +3 +5.25 +0 ", table)


def test_the_page_of_elections() -> None:
    elections = [Election("naive", 10, 4, 0.5, 8, 12, 8, 0), Election("controller", 10, 4, None, 3, 9, 2, 4)]
    assert_stands_alone(election_page(elections))
    assert re.search(r"naive +10 +4 +0.50 +8 +12 +8 +0", election_table(elections))
    assert re.search(r"controller +10 +4 +never +3 +9 +2 +4", election_table(elections))


def test_a_plot_of_nothing_but_absent_values_is_still_a_plot() -> None:
    assert "<svg" in line_plot("nothing", {"a": [(3, None), (10, None)]}, {"a": "#000"})


def test_the_page_is_not_where_a_directory_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "election", "--out", str(tmp_path)]) == 2
    assert "can't be written" in capsys.readouterr().err
