"""Cost of a command: our command line against our broker, and Kafka's tools, with the options of their own start
scripts, against Kafka's.

Processor seconds of the tool alone, until it has ended.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from odradek.apps.lab.bench.clients import Metrics, run, topic
from odradek.apps.lab.bench.figures import Figure, Work, at_most, new_topic_name
from odradek.apps.lab.bench.systems import JVM_OPTIONS, Odradek, System

TOPICS, PARTITIONS_EACH = 10, 1000
RUNS = 3


def cli_figures() -> Iterator[Figure]:
    targets = (at_most("own_cpu_s", 0.2), at_most("alike_cpu_s", 0.2), at_most("own_s", 0.5))
    for own, kafkas, topics in (
        ("--help", "--version", 0),  # Kafka's tool exits with a failure after its help
        ("topics list", "--list", 1),
        ("topics describe", "--describe", TOPICS),
    ):
        title = f"odradek {own}" + (f", {TOPICS * PARTITIONS_EACH:,} partitions" if topics == TOPICS else "")
        yield Figure("cli", title, targets, partial(tool, own, kafkas, topics))


@contextmanager
def tool(own: str, kafkas: str, topics: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Our own command, and Kafka's command line as we understand it, beside Kafka's tool."""
    server = ["--bootstrap-server", system.bootstrap]
    if isinstance(system, Odradek):
        ours = [sys.executable, "-m", "odradek"]
        commands = [[*ours, *own.split(), *(server if topics else [])], [*ours, "kafka-topics", kafkas, *server]]
    else:
        log4j = f"-Dlog4j.configuration=file:{work.clients.directory}/log4j.properties"
        classes = ["-cp", f"{system.kafka_lib}/*", "org.apache.kafka.tools.TopicCommand"]
        commands = [["java", "-Xmx256M", *JVM_OPTIONS, log4j, *classes, kafkas, *server]]

    def measure() -> Metrics:
        costs = [_cost(command) for command in commands]
        return {"own_cpu_s": costs[0][0], "own_s": costs[0][1], "alike_cpu_s": costs[-1][0]}

    with ExitStack() as stack:
        for _ in range(topics):
            stack.enter_context(topic(system, new_topic_name(), work.scaled(PARTITIONS_EACH)))
        yield measure


def _cost(command: list[str]) -> tuple[float, float]:
    """Processor seconds and seconds of one run."""
    began, before = time.monotonic(), _children_cpu_s()
    for _ in range(RUNS):
        run(command)
    return (_children_cpu_s() - before) / RUNS, (time.monotonic() - began) / RUNS


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
