"""Rules of the documents: README is short, links lead somewhere, named metrics exist."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from odradek.base.metric_descriptions import descriptions

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "odradek"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
README_LINES_MAX = 120
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_METRIC = re.compile(r"\b(?:kafka|odradek)_[a-z0-9_]+\b")


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|^    .*$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of a page's headings, as the site and code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.M), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return frozenset(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip()) for heading in plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_without_code(page.read_text())):
        address, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", address):
            continue
        target = (page.parent / address).resolve() if address else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@cache
def suffixes() -> frozenset[str]:
    """Paths of the source's files and packages, from any of their parents on, with and without `.py`."""
    found = set()
    for path in SOURCE.rglob("*"):
        if "__pycache__" not in path.parts:
            parts = path.relative_to(SOURCE).parts
            found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return frozenset(found | {name.removesuffix(".py") for name in found})


@cache
def names_in_tests() -> frozenset[str]:
    files = [path for path in (ROOT / "tests").rglob("*.py") if "__pycache__" not in path.parts]
    functions = (name for path in files for name in re.findall(r"def (test_\w+)", path.read_text()))
    return frozenset((*functions, *(path.stem for path in files)))


def _spans(page: Path) -> list[str]:
    """Code within sentences, word by word."""
    return [word for span in re.findall(r"`([^`\n]+)`", page.read_text()) for word in span.split()]


def test_pages_name_files_that_there_are() -> None:
    """A name in a page is that of a file, wherever it lies; `NAME.py` stands for any."""
    folders = ("src", "tests", "tools", "examples", "deploy")
    there = {path.name for folder in folders for path in (ROOT / folder).rglob("*.py")} | {"NAME.py"}
    named = {(page.name, name) for page in PAGES for name in re.findall(r"`[\w/]*?(\w+\.py)`", page.read_text())}
    assert {(page, name) for page, name in named if name not in there} == set()


def test_pages_name_paths_that_there_are() -> None:
    """From the repository's root on, or from a package on: `broker/log/core`, `log/core`, `core/election.py`."""
    folders = "src|tests|tools|docs|deploy"
    lacking = set()
    for page in PAGES:
        for path in re.findall(rf"(?<![\w/.-])(?:{folders})/[\w./*-]+", page.read_text()):
            if not any(ROOT.glob(path.rstrip("."))):
                lacking.add((page.name, path))
        for word in _spans(page):
            path = word.strip(",:").rstrip("/")
            inner = re.fullmatch(r"([a-z_]+)/[a-z0-9_/]+(?:\.py)?", path)
            if inner and inner[1] in suffixes() and path not in suffixes() and not (ROOT / path).exists():
                lacking.add((page.name, path))
    assert lacking == set()


def test_pages_name_modules_that_there_are() -> None:
    packages = "|".join(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
    for page in PAGES:
        for name in re.findall(rf"\bodradek\.((?:{packages})(?:\.\w+)+)", page.read_text()):
            path = name.replace(".", "/")
            assert {path, path.rpartition("/")[0]} & suffixes(), f"{page.name}: odradek.{name}"


def test_pages_name_functions_that_there_are() -> None:
    """A function or class in brackets behind its file: `core/rebalance.py` (`expire`)."""
    for page in PAGES:
        for path, name in re.findall(r"`([\w/]+\.py)`\s\(`(\w+)`\)", page.read_text()):
            files = [file for file in SOURCE.rglob(Path(path).name) if str(file).endswith(f"/{path}")]
            defined = re.compile(rf"^\s*(?:def|class) {name}\b", re.MULTILINE)
            assert any(defined.search(file.read_text()) for file in files), f"{page.name}: {name} in {path}"


def test_pages_name_tests_that_there_are() -> None:
    """`test_kip_279_…` stands for all that begin so, `…_9666` for all that end so. docs/clients.md names tests of
    clients."""
    for page in (page for page in PAGES if page.name != "clients.md"):
        for name, more in re.findall(r"`(?:[\w/]*/)?(test_\w+)(?:\.py)?(…?)`", page.read_text()):
            there = any(test.startswith(name) for test in names_in_tests()) if more else name in names_in_tests()
            assert there, f"{page.name}: {name}"
        for end in re.findall(r"`…(\w+_\d+)`", page.read_text()):
            assert any(test.endswith(end) for test in names_in_tests()), f"{page.name}: {end}"


def test_the_index_of_decisions_is_complete() -> None:
    """Each decision has a row with its title and a summary. Numbers are consecutive, or the page says why not."""
    decisions = ROOT / "docs" / "decisions"
    index = (decisions / "README.md").read_text()
    files = sorted(path for path in decisions.glob("*.md") if path.name != "README.md")
    headings = [re.fullmatch(r"# (\d{4}): (.+)", path.read_text().splitlines()[0]) for path in files]
    expected = [(match[1], match[2], path.name) for match, path in zip(headings, files, strict=True) if match]
    assert re.findall(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \| .+ \|$", index, re.MULTILINE) == expected
    assert [path.name for path in files if path.name[:4] not in dict(row[:2] for row in expected)] == []
    unused = set(re.findall(r"number (\d{4}) was not used", index))
    numbers = [number for number, _, _ in expected]
    assert sorted({*numbers, *unused}) == [f"{number:04}" for number in range(1, int(numbers[-1]) + 1)]
    assert len(numbers) == len(set(numbers))


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < README_LINES_MAX


def test_ratios_of_the_readme_are_those_of_the_benchmarks() -> None:
    text = re.sub(r"<!-- bench: begin.*?bench: end -->", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    measured = set(re.findall(r"\b\d\.\d\d\b", (ROOT / "docs" / "benchmarks.md").read_text()))
    assert set(re.findall(r"\b\d\.\d\d\b", text)) - measured == set()


def test_alerts_and_board_name_metrics_that_there_are() -> None:
    board = (ROOT / "deploy" / "grafana-board.json").read_text()
    assert len(json.loads(board)["panels"]) > 10
    named = set(_METRIC.findall(board + (ROOT / "deploy" / "prometheus-alerts.yml").read_text()))
    assert named
    assert named - set(descriptions()) == set()


def test_metrics_are_described() -> None:
    """Names in the source are those of described metrics, or the beginnings of such."""
    literal = re.compile(r'"((?:kafka_(?:server|network|log|controller|cluster|coordinator)|odradek)_[a-z_]+)"')
    packages = [ROOT / "src" / "odradek" / package for package in ("base", "broker", "apps/pipeline")]
    named = {
        name for package in packages for path in package.rglob("*.py") for name in literal.findall(path.read_text())
    }
    known = descriptions()
    lacking = {name for name in named if not any(described.startswith(name) for described in known)}
    assert lacking == set(), "describe them in base/metric_descriptions.py"
