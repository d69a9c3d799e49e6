"""Location of ZooKeeper's jars: pyspark's wheel."""

import re
from importlib.util import find_spec
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.java import INSTALL_HINT

# slf4j's binding and log4j are there only so that the server has a log
_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
_LOG_JARS = ("log4j-slf4j2-impl", "log4j-api", "log4j-core")


def zookeeper_classpath() -> str:
    """Return the jars of ZooKeeper and its dependencies in the pyspark wheel (which is not imported)."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FatalError(f"the embedded ZooKeeper comes with pyspark, which is not installed: {INSTALL_HINT}")
    directory = Path(spec.origin).parent / "jars"
    return ":".join(str(_jar(directory, name)) for name in (*_JARS, *_LOG_JARS))


def _jar(directory: Path, name: str) -> Path:
    version_follows = re.compile(re.escape(name) + r"-\d[^-]*\.jar")
    for path in sorted(directory.glob(f"{name}-*.jar")):
        if version_follows.fullmatch(path.name):
            return path
    raise FatalError(f"pyspark's jars in {directory} lack {name}: {INSTALL_HINT}")
