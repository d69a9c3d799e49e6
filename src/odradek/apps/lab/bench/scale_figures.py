"""Cost of a partition, used or not: the same work at several numbers of partitions, for the slope.

Processor seconds rather than times: they are the same on a busy machine.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from odradek.apps.lab.bench.clients import Metrics, topic
from odradek.apps.lab.bench.cluster_figures import BROKERS, await_all_in_sync, await_led_by_others, controller_of
from odradek.apps.lab.bench.figures import Figure, Work, at_most, at_rest, new_topic_name
from odradek.apps.lab.bench.process_stats import cpu_seconds
from odradek.apps.lab.bench.systems import System

SIZES = (500, 1000, 2000)
SETTLE_S = 5.0
LOOK_S = 2.0  # frequent Metadata of thousands of partitions costs the brokers more than their creation


def scale_figures() -> Iterator[Figure]:
    metrics = ("created_cpu_s", "failover_cpu_s", "rss_mb", "idle_cpu_percent", "descriptors")
    for partitions in SIZES:
        title = f"RF {BROKERS}: {partitions:,} partitions"
        targets = tuple(at_most(metric, 1.0) for metric in metrics)
        yield Figure("cluster-scale", title, targets, partial(scale, partitions), brokers=BROKERS)


@contextmanager
def scale(partitions: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure the brokers' CPU time for creation, at rest, and after a crash of the controller."""
    count = work.scaled(partitions)

    def measure() -> Metrics:
        time.sleep(SETTLE_S)  # earlier deletions are complete
        before = cpu_seconds(system.broker_pids)
        with topic(system, new_topic_name(), count) as name:
            await_all_in_sync(system, name, LOOK_S)
            created_cpu_s = cpu_seconds(system.broker_pids) - before
            resting = at_rest(work, system)
            open_files = sum(len(os.listdir(Path(f"/proc/{pid}/fd"))) for pid in system.broker_pids)
            victim = controller_of(system)
            system.kill_broker(victim)
            before = cpu_seconds(system.broker_pids)
            await_led_by_others(system, name, victim, count, LOOK_S)
            time.sleep(SETTLE_S)
            failover_cpu_s = cpu_seconds(system.broker_pids) - before
            system.start_broker(victim)
            await_all_in_sync(system, name)
        return {
            "created_cpu_s": created_cpu_s,
            "failover_cpu_s": failover_cpu_s,
            "descriptors": float(open_files),
        } | resting

    yield measure
