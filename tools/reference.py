"""Write the reference pages of the site from the code: commands, APIs and versions, metrics, the Python API.

    python tools/reference.py DIRECTORY

The pages are not kept in the repository, so that they can't be out of step; `make site` writes them.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from odradek.apps.cli.catalogue import CommandEntry, command_pages
from odradek.apps.cli.grammar.help_page import option_text, spelling, usage_line
from odradek.apps.cli.kafka.tool import TOOLS
from odradek.base.config.settings_page import markdown_table
from odradek.base.metric_descriptions import descriptions
from odradek.broker.api.registry import HANDLERS, Handler, load_all
from odradek.protocol.api_keys import ApiKey

SOURCE = Path(__file__).parent.parent / "src" / "odradek"
PYTHON_API = {
    "testing.py": "Clusters for tests: the pytest plugin, and a class for every other framework.",
    "containers.py": "The same in a container, for testcontainers.",
    "apps/pipeline/__init__.py": "Spark.",
}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, lines in PAGES.items():
        (directory / name).write_text("\n".join(lines()) + "\n")


def commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "Every command and its options, from the grammar that parses them. [The command line](../cli.md) introduces them.\n"
    for page in command_pages():
        yield f"## odradek {page.name}\n"
        yield f"{_capital(page.help)}.\n"
        for entry in page.entries:
            yield from _command(entry, has_verbs=len(entry.words) > 1)
        if page.examples:
            yield from ("```sh", *page.examples, "```\n")
    yield "## Kafka's own command lines\n"
    yield (
        "With the options and the output of the tools of Kafka 3.9: " + ", ".join(f"`odradek {n}`" for n in TOOLS) + "."
    )


def _command(entry: CommandEntry, *, has_verbs: bool) -> Iterator[str]:
    if has_verbs:
        yield f"### {' '.join(entry.words)}\n"
        yield f"{entry.help}\n"
    if entry.command is None:
        return
    yield f"`{usage_line(' '.join(['odradek', *entry.words]), entry.parameters)}`\n"
    rows = [(f"`{spelling(parameter)}`", option_text(parameter)) for parameter in entry.parameters]
    if rows:
        yield from markdown_table(("option", "meaning"), rows)


def apis() -> Iterator[str]:
    load_all()
    handlers: list[Handler] = [HANDLERS[key] for key in sorted(HANDLERS)]
    absent = [key for key in ApiKey if key not in HANDLERS]
    yield "# APIs and versions\n"
    yield f"The {len(handlers)} requests that a broker answers, from the table that ApiVersions answers from.\n"
    yield from markdown_table(
        ("key", "request", "versions", ""),
        [
            (
                str(int(handler.key)),
                _camel(handler.key.name),
                f"{handler.min_version}–{handler.max_version}",
                _first_sentence((sys.modules[handler.run.__module__].__doc__ or "").partition(": ")[2]),
            )
            for handler in handlers
        ],
    )
    if absent:
        yield "Not answered, as by Kafka 3.9 in ZooKeeper mode: " + ", ".join(_camel(key.name) for key in absent) + "."


def metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield (
        "At `/metrics` of a broker (`odradek.metrics.port`) or of a pipeline (`metrics_port`), under the names that Kafka's JMX exporter"
        " gives them. [Monitoring](../monitoring.md) says which ones to watch.\n"
    )
    rows = [(f"`{name}`", labels.replace(",", ", "), meaning) for name, (labels, meaning) in descriptions().items()]
    yield from markdown_table(("metric", "labels", "meaning"), rows)


def python_api() -> Iterator[str]:
    yield "# Python API\n"
    yield (
        "What other projects may import. Everything else, `odradek.client` included, is internal and changes without notice: use any"
        " Kafka client.\n"
    )
    for path, purpose in PYTHON_API.items():
        file = SOURCE / path
        if not file.exists():
            continue
        module = "odradek." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        tree = ast.parse(file.read_text())
        yield f"## {module}\n"
        yield f"{purpose}\n"
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from _class(node)
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "pytest_")):
                yield from _function(node, "### ")


def _class(node: ast.ClassDef) -> Iterator[str]:
    initial = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    yield f"### `{node.name}({ast.unparse(_without_self(initial.args)) if initial else ''})`\n"
    yield f"{_paragraphs(node)}\n"
    rows = [
        (f"`{item.name}{_signature(item)}`", _paragraphs(item).replace("\n", " "))
        for item in node.body
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
    ]
    yield from markdown_table(("", ""), rows)


def _function(node: ast.FunctionDef, heading: str) -> Iterator[str]:
    decorations = [ast.unparse(decorator) for decorator in node.decorator_list]
    kind = "fixture " if any(text.startswith("pytest.fixture") for text in decorations) else ""
    yield f"{heading}{kind}`{node.name}{'' if kind else _signature(node)}`\n"
    yield f"{_paragraphs(node)}\n"


def _signature(node: ast.FunctionDef) -> str:
    if any(ast.unparse(decorator) == "property" for decorator in node.decorator_list):
        return f": {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(_without_self(node.args))})"


def _without_self(arguments: ast.arguments) -> ast.arguments:
    arguments.args = [argument for argument in arguments.args if argument.arg != "self"]
    return arguments


def _paragraphs(node: ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return _capital(paragraph.partition(". ")[0].rstrip("."))


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PAGES = {"commands.md": commands, "apis.md": apis, "metrics.md": metrics, "python.md": python_api}
"""Pages by the names of their files. Links to them are checked against this table."""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
