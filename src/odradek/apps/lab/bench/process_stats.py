"""Cost of a period, from /proc: processor seconds and memory of a process tree, and the load of other
processes.
"""

import os
import resource
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_INTERVAL_S = 0.2


@dataclass(slots=True)
class Cost:
    """Filled in when the measured block ends."""

    wall_s: float = 0.0
    broker_cpu_s: float = 0.0
    rss_mb_max: float = 0.0
    noise: float = 0.0
    """The share of all cores that others than the broker and its client used: beyond a tenth, the run was disturbed."""


def process_tree(pid: int) -> list[int]:
    """Return the process and all its descendants; processes that ended meanwhile are left out."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of the process trees, counted in ticks of 10 ms."""
    return sum(_cpu_seconds_of_one(process) for pid in pids for process in process_tree(pid))


def thread_cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of the live threads, exact to nanoseconds, where `cpu_seconds` counts ticks: for an idle broker."""
    total_ns = 0
    for process in (process for pid in pids for process in process_tree(pid)):
        for schedstat in Path(f"/proc/{process}/task").glob("*/schedstat"):
            try:
                total_ns += int(schedstat.read_text().split()[0])
            except OSError:
                continue
    return total_ns / 1e9


def rss_mb(pids: Iterable[int]) -> float:
    """Resident memory of the process trees."""
    pages = 0
    for process in (process for pid in pids for process in process_tree(pid)):
        try:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * PAGE_BYTES / 2**20


@contextmanager
def metered(broker_pids: Sequence[int]) -> Iterator[Cost]:
    """Measures a block in which clients, run as children of this process, use the brokers."""
    cost = Cost()
    stop = threading.Event()

    def sample_memory() -> None:
        while True:
            cost.rss_mb_max = max(cost.rss_mb_max, rss_mb(broker_pids))
            if stop.wait(SAMPLE_INTERVAL_S):
                return

    sampler = threading.Thread(target=sample_memory, name="memory sampler", daemon=True)
    start, broker, clients, machine = (
        time.monotonic(),
        cpu_seconds(broker_pids),
        _client_cpu_seconds(),
        _machine_cpu_seconds(),
    )
    sampler.start()
    try:
        yield cost
    finally:
        stop.set()
        sampler.join()
        cost.wall_s = time.monotonic() - start
        cost.broker_cpu_s = max(0.0, cpu_seconds(broker_pids) - broker)
        others = _machine_cpu_seconds() - machine - cost.broker_cpu_s - (_client_cpu_seconds() - clients)
        cost.noise = max(0.0, others) / cost.wall_s / (os.cpu_count() or 1)


def _cpu_seconds_of_one(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _client_cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _machine_cpu_seconds() -> float:
    """All cores' busy time, including the time of the hypervisor."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S
