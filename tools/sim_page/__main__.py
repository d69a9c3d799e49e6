"""Build the page on which people break a simulated cluster: `python tools/sim_page DIRECTORY PYODIDE`.

DIRECTORY gets a static page for any web server; PYODIDE is the directory of the npm package `pyodide`. The page has the
Python runtime, and the modules that the simulator has loaded after some rounds with faults, of Odradek and of the pure
packages that it imports. `make sim-page` runs this.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

HERE = Path(__file__).parent
RUNTIME = ("pyodide.mjs", "pyodide.asm.*", "python_stdlib.zip", "pyodide-lock.json")
PACKAGES = ("odradek", "kazoo", "stand_ins", "browser")
"""Modules of these packages go into the page; all else has to be in Python's standard library."""
ROUNDS = 40


def main(target: Path, pyodide: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    (target / "pyodide").mkdir(parents=True)
    for name in ("index.html", "page.js"):
        shutil.copy(HERE / name, target)
    for pattern in RUNTIME:
        found = sorted(pyodide.glob(pattern))
        if not found:
            raise SystemExit(f"{pyodide} has no {pattern}: npm install pyodide")
        for path in found:
            shutil.copy(path, target / "pyodide")
    with ZipFile(target / "modules.zip", "w", ZIP_DEFLATED) as archive:
        for name, path in sorted(_loaded_modules().items()):
            is_package = path.name == "__init__.py"
            archive.write(path, name.replace(".", "/") + ("/__init__.py" if is_package else ".py"))
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size / 1e6:.1f} MB; python -m http.server -d {target}")


def _loaded_modules() -> dict[str, Path]:
    """Modules that the page needs, by running what it runs."""
    import browser

    with tempfile.TemporaryDirectory() as directory:
        browser._DIRECTORY = Path(directory) / "playground"
        browser.begin(1)
        for command in ("kill", "start", "freeze", "thaw", "cut", "connect"):
            browser.command(command, 0)
            browser.advance(ROUNDS)
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {
        name: Path(path)
        for name, path in files.items()
        if name.split(".")[0] in PACKAGES and path is not None and path.endswith(".py")
    }


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
