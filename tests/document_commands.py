"""Commands in README and docs: found in the pages, and made into a script that a test can run.

Commands stand in blocks fenced as `sh`, or in indented blocks. Comments before a block say more:

    <!-- not run: REASON -->     only its grammar is checked
    <!-- needs: PROGRAM -->      not run where the program is absent
    <!-- first: COMMANDS -->     commands that readers have behind them: run here, not shown

A line whose comment says `Ctrl-C ends it` is interrupted after a while.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COMMENT = re.compile(r"<!-- (not run|needs|first):\s(.*?)-->", re.DOTALL)
_PROGRAMS = ("odradek ", "kafka-", "kcat ", "seq ", "printf ", "echo ", "curl ", "source ", "export ")
_OURS = re.compile(r"(?:^|[|;&(]\s*)(odradek (?:[^|;&()#'\"\n]|'[^'\n]*'|\"[^\"\n]*\")+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    line: int
    text: str
    not_run: str = ""
    needs: str = ""
    first: str = ""


def pages() -> list[Path]:
    """Pages for users: decisions and internals tell of the past and of the source."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if blocks_of(page)]


def blocks_of(page: Path) -> list[Block]:
    return list(_blocks(page.read_text()))


def _blocks(text: str) -> Iterator[Block]:
    remarks: dict[str, str] = {}
    pattern = rf"{_COMMENT.pattern}|^```(\w*)\n(.*?)^```$|((?:^(?:    [^\n]*)?\n)*^    [^\n]+\n)"
    for found in re.finditer(pattern, text, re.DOTALL | re.MULTILINE):
        kind, remark, language, fenced, indented = found.groups()
        if kind:
            remarks[kind.replace(" ", "_")] = remark.strip()
            continue
        code = fenced if language == "sh" else _unindented(indented or "")
        if code:
            yield Block(text.count("\n", 0, found.start()) + 1, code, **remarks)
        remarks = {}


def _unindented(code: str) -> str:
    lines = [line[4:] for line in code.splitlines() if line.strip()]
    return "\n".join(lines) + "\n" if lines and any(line.startswith(_PROGRAMS) for line in lines) else ""


def words_of_ours(block: Block) -> Iterator[list[str]]:
    """Each command of `odradek` in a block, as words, without the program's name and without redirections."""
    for command in _OURS.findall(block.text.replace("\\\n", " ")):
        words = shlex.split(command)
        end = next((at for at, word in enumerate(words) if word.startswith(("<", ">", "2>"))), len(words))
        yield words[1:end]


def inline_commands(page: Path) -> Iterator[list[str]]:
    """Each `odradek …` inside a sentence, each `$ odradek …` of a transcript: parts of commands, with placeholders."""
    text = page.read_text()
    for command in re.findall(r"`odradek ([^`\n]+)`|^ +\$ odradek (.*)$", text, re.MULTILINE):
        words = shlex.split("".join(command).split("\\|")[0].split(" | ")[0])
        yield [word for word in words if word != "…"]


def as_script(block: Block, first_port: int) -> str:
    """The block as bash, with 9092 and its neighbours moved to free ports, and every host to this one."""
    text = re.sub(r"[\w.-]+:(9[0-9]9\d)\b", r"127.0.0.1:\1", f"{block.first}\n{block.text}")
    text = re.sub(r"\b9[0-9]9\d\b", lambda port: str(first_port + int(port[0]) - 9092), text)
    return "\n".join(map(_interrupted, text.splitlines())) + "\n"


def _interrupted(line: str) -> str:
    command, ends, _ = line.partition("# Ctrl-C ends it")
    return f"interrupted {command}" if ends else line
