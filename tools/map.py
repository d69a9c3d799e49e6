"""Draw the map of the source into ARCHITECTURE.md: the packages, what each owns, and which packages it imports.

    python tools/map.py            write the map
    python tools/map.py --check    exit 1 if the page is not what the code contains

A package owns what the first sentence of its docstring says. `make map` runs this.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- map: begin, written by `make map` -->", "<!-- map: end -->"
DEPTH_MAX = 4
SHOWN_WHOLE = frozenset({"odradek/apps/pipeline", "odradek/apps/console", "odradek/apps/lab", "odradek/apps/cli"})
"""Applications whose inner packages are described by their own pages."""


def packages() -> Iterator[Path]:
    for init in sorted(SOURCE.glob("odradek/**/__init__.py")):
        package = init.parent.relative_to(SOURCE)
        hidden = any(str(parent) in SHOWN_WHOLE for parent in package.parents) or "template" in package.parts
        if len(package.parts) > 1 and len(package.parts) <= DEPTH_MAX + 1 and not hidden and package.name != "messages":
            yield package


def purpose(package: Path) -> str:
    text = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def modules(all_packages: list[Path]) -> dict[Path, list[Path]]:
    """Modules of each package itself, those of packages inside it left out."""
    found: dict[Path, list[Path]] = {package: [] for package in all_packages}
    for path in (SOURCE / "odradek").rglob("*.py"):
        if package := package_of(path.parent.relative_to(SOURCE).parts, found):
            found[package].append(path)
    return found


def statements(block: ast.AST) -> Iterator[ast.stmt]:
    """Those inside others included. Expressions, nine of ten nodes, import nothing."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(block, name, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


def imported(path: Path) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(parts: tuple[str, ...], all_packages: dict[Path, list[Path]]) -> Path | None:
    """The innermost package that these names lead to."""
    return next((package for end in range(len(parts), 0, -1) if (package := Path(*parts[:end])) in all_packages), None)


def short(package: Path) -> str:
    return str(package.relative_to("odradek"))


def draw() -> str:
    all_packages = modules(list(packages()))
    lines = ["| package | owns | modules | imports |", "|---|---|---|---|"]
    for package, own in all_packages.items():
        names = {name for path in own for name in imported(path) if name.startswith("odradek.")}
        used = {package_of(tuple(name.split(".")), all_packages) for name in names}
        others = sorted(short(other) for other in used - {None, package})  # type: ignore[arg-type]
        quiet = {"base", "base/config", "model", "protocol"}
        shown = ", ".join(f"`{other}`" for other in others if other not in quiet) or "–"
        number = sum(path.name != "__init__.py" for path in own)
        lines.append(f"| `{short(package)}/` | {purpose(package)} | {number} | {shown} |")
    return "\n".join(lines)


def drawn(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{draw()}\n{END}{after}"


def is_drawn() -> bool:
    page = PAGE.read_text()
    return drawn(page) == page


def main() -> int:
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(drawn(PAGE.read_text()))
    elif not is_drawn():
        sys.stderr.write("ARCHITECTURE.md: the map is older than the code; run `make map`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
