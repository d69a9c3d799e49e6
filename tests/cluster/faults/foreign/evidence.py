"""Evidence for an anomaly: the batches that hold a value, by replica, and the answers to their producer."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from chaos.history import History
from chaos.judge import Anomaly, Kind
from chaos.replica_files import StoredBatch, stored_batches
from odradek.apps.lab.cluster import ChaosCluster
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import read_header

_EXPLAINED_MAX: Final = 10
_AROUND: Final = 4


def write_history(history: History, path: Path) -> None:
    """Each event as a line of JSON: what was acknowledged, what failed, what was read."""
    with path.open("w") as file:
        for ack in history.acknowledged:
            file.write(json.dumps({"ack": ack.sent.value, "at": str(ack.sent.partition), "offset": ack.offset}) + "\n")
        for failed in history.failed:
            file.write(json.dumps({"failed": failed.sent.value, "error": failed.error}) + "\n")
        for polled in history.polled:
            place = {"at": str(polled.partition), "offset": polled.offset}
            file.write(json.dumps({"read": polled.value, **place}) + "\n")


def answers_in(directory: Path) -> Counter[str]:
    """Counts of refused batches by error, of duplicates, and of librdkafka's new producer epochs."""
    found: Counter[str] = Counter()
    for trace in directory.glob("cluster/*/produce-trace.log"):
        with trace.open() as lines:
            for line in lines:
                _, answered, text = line.rpartition(" -> ")
                answer = text.split()
                if not answered:
                    continue
                if not answer[0].startswith("offset="):
                    found[answer[0]] += 1
                elif answer[-1] == "duplicate":
                    found["duplicate"] += 1
    for log in directory.glob("p*.err"):
        with log.open(errors="replace") as lines:
            found["epoch raised"] += sum("bumped epoch to" in line for line in lines)
    return +found


def explain(
    anomalies: Sequence[Anomaly],
    history: History,
    cluster: ChaosCluster,
    partitions: Mapping[TopicPartition, Sequence[int]],
) -> list[str]:
    """For the first anomalies of each kind: the batches in question, and the answers about them."""
    lines: list[str] = []
    for kind in Kind:
        for anomaly in [each for each in anomalies if each.kind is kind][:_EXPLAINED_MAX]:
            lines.append(str(anomaly))
            tp = anomaly.partition
            value = anomaly.detail.split()[0]
            offsets = [p.offset for p in history.polled if p.value == value and p.partition == tp]
            for broker in partitions.get(tp, ()):
                directory = cluster.brokers[broker].log_dir / str(tp)
                batches = list(stored_batches(directory)) if directory.is_dir() else []
                lines += [f"  broker {broker}: {line}" for line in _batches_with(batches, offsets)]
                if kind in (Kind.LOST, Kind.UNSEEN):
                    lines += [f"  broker {broker} begins with {_shown(batch)}" for batch in batches[:_AROUND]]
            lines.append("")
    return lines


def _batches_with(batches: Sequence[StoredBatch], offsets: Iterable[int]) -> list[str]:
    wanted = list(offsets)
    return [
        _shown(batch) for batch in batches if any(batch.base_offset <= offset <= batch.last_offset for offset in wanted)
    ]


def _shown(batch: StoredBatch) -> str:
    header = read_header(batch.content)
    return (
        f"offsets {batch.base_offset}-{batch.last_offset} leader epoch {batch.leader_epoch} "
        f"producer {header.producer_id} epoch {header.producer_epoch} "
        f"sequence {header.base_sequence}-{header.last_sequence} timestamp {header.max_timestamp}"
    )
