"""Spark's JVM, started before PySpark is imported and while brokers are asked.

PySpark starts its JVM when a session is made, and waits for it. Here the same program starts with the same options as
soon as they are known; PySpark then connects to it. `SparkContext` has one JVM for its process: where it has one
already, none is started.
"""

import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from odradek.apps.pipeline.spark_home import SharedHome
from odradek.base.errors import FatalError

_LOOK_S = 0.02
_ENDS_S_MAX = 40.0  # `odradek pipeline stop` waits for a minute
_ADDRESS_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


class SparkJvm:
    """The JVM of this process. Closing it before PySpark has connected kills it; later it ends with the process."""

    def __init__(
        self, home: Path, settings: Mapping[str, str], shared: SharedHome | None = None, *, may_record: bool = False
    ) -> None:
        self.settings = settings
        self._shared = shared
        self._directory = TemporaryDirectory(prefix="odradek-spark-")
        self._address = Path(self._directory.name) / "address"
        confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        submitted = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        options = [os.environ.get("SPARK_SUBMIT_OPTS", "")]
        if shared is not None:
            options.append(shared.java_options(may_record=may_record))
        variables = {
            "SPARK_CONNECT_MODE": "0",
            "SPARK_SUBMIT_OPTS": " ".join(filter(None, options)),
            _ADDRESS_VARIABLE: str(self._address),
        }
        self._process = subprocess.Popen(
            [home / "bin" / "spark-submit", *confs, *submitted],
            stdin=subprocess.PIPE,  # the JVM ends when it is closed
            env={**os.environ, **variables},
            preexec_fn=_ignore_interrupts,
        )
        self._is_connected = False
        self.is_recording = shared is not None and may_record and not shared.has_archive
        """True if the JVM writes an archive of its classes when it ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_connected:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()

    def connect(self) -> Any:
        """Make this JVM the one of PySpark, and return PySpark's view of it. FatalError if it has ended."""
        from pyspark.core.context import SparkContext
        from pyspark.java_gateway import launch_gateway

        while not self._address.exists():  # it is renamed to its name
            if self._process.poll() is not None:
                raise FatalError(f"its JVM ended with status {self._process.returncode}")
            time.sleep(_LOOK_S)
        content = self._address.read_bytes()
        (port,) = struct.unpack_from(">i", content)
        os.environ |= {_PORT: str(port), _SECRET: content[8:].decode()}
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)
        finally:
            del os.environ[_PORT], os.environ[_SECRET]
        self._is_connected = True
        return gateway.jvm

    def stop(self) -> bool:
        """End the JVM and keep what it has recorded; False if it has written nothing, or takes too long."""
        from pyspark.core.context import SparkContext

        if SparkContext._gateway is not None:
            with suppress(Exception):  # Py4J raises many kinds of errors while Spark shuts down
                SparkContext._gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            is_written = self._process.wait(_ENDS_S_MAX) == 0
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            is_written = False
        return self._shared is not None and self._shared.end_recording(keep=is_written)


def has_jvm() -> bool:
    """Return whether PySpark in this process has a JVM already, or is told to use another one."""
    context = sys.modules.get("pyspark.core.context")
    return _PORT in os.environ or (context is not None and context.SparkContext._gateway is not None)


def _ignore_interrupts() -> None:
    """Ctrl-C is for the command, which stops the queries first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
