"""Figures, with their targets.

A figure is a session per system: prepared once, measured once per round, removed at the end.
"""

import itertools
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

from odradek.apps.lab.bench.clients import Batching, Clients, Metrics, Records, alter_topic, topic
from odradek.apps.lab.bench.process_stats import cpu_seconds, rss_mb, thread_cpu_seconds
from odradek.apps.lab.bench.systems import System
from odradek.client.broker_client import BrokerClient
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest

SETTLE_S = 5.0
API_VERSIONS_V0 = encode_request(ApiVersionsRequest(), 0, 7, None)
IDLE_S = 10.0
PARTITIONS = 6
SEGMENTS = 1000
LARGE_BATCHES = Batching(65536, 5)
SMALL_BATCHES = Batching(16384, 0)
COMPRESSIONS = ("lz4", "zstd", "snappy", "gzip")

_topic_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on Odradek ÷ Kafka, or, where `absolute`, on Odradek's own figure."""

    metric: str
    bound: float
    higher_is_better: bool = False
    absolute: bool = False

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.higher_is_better else value <= self.bound


@dataclass(frozen=True, slots=True)
class Work:
    """The clients and the amount of their work."""

    clients: Clients
    quick: bool
    log_gb: float

    def scaled(self, full: int) -> int:
        return full // 10 if self.quick else full

    @property
    def loads(self) -> dict[str, Records]:
        return {"1 KB": Records(self.scaled(400_000), 1024), "100 B": Records(self.scaled(2_500_000), 100)}


Session = Callable[[Work, System], AbstractContextManager[Callable[[], Metrics]]]


@dataclass(frozen=True, slots=True)
class Figure:
    group: str
    """Group that `--only` selects."""
    title: str
    targets: tuple[Target, ...]
    session: Session
    needs_kcat: bool = False
    brokers: int = 1
    is_secured: bool = False
    """Flag of a figure whose brokers have listeners with TLS and SASL, and an authorizer, besides PLAINTEXT."""
    floor: str = ""
    """The raw server of `floor` that makes the same system calls, if there is one."""


def at_least(metric: str, bound: float) -> Target:
    return Target(metric, bound, higher_is_better=True)


def at_most(metric: str, bound: float) -> Target:
    return Target(metric, bound)


def one_broker_figures() -> list[Figure]:
    return [
        Figure(
            "process",
            "process: start, at rest",
            (at_most("start_s", 0.2), at_most("rss_mb", 0.15), at_most("idle_cpu_percent", 0.5)),
            process,
        ),
        Figure(
            "wire",
            "wire: ApiVersions on one connection",
            (at_least("sequential_per_s", 1.6), at_least("pipelined_per_s", 1.5)),
            wire,
            floor="wire",
        ),
        *produce_figures(),
        *consume_figures(),
        *single_figures(),
        *latency_figures(),
        Figure(
            "segments",
            f"segments: a log of {SEGMENTS} segments ÷ a fresh one",
            (Target("append_cpu", 1.2, absolute=True), Target("read_cpu", 1.2, absolute=True)),
            segments,
        ),
        Figure("open", "open: a cleanly closed large log", (Target("extra_s", 1.0, absolute=True),), open_large_log),
    ]


def produce_figures() -> Iterator[Figure]:
    for load, batching, acks in itertools.product(("1 KB", "100 B"), (LARGE_BATCHES, SMALL_BATCHES), ("1", "all")):
        is_small = batching is SMALL_BATCHES
        targets = (
            at_least("records_per_s", 1.1 if is_small else 1.2),
            at_most("p50_ms", 1.0),
            at_most("p99_ms", 1.0),
            at_most("cpu_s_per_gb", 0.8 if is_small else 0.6),
            at_most("rss_mb_max", 0.15),
        )
        size = f"{batching.batch_bytes // 1024}"
        title = f"produce {load}, {size} KB batches, acks={acks}"
        yield Figure("produce", title, targets, partial(produce, load, batching, acks), floor=f"produce {size}")
    both = (at_least("records_per_s", 1.1), at_most("cpu_s_per_gb", 0.8))
    for codec in COMPRESSIONS:
        session = partial(produce, "1 KB", LARGE_BATCHES, "1", options=(f"compression.type={codec}",))
        yield Figure("compressed", f"produce 1 KB, 64 KB batches, {codec}", both, session)
    for load in ("1 KB", "100 B"):
        yield Figure(
            "kcat",
            f"kcat produce {load}",
            (at_least("records_per_s", 1.3),),
            partial(kcat_produce, load),
            needs_kcat=True,
        )


