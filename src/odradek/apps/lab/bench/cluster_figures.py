"""Figures of a cluster of three brokers, every topic on all of them, with their targets."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from statistics import mean
from typing import Any

from odradek.apps.lab.bench.clients import Metrics, administer, topic
from odradek.apps.lab.bench.figures import (
    LARGE_BATCHES,
    PARTITIONS,
    SMALL_BATCHES,
    Figure,
    Session,
    Target,
    Work,
    at_least,
    at_most,
    at_rest,
    kcat_single,
    latency,
    new_topic_name,
    produce,
    single,
)
from odradek.apps.lab.bench.systems import BenchError, System

BROKERS = 3
WAIT_S_MAX = 120.0
CRASHES = 3
POLL_S = 0.02


def cluster_figures() -> Iterator[Figure]:
    yield _figure("process", "at rest", (at_most("rss_mb", 0.15), at_most("idle_cpu_percent", 0.5)), resting)
    for load, batching in (("1 KB", LARGE_BATCHES), ("100 B", LARGE_BATCHES), ("1 KB", SMALL_BATCHES)):
        title = f"produce {load}, {batching.batch_bytes // 1024} KB batches, acks=all"
        targets = (at_least("records_per_s", 1.5), at_most("cpu_s_per_gb", 0.5))
        yield _figure("produce", title, targets, partial(produce, load, batching, "all"))
    for producers, in_flight in ((1, 1), (1, 100), (8, 20)):
        title = f"one record per request, {producers} × {in_flight} in flight, acks=all"
        session = partial(single, "all", producers, in_flight)
        yield _figure("single", title, (at_least("requests_per_s", 1.5),), session)
    kcat_title, one_by_one = "kcat one record per request, 100 in flight, acks=all", partial(kcat_single, "all", 20_000)
    yield _figure("single", kcat_title, (at_least("records_per_s", 1.5),), one_by_one, needs_kcat=True)
    latencies = (at_most("p50_ms", 1.0), at_most("p99_ms", 1.0))
    yield _figure("latency", "end-to-end latency, acks=all", latencies, partial(latency, "all"))
    for topics, partitions in ((100, 1), (1, 1000)):
        title = f"create {topics} × {partitions:,} partitions"
        yield _figure("create", title, (at_most("created_s", 1.0),), partial(create, topics, partitions))
    yield _figure("failover", "kill -9 of a leader and controller", (at_most("outage_s", 1.0),), outage)
    crash_of_many = partial(takeover, 2000)
    yield _figure("failover", "kill -9 of the controller, 2,000 partitions", (at_most("moved_s", 1.0),), crash_of_many)


def _figure(
    group: str, title: str, targets: tuple[Target, ...], session: Session, *, needs_kcat: bool = False
) -> Figure:
    return Figure(
        f"cluster-{group}", f"RF {BROKERS}: {title}", targets, session, needs_kcat=needs_kcat, brokers=BROKERS
    )


@contextmanager
def resting(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    yield lambda: at_rest(work, system)


@contextmanager
def create(topics: int, partitions: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Time from one CreateTopics until a broker knows a leader of every partition; then the topics are deleted."""
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    def measure() -> Metrics:
        names = [new_topic_name() for _ in range(topics)]
        new = [NewTopic(name, partitions, BROKERS) for name in names]
        admin = _admin(system)  # kept, because its requests end with it
        start = time.monotonic()
        for future in admin.create_topics(new, request_timeout=WAIT_S_MAX).values():
            future.result()
        _await(lambda: _led(system, names) == topics * partitions, "not every partition got a leader")
        created_s = time.monotonic() - start
        for future in admin.delete_topics(names, request_timeout=WAIT_S_MAX).values():
            future.result()
        _await(lambda: not set(names) & _metadata(system).topics.keys(), "the topics were not deleted")
        return {"created_s": created_s}

    yield measure


