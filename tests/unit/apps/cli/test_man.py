"""Manual pages: all of them, valid roff."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from odradek.apps.cli import main
from odradek.apps.cli.manual_pages import EXIT_CODES, manual_pages

PAGES = manual_pages()
MACROS = {".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".br", ".nf", ".fi", '.\\"'}


def test_each_command_has_a_page() -> None:
    assert set(PAGES) == {"odradek", *(f"odradek-{name}" for name in main.COMMANDS)}
    assert "\\-\\-replication\\-factor" in PAGES["odradek-topics"]
    assert all(f'.B "{code}"' in text for text in PAGES.values() for code in EXIT_CODES)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_nothing_is_read_as_a_command_that_is_not_one(name: str) -> None:
    text = PAGES[name]
    assert text.isascii()
    for line in text.splitlines():
        if line.startswith("."):
            assert line.split(" ", 1)[0] in MACROS, line
        assert not line.startswith("'"), line
        escapes = re.findall(r"\\(.)", line)
        assert set(escapes) <= set('e-([&"'), line


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff on this machine")
def test_groff_takes_them() -> None:
    for text in PAGES.values():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"], input=text.encode(), capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_pages_are_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["man", "--write", str(tmp_path / "man1")]) == 0
    assert len(list((tmp_path / "man1").glob("*.1"))) == len(PAGES)
    capsys.readouterr()
    assert main.run(["man", "consume"]) == 0
    assert capsys.readouterr().out == PAGES["odradek-consume"]
    assert main.run(["man", "nosuch"]) == 2