def consume_figures() -> Iterator[Figure]:
    targets = (at_least("records_per_s", 1.2), at_most("cpu_s_per_gb", 0.35), at_most("rss_mb_max", 0.15))
    for load in ("1 KB", "100 B"):
        for title, session in (("assigned partitions", consume_assigned), ("ConsumerPerformance", consume_in_group)):
            yield Figure("consume", f"consume {load}, {title}", targets, partial(session, load), floor="consume")
        yield Figure(
            "kcat",
            f"kcat consume {load}",
            (at_least("records_per_s", 1.3),),
            partial(kcat_consume, load),
            needs_kcat=True,
        )


def single_figures() -> Iterator[Figure]:
    for producers, in_flight in ((1, 1), (1, 100), (8, 20)):
        title = f"one record per request, {producers} × {in_flight} in flight"
        targets, floor = (at_least("requests_per_s", 1.2),), "single" if in_flight == 1 else ""
        yield Figure("single", title, targets, partial(single, "1", producers, in_flight), floor=floor)
    kcat_targets = (at_least("records_per_s", 1.0),)
    yield Figure(
        "kcat",
        "kcat one record per request, 100 in flight",
        kcat_targets,
        partial(kcat_single, "1", 60_000),
        needs_kcat=True,
    )


def latency_figures() -> Iterator[Figure]:
    for acks in ("1", "all"):
        targets = (at_most("p50_ms", 0.9), at_most("p99_ms", 0.75))
        yield Figure("latency", f"end-to-end latency, warm, acks={acks}", targets, partial(latency, acks))
        tool_targets = (at_most("avg_ms", 1.0),)
        yield Figure("latency", f"EndToEndLatency, acks={acks}", tool_targets, partial(end_to_end_latency, acks))


def new_topic_name() -> str:
    return f"bench-{next(_topic_numbers)}"


@contextmanager
def process(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    def measure() -> Metrics:
        system.stop_broker()
        start_s = system.start_broker()
        return {"start_s": start_s} | at_rest(work, system)

    yield measure


def at_rest(work: Work, system: System) -> Metrics:
    idle_s = 3.0 if work.quick else IDLE_S
    time.sleep(SETTLE_S)
    before = thread_cpu_seconds(system.broker_pids)
    time.sleep(idle_s)
    used = thread_cpu_seconds(system.broker_pids) - before
    return {"rss_mb": rss_mb(system.broker_pids), "idle_cpu_percent": 100 * used / idle_s}


@contextmanager
def wire(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """The floor of a request, with no log behind it. All answers are of one length, so the client only counts bytes."""

    def measure() -> Metrics:
        with BrokerClient("127.0.0.1", system.port).connection.detach() as connection:
            connection.settimeout(None)
            connection.sendall(API_VERSIONS_V0)
            size = 4 + int.from_bytes(connection.recv(4), "big")
            connection.recv(size - 4, socket.MSG_WAITALL)
            exchanges_per_s(connection, size, depth=20, count=work.scaled(20_000))
            return {
                "sequential_per_s": exchanges_per_s(connection, size, depth=1, count=work.scaled(40_000)),
                "pipelined_per_s": exchanges_per_s(connection, size, depth=20, count=work.scaled(100_000)),
            }

    yield measure


def exchanges_per_s(connection: socket.socket, answer_bytes: int, depth: int, count: int) -> float:
    """Keep `depth` requests in flight: each answer is followed by a request."""
    start = time.perf_counter()
    connection.sendall(API_VERSIONS_V0 * depth)
    sent, received_bytes = depth, 0
    while received_bytes < count * answer_bytes:
        received_bytes += len(connection.recv(65536))
        due = min(count, received_bytes // answer_bytes + depth) - sent
        if due:
            connection.sendall(API_VERSIONS_V0 * due)
            sent += due
    return count / (time.perf_counter() - start)


@contextmanager
def produce(
    load: str, batching: Batching, acks: str, work: Work, system: System, options: Sequence[str] = ()
) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), PARTITIONS) as name:
        yield lambda: work.clients.producer_performance(system, name, work.loads[load], batching, acks, options)


@contextmanager
def kcat_produce(load: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), PARTITIONS) as name:
        settings = ("acks=1", "linger.ms=5", "batch.size=65536")
        yield lambda: work.clients.kcat_produce(system, name, work.loads[load], *settings)


