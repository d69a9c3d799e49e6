"""Figures of consumer groups, with their targets.

A broker's `group.initial.rebalance.delay.ms` is 0 here, as in the server.properties that Kafka ships: three seconds of
waiting, the same for both, would hide everything else.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from odradek.apps.lab.bench.clients import Metrics, topic
from odradek.apps.lab.bench.figures import Figure, Work, at_least, at_most, new_topic_name
from odradek.apps.lab.bench.many_members import (
    ASK_AGAIN,
    WAIT_S_MAX,
    ManyMembers,
    commit,
    commit_error,
    commit_for_each,
    connected,
    coordinator_of,
    listed,
)
from odradek.apps.lab.bench.process_stats import rss_mb
from odradek.apps.lab.bench.systems import BenchError, System
from odradek.client.broker_client import BrokerClient, ConnectionFailed

BROKERS = 3
GROUPS = 10_000
MEMBERS = 1_000

_numbers = itertools.count(1)


def group_figures() -> Iterator[Figure]:
    for members in (10, 100):
        title = f"groups: {members} Java consumers join"
        yield Figure("groups", title, (at_most("stable_s", 1.0),), partial(java_consumers, members))
    for committers in (1, 8):
        title = f"groups: one commit per request, {committers} × Java commitSync"
        yield Figure("groups", title, (at_least("commits_per_s", 1.0),), partial(java_commits, committers))
    answers = (at_most("stable_s", 1.0), at_least("heartbeats_per_s", 1.0), at_most("left_s", 1.0))
    yield Figure("groups", f"groups: {MEMBERS:,} members at once", answers, partial(crowd, MEMBERS))
    work = (at_least("commits_per_s", 1.0), at_most("listed_s", 1.0))
    title = f"{GROUPS:,} groups, 100 commits in flight"
    yield Figure("groups", f"groups: {title}", work, partial(many, GROUPS))
    yield Figure("groups", f"RF {BROKERS}: {title}", work, partial(many, GROUPS), brokers=BROKERS)
    for groups in (1, GROUPS):
        title = f"RF {BROKERS}: kill -9 of the coordinator of {groups:,} group{'s' * (groups > 1)}"
        yield Figure("groups", title, (at_most("outage_s", 1.0),), partial(failover, groups), brokers=BROKERS)


def new_group_name() -> str:
    return f"group-{next(_numbers)}"


@contextmanager
def java_consumers(members: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure the time from the first poll of all members until each has its one partition, in the same generation."""
    with topic(system, new_topic_name(), members) as name:
        yield lambda: work.clients.probe("join", system, name, members, new_group_name())


@contextmanager
def java_commits(committers: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    with topic(system, new_topic_name(), 1) as name:
        yield lambda: work.clients.probe("commit", system, name, committers, 2 if work.quick else 5)


@contextmanager
def crowd(members: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    count = work.scaled(members)

    def measure() -> Metrics:
        group = new_group_name()
        _, address = coordinator_of(system, group)
        with ManyMembers(address, group, count) as everybody:
            stable_s = everybody.join()
            heartbeats_per_s = count / everybody.beat()
            return {"stable_s": stable_s, "heartbeats_per_s": heartbeats_per_s, "left_s": everybody.leave()}

    yield measure


@contextmanager
def many(groups: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Measure a commit of each of many groups, and a list of all, when the groups exist."""
    with topic(system, new_topic_name(), 1) as name, many_groups(system, name, work.scaled(groups)) as (client, names):
        offsets = itertools.count(1)

        def measure() -> Metrics:
            commits_per_s = commit_for_each(client, names, name, next(offsets))
            start = time.monotonic()
            if listed(client) < len(names):
                raise BenchError("groups are missing in the list")
            listed_s = time.monotonic() - start
            return {"commits_per_s": commits_per_s, "listed_s": listed_s, "rss_mb": rss_mb(system.broker_pids)}

        yield measure


@contextmanager
def many_groups(system: System, name: str, count: int) -> Iterator[tuple[BrokerClient, list[str]]]:
    names = [new_group_name() for _ in range(count)]
    _, address = coordinator_of(system, names[0])  # of them all: the offsets topic has one partition
    with connected(address) as client:
        _await_commit(system, names[0], name, 0)
        commit_for_each(client, names, name, 0)
        yield client, names


@contextmanager
def failover(groups: int, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Time from the crash of the coordinator to the first commit on another broker, which has all offsets by then."""
    with topic(system, new_topic_name(), 1) as name:
        count = work.scaled(groups) if groups > 1 else 1
        with many_groups(system, name, count) as (_, names):
            offsets = itertools.count(1)

            def measure() -> Metrics:
                _await_commit(system, names[0], name, next(offsets))
                victim, _ = coordinator_of(system, names[0])
                system.kill_broker(victim)
                start = time.monotonic()
                _await_commit(system, names[-1], name, next(offsets))
                outage_s = time.monotonic() - start
                system.start_broker(victim)
                time.sleep(5.0)  # it catches up, so that the next round can kill the other broker
                return {"outage_s": outage_s}

            yield measure


def _await_commit(system: System, group: str, name: str, offset: int) -> None:
    """Ask for the coordinator, then commit there, again and again."""
    deadline = time.monotonic() + WAIT_S_MAX
    error: object = None
    while time.monotonic() < deadline:
        try:
            with connected(coordinator_of(system, group)[1]) as client:
                error = commit_error(client.send(commit(group, name, offset)))
        except ConnectionFailed as lost:
            error = lost
        if not error:
            return
        if not isinstance(error, ConnectionFailed) and error not in ASK_AGAIN:
            break
        time.sleep(0.02)
    raise BenchError(f"no commit: {error}")
