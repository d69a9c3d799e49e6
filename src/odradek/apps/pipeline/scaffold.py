"""`odradek pipeline init`: writes a small project that runs without changes."""

from importlib.resources import files
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.model.topic_names import name_fault

_RENAMED = {"gitignore": ".gitignore"}


def check_name(name: str) -> None:
    if fault := name_fault(name):
        raise FatalError(f"{name!r} can't name a pipeline: {fault}")


def init_project(directory: Path, name: str, bootstrap: str) -> list[Path]:
    """Write the project; return its files, relative to it. No existing file is overwritten."""
    check_name(name)
    if directory.exists() and any(directory.iterdir()):
        raise FatalError(f"{directory} is there already, and not empty")
    template = Path(str(files("odradek.apps.pipeline") / "template"))
    written: list[Path] = []
    for source in sorted(path for path in template.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        relative = source.relative_to(template)
        target = directory / relative.with_name(_RENAMED.get(relative.name, relative.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace("{{name}}", name).replace("{{bootstrap}}", bootstrap))
        written.append(target.relative_to(directory))
    return written
