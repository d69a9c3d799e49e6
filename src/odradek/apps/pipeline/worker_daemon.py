"""Daemon of Spark's Python workers that has the modules of their tasks when it forks.

Spark's own daemon imports nothing, so each worker imports pyarrow and this package by itself and, where the compiled
inner loop is not built, numba with its machine code: up to 1.5 s of CPU, and 150 MB that no two of them share. Spark
starts this module in its place (`spark.python.daemon.module`).

A fork copies only the calling thread, so nothing here may start a thread; the thread of pyarrow's allocator (jemalloc)
supports forks.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark.daemon import manager

_MODULES = (
    "pyspark.worker",
    "odradek.apps.pipeline.dimension_read",
    "odradek.apps.pipeline.source.plain_fetching",
    "odradek.apps.pipeline.source.reader",
    "odradek.apps.pipeline.transaction_output",
)


def load_modules() -> None:
    """Load the modules that tasks of a pipeline need. A missing package is reported by the task that needs it."""
    for module in _MODULES:
        with suppress(ImportError):
            import_module(module)
    with suppress(ImportError):
        from odradek.apps.pipeline.arrow_records.record_columns import decode_records

        decode_records([], None)  # numba, where it decodes, loads its machine code at the first call


def share_memory() -> None:
    """Keep the modules' memory shared: a worker collects garbage after each task, which writes to every object."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    # Freed buffers go back to the system, not to an allocator of each worker.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    load_modules()
    share_memory()
    manager()
