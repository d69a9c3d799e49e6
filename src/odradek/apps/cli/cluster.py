"""`odradek cluster`: cluster health on one screen."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from odradek.apps.cli.colour import styled
from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_DATA,
    BootstrapOption,
    Format,
    FormatOption,
    print_json,
    print_rows,
)
from odradek.apps.cli.terminal import say
from odradek.apps.cli.usage import Exit
from odradek.apps.cli.watch import watchable
from odradek.apps.figures import plural, size_text
from odradek.base.errors import ErrorCode
from odradek.client.cluster_client import ClusterClient
from odradek.client.cluster_health import BrokerHealth, ClusterHealth, examine
from odradek.client.log_dir_admin import LogDir
from odradek.model.topology import TopicPartition

_NAMED_MAX = 6
_DISK_FULL_PERCENT = 85.0
_CERTIFICATE_DAYS_MIN = 14
_DAY_S = 86_400
_BROKER_COLUMNS = (
    "broker",
    "address",
    "rack",
    "role",
    "leaders",
    "imbalance",
    "replicas",
    "out_of_sync",
    "data",
    "disk_used",
)


@command(examples=["odradek cluster", "odradek cluster --watch 2", "odradek cluster --check && deploy"])
@watchable
def cluster(
    check: Annotated[bool, Option("--check", help="Exit code 1 unless the cluster is healthy.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show controller, brokers, unhealthy partitions, leaders that are not the preferred ones, disks, ends of
    certificates."""
    with ClusterClient(bootstrap_server) as client:
        health = examine(client)
    if output.is_table:
        _print_page(health, output)
    elif output is Format.JSON:
        print_json(_summary(health) | {"brokers": [_broker_row(health, broker) for broker in health.brokers]})
    else:
        print_rows([_summary(health)], list(_summary(health)), output)
    if check and not health.is_well:
        raise Exit(1)


def _print_page(health: ClusterHealth, output: Format) -> None:
    verdict = ("healthy", "green") if health.is_well else (f"degraded: {_degraded(health)}", "bold red")
    print(f"{styled('cluster', 'bold', sys.stdout)} {health.cluster_id}   {styled(*verdict, sys.stdout)}")
    _print_line("controller", "none" if health.controller is None else f"broker {health.controller}", True)
    brokers = f"{len(health.brokers)} live" + _missing(health.missing_brokers)
    _print_line("brokers", brokers, not health.missing_brokers)
    _print_line("partitions", f"{health.partitions} in {plural(health.topics, 'topic')}", True)
    for name, partitions, is_problem in (
        ("offline", health.offline, True),
        ("under min ISR", health.under_min_isr, True),
        ("at min ISR", health.at_min_isr, True),
        ("under-replicated", health.under_replicated, True),
        ("not preferred", health.not_preferred, False),
    ):
        _print_line(name, _counted(partitions), not (partitions and is_problem))
    print()
    has_tls = any(broker.certificate_ends_s is not None for broker in health.brokers)
    columns = (*_BROKER_COLUMNS, "certificate") if has_tls else _BROKER_COLUMNS
    print_rows([_shown(_broker_row(health, broker)) for broker in health.brokers], columns, output)
    if health.missing_brokers:
        where = "" if DEFAULT_DATA.is_dir() else " --data DIR"
        say(f"start the missing broker again: odradek start{where} {health.missing_brokers[0]}")
    elif health.not_preferred:
        say("run a preferred leader election with: odradek elections --all-topic-partitions")


def _degraded(health: ClusterHealth) -> str:
    counted = (
        (len(health.missing_brokers), "broker", "down"),
        (len(health.offline), "partition", "offline"),
        (len(health.under_min_isr), "partition", "under min ISR"),
        (len(health.under_replicated), "partition", "under-replicated"),
        (sum(broker.directories is None for broker in health.brokers), "broker", "without an answer"),
        (sum(bool(d.error) for b in health.brokers for d in b.directories or ()), "log dir", "failed"),
    )
    found = [f"{plural(number, noun)} {what}" for number, noun, what in counted if number]
    return ", ".join(found) or "no controller"