@contextmanager
def outage(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Time from the crash of the controller, which also leads, to the first acknowledged write on every partition.

    Most of it is ZooKeeper's: a session ends in steps of a tick, counted from the last ping, anywhere within two
    seconds. So a round is the mean of a few crashes, and what comes after the session is a figure of its own.
    """
    with topic(system, new_topic_name(), PARTITIONS) as name:

        def measure() -> Metrics:
            crashes = [_crash_of_controller(system, name) for _ in range(1 if work.quick else CRASHES)]
            return {metric: mean(crash[metric] for crash in crashes) for metric in crashes[0]}

        yield measure


def _crash_of_controller(system: System, name: str) -> Metrics:
    from confluent_kafka import Producer

    await_all_in_sync(system, name)
    _elect_preferred(system)
    victim = controller_of(system)
    settings = {"acks": "all", "enable.idempotence": True, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}
    producer = Producer(
        {"bootstrap.servers": system.bootstrap, **settings, "retry.backoff.max.ms": 100, "log_level": 0}
    )
    _write_everywhere(producer, name)
    with end_of_session(system, victim) as ended_at:
        system.kill_broker(victim)
        start = time.monotonic()
        _write_everywhere(producer, name)
        written_at = time.monotonic()
    system.start_broker(victim)
    await_all_in_sync(system, name)
    return {"outage_s": written_at - start, "after_session_s": written_at - ended_at[0]}


@contextmanager
def end_of_session(system: System, broker_id: int) -> Iterator[list[float]]:
    """Measure the moment at which ZooKeeper deletes the broker's registration; it is in the list before writes
    succeed."""
    moments: list[float] = []
    with _zookeeper(system) as zookeeper:
        zookeeper.exists(f"/brokers/ids/{broker_id}", watch=lambda _event: moments.append(time.monotonic()))
        yield moments


@contextmanager
def _zookeeper(system: System) -> Iterator[Any]:
    from kazoo.client import KazooClient

    zookeeper = KazooClient(f"127.0.0.1:{system.zookeeper_port}")
    zookeeper.start()
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def elect_another_controller(system: System, broker_id: int) -> None:
    """Have another broker elected as controller if it is this one, so that the crash is not that of the controller."""
    from kazoo.exceptions import NoNodeError

    def is_another() -> bool:
        if controller_of(system) not in (-1, broker_id):
            return True
        with suppress(NoNodeError):
            zookeeper.delete("/controller")
        return False

    with _zookeeper(system) as zookeeper:
        _await(is_another, "no other broker became the controller", 1.0)


def _write_everywhere(producer: Any, name: str) -> None:
    """Write to all partitions; the client is made to ask for leaders all the time, because it would ask less and less
    often.
    """
    from confluent_kafka import KafkaException

    missing = set(range(PARTITIONS))
    for partition in range(PARTITIONS):

        def delivered(error: object, _message: object, partition: int = partition) -> None:
            if error is None:
                missing.discard(partition)

        producer.produce(name, b"x", partition=partition, on_delivery=delivered)
    deadline = time.monotonic() + WAIT_S_MAX
    while missing and time.monotonic() < deadline:
        with suppress(KafkaException):  # nobody answered in time
            producer.list_topics(name, timeout=1)
        producer.poll(POLL_S)
    if missing:
        raise BenchError(f"no acknowledged write on partitions {sorted(missing)}")


@contextmanager
def takeover(partitions: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Time from the crash of the controller until a broker knows a live leader of every partition."""
    count = work.scaled(partitions)
    with topic(system, new_topic_name(), count) as name:

        def measure() -> Metrics:
            await_all_in_sync(system, name)
            _elect_preferred(system)
            victim = controller_of(system)
            system.kill_broker(victim)
            start = time.monotonic()
            await_led_by_others(system, name, victim, count)
            moved_s = time.monotonic() - start
            system.start_broker(victim)
            await_all_in_sync(system, name)
            return {"moved_s": moved_s}

        yield measure


# ---- answers of the brokers


def _admin(system: System) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": system.bootstrap, "log_level": 0})


def _metadata(system: System) -> Any:
    return _admin(system).list_topics(timeout=WAIT_S_MAX)


def _partitions(system: System, names: list[str]) -> list[Any]:
    known = _metadata(system).topics
    return [partition for name in names if name in known for partition in known[name].partitions.values()]


def _led(system: System, names: list[str]) -> int:
    return sum(partition.leader >= 0 for partition in _partitions(system, names))


def controller_of(system: System) -> int:
    found: int = _metadata(system).controller_id
    return found


def await_led_by_others(system: System, name: str, victim: int, count: int, look_s: float = POLL_S) -> None:
    def led_by_others() -> int:
        return sum(partition.leader not in (-1, victim) for partition in _partitions(system, [name]))

    _await(lambda: led_by_others() == count, "not every partition got a new leader", look_s)


def await_all_in_sync(system: System, name: str, look_s: float = POLL_S) -> None:
    def holds() -> bool:
        found = _partitions(system, [name])
        return bool(found) and all(len(partition.isrs) == BROKERS and partition.leader >= 0 for partition in found)

    _await(holds, "the replicas did not get in sync", look_s)


def _elect_preferred(system: System) -> None:
    """Elect the preferred leaders, so that the controller leads its share after every round."""
    from confluent_kafka import ElectionType

    administer(system, lambda admin: admin.elect_leaders(ElectionType.PREFERRED))
    time.sleep(1.0)


def _await(holds: Callable[[], bool], otherwise: str, look_s: float = POLL_S) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise BenchError(f"{otherwise} within {WAIT_S_MAX:.0f} s")
        time.sleep(look_s)
