"""Which kind of broker stored a record twice, in a cluster of Apache Kafka and Odradek.

A duplicate has one of two causes. The copies have the same producer epoch: the leader that took the second one didn't
know the first. Or the second has a higher epoch: a broker answered OUT_OF_ORDER_SEQUENCE_NUMBER, and the client
numbered its records anew. Odradek's brokers trace each answer and each leadership (`faults/planted/produce_trace.py`),
so that whatever is in no trace was done by Apache Kafka.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from chaos.history import History
from chaos.judge import Anomaly
from chaos.replica_files import StoredBatch, stored_batches
from odradek.apps.lab.cluster import ChaosCluster
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import read_header

PLANTED = Path(__file__).parent / "faults" / "planted"
_BECAME_LEADER = re.compile(r" (\S+)-(\d+) become leader epoch=(\d+) ")
_REFUSED = "-> OUT_OF_ORDER_SEQUENCE_NUMBER"


def tracing() -> dict[str, str]:
    """The environment of brokers that trace their answers to producers."""
    paths = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"ODRADEK_PRODUCE_TRACE": "1", "PYTHONPATH": os.pathsep.join(paths)}


def out_of_order_traced(cluster: ChaosCluster) -> Counter[int]:
    """How often each of Odradek's brokers answered OUT_OF_ORDER_SEQUENCE_NUMBER."""
    return Counter(broker for broker, line in _traced(cluster) if _REFUSED in line)


def led_by_odradek(cluster: ChaosCluster) -> dict[tuple[TopicPartition, int], int]:
    """The broker of each leader epoch that an Odradek broker led."""
    found = {}
    for broker, line in _traced(cluster):
        if match := _BECAME_LEADER.search(line):
            found[TopicPartition(match[1], int(match[2])), int(match[3])] = broker
    return found


def _traced(cluster: ChaosCluster) -> list[tuple[int, str]]:
    traces = {broker.id: broker.properties.with_name("produce-trace.log") for broker in cluster.brokers}
    return [(id, line) for id, path in traces.items() if path.exists() for line in path.read_text().splitlines()]


def not_by_kafka(
    duplicates: Sequence[Anomaly],
    history: History,
    cluster: ChaosCluster,
    replicas: Mapping[TopicPartition, Sequence[int]],
) -> list[Anomaly]:
    """The duplicates that an Odradek broker stored, or may have caused by its answers."""
    led, refused = led_by_odradek(cluster), out_of_order_traced(cluster)
    found = []
    for anomaly in duplicates:
        epochs = sorted(_epochs(batch) for batch in copies(anomaly, history, cluster, replicas))
        is_renumbered = epochs[-1][0] > epochs[0][0]
        if refused if is_renumbered else (anomaly.partition, epochs[-1][1]) in led:
            found.append(anomaly)
    return found


def copies(
    anomaly: Anomaly, history: History, cluster: ChaosCluster, replicas: Mapping[TopicPartition, Sequence[int]]
) -> list[StoredBatch]:
    """The batches of the partition that hold the record, on the first of its replicas, in the order of offsets."""
    tp, value = anomaly.partition, anomaly.detail.split()[0]
    offsets = {polled.offset for polled in history.polled if polled.value == value and polled.partition == tp}
    directory = cluster.brokers[replicas[tp][0]].log_dir / str(tp)
    return [
        batch
        for batch in stored_batches(directory)
        if any(batch.base_offset <= offset <= batch.last_offset for offset in offsets)
    ]


def _epochs(batch: StoredBatch) -> tuple[int, int]:
    """The producer's epoch and the leader's."""
    return read_header(batch.content).producer_epoch, batch.leader_epoch
