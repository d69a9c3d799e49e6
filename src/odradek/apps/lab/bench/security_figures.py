"""Figures of TLS, of logins and of ACLs, with their targets. Both systems have the same keys, users and ACLs.

TLS is 1.3 with certificates on P-256, in which both choose TLS_AES_256_GCM_SHA384.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from odradek.apps.lab.bench.clients import Batching, Metrics, SecuredWay, run, topic
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
    new_topic_name,
)
from odradek.apps.lab.bench.process_stats import thread_cpu_seconds
from odradek.apps.lab.bench.systems import SCRAM, BenchError, ListenerStores, System
from odradek.base.config.properties import format_properties
from odradek.client.acl_admin import EVERY_ENTRY, EVERY_PATTERN, create_acls, delete_acls
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.model.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from odradek.security.certificates import issue, new_authority

CLIENTS = 4
MEASURED_S, WARM_S = 5.0, 5.0
ACLS, USERS_EACH, ACLS_PER_REQUEST = 10_000, 10, 500
PRODUCE_REQUESTS = 10_000
PASSWORD = "secret"
ADMIN_TIMEOUT_MS = 120_000
_CA, _KEY = "ca.pem", "broker.pem"
_DAYS = 2


def security_figures() -> Iterator[Figure]:
    fast = (at_least("records_per_s", 1.0), at_most("cpu_s_per_gb", 0.8))
    for batching in (LARGE_BATCHES, SMALL_BATCHES):
        title = f"TLS: produce 1 KB, {batching.batch_bytes // 1024} KB batches, acks=1"
        yield _figure(title, fast, partial(produce_over_tls, batching))
    yield _figure("TLS: consume 1 KB, assigned partitions", fast, consume_over_tls)
    each = at_most("cpu_ms_each", 1.0)
    yield _figure("TLS: handshakes", (at_least("handshakes_per_s", 1.0), each), handshakes)
    yield _figure(f"{SCRAM}: logins", (at_least("logins_per_s", 1.0), each), logins)
    title = f"ACLs: produce 1 KB with {ACLS:,} ACLs ÷ as a super user"
    yield _figure(title, (Target("acl_cpu", 1.05, absolute=True),), produce_with_acls)


def _figure(title: str, targets: tuple[Target, ...], session: Session) -> Figure:
    return Figure("security", title, targets, session, is_secured=True)


def listener_stores(directory: Path) -> ListenerStores:
    """Key and certificate of a broker, made once for both systems."""
    if not (directory / _KEY).exists():
        authority = new_authority("bench CA", _DAYS)
        host = issue(authority, "broker", ["127.0.0.1"], _DAYS)
        (directory / _CA).write_bytes(authority.certificate)
        (directory / _KEY).write_bytes(host.key + host.certificate)
    return ListenerStores(directory / _KEY)


def _stores(system: System) -> ListenerStores:
    if system.security is None:
        raise BenchError(f"{system.name} has no secured listeners")
    return system.security


def _tls_way(work: Work, system: System) -> SecuredWay:
    file = work.clients.directory / "tls.properties"
    file.write_text(
        format_properties(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(work.clients.directory / _CA),
                "ssl.enabled.protocols": "TLSv1.3",
            }
        )
    )
    return SecuredWay(f"127.0.0.1:{_stores(system).tls_port}", file)


@contextmanager
def produce_over_tls(batching: Batching, work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    way, records = _tls_way(work, system), work.loads["1 KB"]
    with topic(system, new_topic_name(), PARTITIONS) as name:
        yield lambda: work.clients.producer_performance(system, name, records, batching, "1", way=way)


@contextmanager
def consume_over_tls(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    way, records = _tls_way(work, system), work.loads["1 KB"]
    with topic(system, new_topic_name(), PARTITIONS) as name:
        work.clients.producer_performance(system, name, records, LARGE_BATCHES, "1")
        yield lambda: work.clients.probe("consume", system, name, records.count, 0, way=way)


@contextmanager
def handshakes(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    yield from _connecting(work, system, "handshakes_per_s", "tls", str(_stores(system).tls_port))


@contextmanager
def logins(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    _create_users(system, ["alice"])
    port = str(_stores(system).sasl_port)
    yield from _connecting(work, system, "logins_per_s", "scram", port, credential=("alice", PASSWORD))


def _connecting(
    work: Work, system: System, metric: str, mode: str, port: str, credential: Sequence[str] = ()
) -> Iterator[Callable[[], Metrics]]:
    def connect_for(seconds: float) -> int:
        command = [sys.executable, "-m", "odradek.apps.lab.bench.login_client", mode, port, str(seconds), *credential]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)]
        counts = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise BenchError(f"{mode} clients failed at {system.name}")
        return sum(map(int, counts))

    def measure() -> Metrics:
        seconds = MEASURED_S / 5 if work.quick else MEASURED_S
        before = thread_cpu_seconds(system.broker_pids)
        count = connect_for(seconds)
        used_s = thread_cpu_seconds(system.broker_pids) - before
        return {metric: count / seconds, "cpu_ms_each": used_s * 1000 / count}

    connect_for(WARM_S / 5 if work.quick else WARM_S)
    yield measure


@contextmanager
def produce_with_acls(work: Work, system: System) -> Iterator[Callable[[], Metrics]]:
    """Broker CPU of a user whom ACLs authorize, over that of a super user: as many requests each, in turn."""
    _create_users(system, ["alice", "admin"])
    port, requests = str(_stores(system).sasl_port), str(work.scaled(PRODUCE_REQUESTS))
    with topic(system, new_topic_name(), PARTITIONS) as name, _acls(system, name):

        def cost_of(user: str) -> float:
            before = thread_cpu_seconds(system.broker_pids)
            words = ["odradek.apps.lab.bench.produce_client", port, user, PASSWORD, name, str(PARTITIONS), requests]
            run([sys.executable, "-m", *words])
            return thread_cpu_seconds(system.broker_pids) - before

        def measure() -> Metrics:
            costs = [(user, cost_of(user)) for user in ("admin", "alice", "alice", "admin") * 2]
            by_user = {name: sum(cost for user, cost in costs if user == name) for name in ("alice", "admin")}
            return {"acl_cpu": by_user["alice"] / by_user["admin"]}

        cost_of("admin")
        yield measure


def _create_users(system: System, users: Sequence[str]) -> None:
    with ClusterClient(system.bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as client:
        for user in users:
            alter_credentials(client, user, [NewPassword(SCRAM, PASSWORD)])
    time.sleep(1.0)  # until each broker knows the user


def acl_bindings(name: str) -> list[AclBinding]:
    """Ten thousand ACLs, each for one of ten users, a tenth of them for prefixes; alice may write to the topic."""
    users = ["User:alice", *(f"User:user-{number}" for number in range(1, USERS_EACH))]
    patterns = [ResourcePattern(ResourceType.TOPIC, name)]
    for number in range(1, ACLS // USERS_EACH):
        kind = PatternType.LITERAL if number % 10 else PatternType.PREFIXED
        patterns.append(ResourcePattern(ResourceType.TOPIC, f"other-{number}", kind))
    return [
        AclBinding(pattern, AclEntry(user, "*", AclOperation.WRITE, PermissionType.ALLOW))
        for pattern in patterns
        for user in users
    ]


@contextmanager
def _acls(system: System, name: str) -> Iterator[None]:
    bindings = acl_bindings(name)
    with ClusterClient(system.bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as client:
        for begin in range(0, len(bindings), ACLS_PER_REQUEST):
            create_acls(client, bindings[begin : begin + ACLS_PER_REQUEST])
        time.sleep(2.0)
        try:
            yield
        finally:
            delete_acls(client, [AclFilter(EVERY_PATTERN, EVERY_ENTRY)])