@contextmanager
def filled_topic(load: str, work: Work, system: System) -> Iterator[str]:
    with topic(system, new_topic_name(), PARTITIONS) as name:
        work.clients.producer_performance(system, name, work.loads[load], LARGE_BATCHES, "1")
        yield name


@contextmanager
def consume_assigned(load: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with filled_topic(load, work, system) as name:
        yield lambda: work.clients.probe("consume", system, name, work.loads[load].count, 0)


@contextmanager
def consume_in_group(load: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with filled_topic(load, work, system) as name:
        yield lambda: work.clients.consumer_performance(system, name, work.loads[load])


@contextmanager
def kcat_consume(load: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with filled_topic(load, work, system) as name:
        yield lambda: work.clients.kcat_consume(system, name, work.loads[load])


@contextmanager
def single(acks: str, producers: int, in_flight: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    seconds = 2 if work.quick else 5
    with topic(system, new_topic_name(), producers) as name:
        yield lambda: work.clients.probe("single", system, name, producers, in_flight, seconds, acks)


@contextmanager
def kcat_single(acks: str, count: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Produce with a lighter client than the Java one, so that the broker is the bottleneck."""
    records = Records(work.scaled(count), 100)
    with topic(system, new_topic_name(), 1) as name:
        settings = (f"acks={acks}", "linger.ms=0", "batch.num.messages=1", "max.in.flight=100")
        yield lambda: work.clients.kcat_produce(system, name, records, *settings)


@contextmanager
def latency(acks: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), 1) as name:
        yield lambda: work.clients.probe("latency", system, name, work.scaled(5000), acks)


@contextmanager
def end_to_end_latency(acks: str, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), 1) as name:
        yield lambda: work.clients.end_to_end_latency(system, name, work.scaled(5000), acks)


@contextmanager
def segments(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Broker CPU to append to, and to read back from, a log of a thousand segments, over the same on a fresh log.

    The segments are made with a small `segment.bytes`, which is then raised, because rolling is not compared.
    """
    segment_bytes = 16384
    filling = Records(SEGMENTS * segment_bytes // 1024, 1024)
    load = Records(work.scaled(300_000), 1024)
    small = {"segment.bytes": str(segment_bytes)}
    with topic(system, new_topic_name(), 1) as fresh, topic(system, new_topic_name(), 1, small) as long:
        work.clients.producer_performance(system, long, filling, Batching(segment_bytes - 1024, 1000), "1")
        alter_topic(system, long, "segment.bytes", str(2**30))
        end_offsets = {fresh: 0, long: filling.count}

        def cost_of(name: str) -> tuple[float, float]:
            start = cpu_seconds(system.broker_pids)
            work.clients.producer_performance(system, name, load, LARGE_BATCHES, "1")
            appended = cpu_seconds(system.broker_pids)
            work.clients.probe("consume", system, name, load.count, end_offsets[name])
            end_offsets[name] += load.count
            return appended - start, cpu_seconds(system.broker_pids) - appended

        def measure() -> Metrics:
            (append_fresh, read_fresh), (append_long, read_long) = cost_of(fresh), cost_of(long)
            return {"append_cpu": append_long / append_fresh, "read_cpu": read_long / read_fresh}

        yield measure


@contextmanager
def open_large_log(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Time of a start with a large log, minus that of a start without it."""

    def restart_s() -> float:
        system.stop_broker()
        return system.start_broker()

    without = median(restart_s() for _ in range(1 if work.quick else 3))
    filling = Records(int(work.log_gb * 1e9) // 10240, 10240)
    with topic(system, new_topic_name(), PARTITIONS) as name:
        work.clients.producer_performance(system, name, filling, Batching(2**19, 5), "1")

        def measure() -> Metrics:
            start_s = restart_s()
            return {"start_s": start_s, "extra_s": start_s - without}

        yield measure
