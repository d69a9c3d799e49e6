"""The compiled inner loop is optional: built where there is a C compiler; without one, Python does the work."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILDER = ROOT / "tools" / "build_inner_loop.py"
SANITIZED_INPUTS = 100_000
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is absent")


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_python_does_the_work_when_asked_to() -> None:
    assert run(sys.executable, "-m", "odradek.native", ODRADEK_PURE="1") == "inner loop: python (ODRADEK_PURE is set)\n"


def test_a_library_of_another_source_is_not_used() -> None:
    code = (
        "import sys, types; old = sys.modules['odradek.native._inner_loop'] = types.ModuleType('old');"
        "old.INTERFACE = 0; from odradek.native.load import *; print(compiled, REASON)"
    )
    assert run(sys.executable, "-c", code, ODRADEK_PURE="").startswith("None built from an older source")


def test_no_compiler_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, str(BUILDER)], env=os.environ | {"CC": "/nowhere/cc"}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("inner loop: python (no C compiler")
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution, and the wheels that it gives with a C compiler and without one."""
    directory = tmp_path_factory.mktemp("dist")
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "hatchling")
    run(
        python,
        "-c",
        f"import os; os.chdir({str(ROOT)!r}); from hatchling.build import *; build_sdist({str(directory)!r})",
    )
    (sdist,) = directory.glob("*.tar.gz")
    for kind, compiler in (("compiled", "gcc"), ("python", "/nowhere/cc")):
        run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", directory / kind, sdist, CC=compiler)
    return directory


@needs_compiler
@pytest.mark.soak
@pytest.mark.parametrize(("kind", "tag"), [("compiled", "cp311-abi3-"), ("python", "py3-none-any")])
def test_wheels_install_in_a_clean_environment(distributions: Path, kind: str, tag: str) -> None:
    (wheel,) = (distributions / kind).glob("*.whl")
    assert tag in wheel.name
    home = distributions / f"clean-{kind}"
    venv.create(home, with_pip=True)
    run(home / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    assert f"inner loop: {kind}" in run(home / "bin" / "odradek", "--version", ODRADEK_PURE="")


@needs_compiler
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_hostile_input_under_the_address_sanitizer(tmp_path: Path) -> None:
    run(sys.executable, BUILDER, tmp_path, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", CC="gcc")
    preloaded = " ".join(run("gcc", f"-print-file-name={name}").strip() for name in ("libasan.so", "libubsan.so"))
    run(
        sys.executable,
        "under_sanitizer.py",
        tmp_path / "_inner_loop.abi3.so",
        str(SANITIZED_INPUTS),
        LD_PRELOAD=preloaded,
        ASAN_OPTIONS="detect_leaks=0",
        PYTHONMALLOC="malloc",  # so that a byte past an object is not another object's
        ODRADEK_PURE="",
    )
