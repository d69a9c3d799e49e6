"""Draw the map of the source into ARCHITECTURE.md: the rooms, what each owns, and which rooms it imports.

    python tools/map.py            write the map
    python tools/map.py --check    exit 1 if the page is not what the code says

A room is a package; what it owns is the first sentence of its docstring. `make map` runs this.
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
"""Applications whose inner rooms are told by their own pages."""


def rooms() -> Iterator[Path]:
    for init in sorted(SOURCE.glob("odradek/**/__init__.py")):
        room = init.parent.relative_to(SOURCE)
        hidden = any(str(parent) in SHOWN_WHOLE for parent in room.parents) or "template" in room.parts
        if len(room.parts) > 1 and len(room.parts) <= DEPTH_MAX + 1 and not hidden and room.name != "messages":
            yield room


def purpose(room: Path) -> str:
    text = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def modules(room: Path, all_rooms: list[Path]) -> list[Path]:
    """Modules of the room itself, those of rooms inside it left out."""
    inner = [SOURCE / other for other in all_rooms if room in other.parents]
    found = (SOURCE / room).rglob("*.py")
    return [path for path in found if not any(path.is_relative_to(other) for other in inner)]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str, all_rooms: list[Path]) -> Path | None:
    path = Path(*module.split("."))
    return max(
        (room for room in all_rooms if path.is_relative_to(room)), key=lambda room: len(room.parts), default=None
    )


def short(room: Path) -> str:
    return str(room.relative_to("odradek"))


def draw() -> str:
    all_rooms = list(rooms())
    lines = ["| room | owns | modules | imports |", "|---|---|---|---|"]
    for room in all_rooms:
        own = modules(room, all_rooms)
        used = {room_of(name, all_rooms) for path in own for name in imported(path) if name.startswith("odradek.")}
        others = sorted(short(other) for other in used - {None, room})  # type: ignore[arg-type]
        quiet = {"base", "base/config", "model", "protocol"}
        told = ", ".join(f"`{other}`" for other in others if other not in quiet) or "–"
        number = sum(path.name != "__init__.py" for path in own)
        lines.append(f"| `{short(room)}/` | {purpose(room)} | {number} | {told} |")
    return "\n".join(lines)


def main() -> int:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    drawn = f"{before}{BEGIN}\n{draw()}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if drawn != page:
            sys.stderr.write("ARCHITECTURE.md: the map is older than the code; run `make map`\n")
            return 1
        return 0
    PAGE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
