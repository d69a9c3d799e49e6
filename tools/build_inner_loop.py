"""Builds the compiled inner loop, where there is a C compiler.

    python tools/build_inner_loop.py [DIRECTORY [COMPILER FLAGS]]

One library for every Python from 3.11 on (the limited API), put beside its source or where the caller says. The build
of the package (`hatch_build.py`) calls this; without a compiler the package is built without the library.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "odradek" / "native" / "inner_loop.c"
LIBRARY = "_inner_loop.abi3.so"
FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter")


class NotBuilt(Exception):
    """Why there is no library; Python does the work."""


def build(directory: Path = SOURCE.parent, flags: tuple[str, ...] = ()) -> Path:
    """The library, put into the directory whole or not at all."""
    if os.name != "posix" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotBuilt("not for this Python")
    linker = os.environ.get("CC", "")
    command = [*shlex.split(linker), "-shared"] if linker else shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        made = Path(scratch) / LIBRARY
        include = sysconfig.get_path("include")
        try:
            done = subprocess.run(
                [*command, *FLAGS, *flags, f"-I{include}", str(SOURCE), "-o", str(made)], capture_output=True, text=True
            )
        except OSError as error:
            raise NotBuilt(f"no C compiler: {error}") from None
        if done.returncode:
            raise NotBuilt((done.stderr.strip().splitlines() or ["the C compiler failed"])[0])
        os.replace(made, directory / LIBRARY)
    return directory / LIBRARY


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]) if sys.argv[1:] else SOURCE.parent, tuple(sys.argv[2:]))
    except NotBuilt as why:
        sys.exit(f"inner loop: python ({why})")
