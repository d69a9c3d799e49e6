"""Manual pages in roff (man macros), one for `odradek` and one for each command, from the grammar."""

from collections.abc import Iterator, Sequence

from odradek import __version__
from odradek.apps.cli.catalogue import CommandEntry, CommandPage, command_pages
from odradek.apps.cli.default_cluster import BOOTSTRAP_VARIABLE, PROFILE_VARIABLE
from odradek.apps.cli.grammar.help_page import option_text, spelling, usage_line
from odradek.apps.cli.kafka.tool import TOOLS
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE

EXIT_CODES = {
    0: "Done.",
    1: "Failed, in part or whole; one line on standard error says why. Also a check that found a problem "
    "(cluster --check, reassign verify, dump-log, audit).",
    2: "The command line is not valid; nothing was done.",
    130: "Interrupted by Ctrl-C. consume, up and pipeline run, which are meant to end so, end with 0.",
    141: "The reader of the output has closed it, as in `odradek consume orders | head`.",
}
_ENVIRONMENT = {
    BOOTSTRAP_VARIABLE: "Brokers to ask first, HOST:PORT,…",
    PROFILE_VARIABLE: "The profile whose cluster is asked; see odradek-profile(1).",
    COMMAND_CONFIG_VARIABLE: "A file with properties of the client: security.protocol, sasl.…, ssl.…",
    "ODRADEK_COORDINATOR": "The coordination server of a new cluster of `odradek up`: apache or embedded.",
    "ODRADEK_DEBUG": "Show where an error came from.",
    "NO_COLOR": "No colours.",
}
_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def manual_pages() -> dict[str, str]:
    """Return the text of each page, by its name."""
    pages = list(command_pages())
    found = {"odradek": _text(_overview(pages))}
    for page in pages:
        found[f"odradek-{page.name}"] = _text(_page(page))
    return found


def _overview(pages: Sequence[CommandPage]) -> Iterator[str]:
    yield from _head("odradek", "a distributed commit log that speaks Apache Kafka's protocol")
    yield from (".SH SYNOPSIS", ".B odradek", _escaped("COMMAND [OPTIONS]"))
    yield from (".SH DESCRIPTION", _escaped("Brokers, a cluster on this machine, and the commands to run any cluster."))
    yield ".SH COMMANDS"
    for page in pages:
        yield from _item(f"odradek {page.name}", f"{_sentence(page.help)} See odradek-{page.name}(1).")
    tools = ", ".join(TOOLS)
    yield from _item("odradek kafka-…", f"The command lines and the output of Kafka's own tools: {tools}.")
    yield ".SH ENVIRONMENT"
    for name, meaning in _ENVIRONMENT.items():
        yield from _item(name, meaning)
    yield from _exit_status()


def _page(page: CommandPage) -> Iterator[str]:
    name = f"odradek {page.name}"
    yield from _head(f"odradek-{page.name}", page.help)
    yield ".SH SYNOPSIS"
    for number, entry in enumerate(page.entries):
        yield from ([".br"] if number else [])
        yield _escaped(usage_line(" ".join(("odradek", *entry.words)), entry.parameters))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(page.purpose or _sentence(page.help))
    if len(page.entries) == 1 and page.entries[0].words == (page.name,):
        yield from _options(page.entries[0], ".SH OPTIONS")
    else:
        yield ".SH VERBS"
        for entry in page.entries:
            yield f".SS {_quoted(' '.join(('odradek', *entry.words)))}"
            yield from _paragraphs(entry.command.purpose if entry.command else entry.help)
            yield from _options(entry, "")
    examples = [*page.examples, *(line for entry in page.entries if entry.command for line in entry.command.examples)]
    if examples:
        yield from (".SH EXAMPLES", ".nf", *map(_escaped, dict.fromkeys(examples)), ".fi")
    yield from _exit_status()
    yield from (".SH SEE ALSO", _escaped("odradek(1)" if name != "odradek profile" else "odradek(1), odradek-up(1)"))


def _head(name: str, purpose: str) -> Iterator[str]:
    yield f".TH {_quoted(name.upper())} 1 {_quoted('')} {_quoted(f'odradek {__version__}')} {_quoted('Odradek')}"
    yield from (".SH NAME", f"{_escaped(name)} \\- {_escaped(purpose)}")


def _options(entry: CommandEntry, heading: str) -> Iterator[str]:
    if entry.parameters:
        yield from ([heading] if heading else [])
        for parameter in entry.parameters:
            yield from _item(spelling(parameter), option_text(parameter))


def _exit_status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield from _item(str(code), meaning)


def _item(term: str, meaning: str) -> Iterator[str]:
    yield from (".TP", f".B {_quoted(term)}", _escaped(meaning) or "\\&")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        yield from ([".PP"] if number else [])
        yield _escaped(" ".join(paragraph.split()))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _text(lines: Iterator[str]) -> str:
    return "\n".join(['.\\" Made from the grammar of the commands by `odradek man`.', *lines]) + "\n"


def _quoted(text: str) -> str:
    """Argument of a macro."""
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'


def _escaped(text: str) -> str:
    """Escape text for roff: its commands and special characters, and characters outside ASCII."""
    escaped = "".join(_ESCAPES.get(char) or (char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text)
    return f"\\&{escaped}" if escaped[:1] == "." else escaped