def _print_line(name: str, text: str, is_well: bool) -> None:
    print(styled(f"{name:<17}", "bold", sys.stdout) + styled(text, "" if is_well else "red", sys.stdout))


def _missing(brokers: Sequence[int]) -> str:
    return f"; missing: {', '.join(map(str, brokers))}" if brokers else ""


def _counted(partitions: Sequence[TopicPartition]) -> str:
    if not partitions:
        return "0"
    named = ", ".join(str(tp) for tp in partitions[:_NAMED_MAX])
    return f"{len(partitions)}   {named}{', …' if len(partitions) > _NAMED_MAX else ''}"


def _broker_row(health: ClusterHealth, broker: BrokerHealth) -> dict[str, object]:
    dirs, ends_s = broker.directories, broker.certificate_ends_s
    return {
        "broker": broker.id,
        "address": broker.address,
        "rack": broker.rack,
        "is_controller": broker.id == health.controller,
        "leaders": broker.leads,
        "preferred": broker.preferred,
        "imbalance_percent": round(broker.preferred_imbalance_percent, 1),
        "replicas": broker.replicas,
        "out_of_sync": broker.out_of_sync,
        "data_bytes": None if dirs is None else sum(log_dir.size for log_dir in dirs),
        "disks": None if dirs is None else [_disk(log_dir) for log_dir in dirs],
        "certificate_ends": None if ends_s is None else f"{datetime.fromtimestamp(ends_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "certificate_days_left": None if ends_s is None else int((ends_s - time.time()) // _DAY_S),
    }


def _disk(log_dir: LogDir) -> dict[str, object]:
    used = log_dir.used_percent
    error = None if log_dir.error is ErrorCode.NONE else log_dir.error.name
    return {"path": log_dir.path, "used_percent": None if used is None else round(used, 1), "error": error}


def _shown(row: dict[str, Any]) -> dict[str, object]:
    """Row for people: sizes with units, shares with a percent sign."""
    exact = ("is_controller", "imbalance_percent", "data_bytes", "certificate_days_left")
    return {name: value for name, value in row.items() if name not in exact} | {
        "role": "controller" if row["is_controller"] else "",
        "imbalance": f"{row['imbalance_percent']:.0f}%",
        "data": None if row["data_bytes"] is None else size_text(row["data_bytes"]),
        "disk_used": "no answer" if row["disks"] is None else ", ".join(map(_used, row["disks"])),
        "disks": None if row["disks"] is None else [disk["path"] for disk in row["disks"]],
        "certificate": _left(row["certificate_days_left"]),
    }


def _left(days: int | None) -> str | None:
    """Time until a certificate ends, with an exclamation mark where it has to be renewed."""
    if days is None or days < 0:
        return None if days is None else "expired !"
    return plural(days, "day") + (" !" if days < _CERTIFICATE_DAYS_MIN else "")


def _used(disk: dict[str, Any]) -> str:
    if disk["error"]:
        return str(disk["error"])
    used = disk["used_percent"]
    return "unknown" if used is None else f"{used:.0f}%" + (" !" if used >= _DISK_FULL_PERCENT else "")


def _summary(health: ClusterHealth) -> dict[str, object]:
    return {
        "cluster_id": health.cluster_id,
        "healthy": health.is_well,
        "controller": health.controller,
        "live_brokers": [broker.id for broker in health.brokers],
        "missing_brokers": list(health.missing_brokers),
        "topics": health.topics,
        "partitions": health.partitions,
        "offline": [str(tp) for tp in health.offline],
        "under_min_isr": [str(tp) for tp in health.under_min_isr],
        "at_min_isr": [str(tp) for tp in health.at_min_isr],
        "under_replicated": [str(tp) for tp in health.under_replicated],
        "not_preferred": [str(tp) for tp in health.not_preferred],
    }
