"""Figures of transactions, with their targets: ends under load, many at once, committed reads, a lost coordinator."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from odradek.apps.lab.bench.clients import Metrics, topic
from odradek.apps.lab.bench.cluster_figures import (
    BROKERS,
    await_all_in_sync,
    elect_another_controller,
    end_of_session,
)
from odradek.apps.lab.bench.figures import (
    PARTITIONS,
    Figure,
    Session,
    Target,
    Work,
    at_least,
    at_most,
    new_topic_name,
)
from odradek.apps.lab.bench.many_transactions import ManyTransactions, transaction_coordinator
from odradek.apps.lab.bench.process_stats import cpu_seconds
from odradek.apps.lab.bench.systems import System
from odradek.model.topic_names import TRANSACTIONS_TOPIC

PROBE = "TransactionProbe"
OPEN = 1_000
IN_A_ROW = 5
COMMITTED, PER_TRANSACTION = 200_000, 500

_numbers = itertools.count(1)


def transaction_figures() -> Iterator[Figure]:
    for brokers, transaction_ms in itertools.product((1, BROKERS), (100, 10)):
        targets = (
            at_least("records_per_s", 1.0),
            at_most("commit_p50_ms", 1.0),
            at_most("commit_p99_ms", 1.0),
            at_most("cpu_s_per_gb", 0.8),
        )
        title = f"produce 1 KB, 16 KB batches, transactions of {transaction_ms} ms"
        yield _figure(brokers, title, *targets, session=partial(produce, transaction_ms))
    for brokers in (1, BROKERS):
        ends = at_least("transactions_per_s", 1.0), at_most("cpu_ms_each", 0.8)
        yield _figure(brokers, f"{OPEN:,} open transactions at once", *ends, session=partial(open_at_once, OPEN))
    reads = at_least("records_per_s", 1.0), at_most("cpu_s_per_gb", 0.8)
    yield _figure(1, "consume 1 KB, read_committed, each tenth transaction aborted", *reads, session=consume)
    for count in (1, OPEN):
        title = f"kill -9 of the coordinator of {count:,} open transaction{'s' * (count > 1)}"
        times = at_most("outage_s", 1.0), at_most("after_session_s", 1.0)
        yield _figure(BROKERS, title, *times, session=partial(failover, count))


def _figure(brokers: int, title: str, *targets: Target, session: Session) -> Figure:
    if brokers == 1:
        return Figure("transactions", title, targets, session)
    return Figure("cluster-transactions", f"RF {brokers}: {title}", targets, session, brokers=brokers)


@contextmanager
def produce(transaction_ms: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure Java's producer at full speed; the latency is that of an end after all records are acknowledged."""
    with topic(system, new_topic_name(), PARTITIONS) as name:
        seconds = 3 if work.quick else 10
        work.clients.probe("produce", system, name, seconds, transaction_ms, program=PROBE)  # the JVM's compiler
        yield lambda: work.clients.probe("produce", system, name, seconds, transaction_ms, program=PROBE)


@contextmanager
def open_at_once(count: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure the time from the first AddPartitionsToTxn until readers of committed records see the last record."""
    with (
        topic(system, new_topic_name(), PARTITIONS) as name,
        ManyTransactions(system, name, PARTITIONS, new_ids(work.scaled(count))) as transactions,
    ):
        transactions.open()
        transactions.end()

        def measure() -> Metrics:
            before, start = cpu_seconds(system.broker_pids), time.monotonic()
            for _ in range(IN_A_ROW):
                transactions.open()
                transactions.end()
            ended = IN_A_ROW * work.scaled(count)
            rate = ended / (time.monotonic() - start)
            return {
                "transactions_per_s": rate,
                "cpu_ms_each": 1000 * (cpu_seconds(system.broker_pids) - before) / ended,
            }

        yield measure


@contextmanager
def consume(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), PARTITIONS) as name:
        wanted = work.scaled(COMMITTED)
        filled = work.clients.probe("fill", system, name, wanted, PER_TRANSACTION, program=PROBE)
        yield lambda: work.clients.probe("consume", system, name, round(filled["committed"]), program=PROBE)


@contextmanager
def failover(count: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure the time from the crash of the coordinator to the end of a transaction that was open then, at another
    broker.

    Most of it is ZooKeeper's: a session ends in steps of a tick. The time after that is a figure of its own. The
    controller lives: the time of its election is another figure.
    """
    with topic(system, new_topic_name(), PARTITIONS) as name:
        ids = new_ids(work.scaled(count) if count > 1 else 1)

        def measure() -> Metrics:
            await_all_in_sync(system, name)
            with ManyTransactions(system, name, PARTITIONS, ids) as transactions:
                transactions.open()
                victim, _ = transaction_coordinator(system, ids[0])
                elect_another_controller(system, victim)
                with end_of_session(system, victim) as ended_at:
                    system.kill_broker(victim)
                    start = time.monotonic()
                    transactions.end_one_elsewhere()
                    end = time.monotonic()
                transactions.end_others_elsewhere()
            system.start_broker(victim)
            await_all_in_sync(system, name)
            await_all_in_sync(system, TRANSACTIONS_TOPIC)
            return {"outage_s": end - start, "after_session_s": end - ended_at[0]}

        yield measure


def new_ids(count: int) -> list[str]:
    return [f"transaction-{next(_numbers)}" for _ in range(count)]
