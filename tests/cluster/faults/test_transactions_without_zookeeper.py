"""ZooKeeper goes away within a transaction and comes back: coordinators and leaders go on, timeouts are kept."""

from pathlib import Path

import pytest

from odradek.client.cluster_client import ClusterClient
from odradek.client.producer_transaction import ProducerTransaction
from odradek.client.record_sender import NewRecord, RecordSender
from odradek.client.transaction_admin import describe_transaction
from odradek.local.zookeeper_server import EmbeddedZooKeeper
from odradek.model.topology import TopicPartition
from waiting import eventually

from ..own_cluster import PATIENCE_S, running_cluster
from ..stable_offset_monitor import SLACK_S, stable_offsets

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

TOPIC = TopicPartition("payments", 0)
SETTINGS = {
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_min_isr": "2",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "500",
    "zookeeper_session_timeout_ms": "30000",  # it comes back before the sessions are over
}


def test_transactions_end_while_zookeeper_is_away(tmp_path: Path) -> None:
    zookeeper = EmbeddedZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    try:
        with (
            running_cluster(tmp_path / "three", zookeeper.connect, **SETTINGS) as cluster,
            ClusterClient(cluster.bootstrap, timeout_ms=PATIENCE_S * 1_000) as client,
        ):
            cluster.create_topic(TOPIC.topic, (0, 1, 2))
            with stable_offsets(cluster.bootstrap, TOPIC) as monitor:
                committed = begin(client, "committed")
                write(client, committed, "1")
                zookeeper.kill()
                committed.end(commit=True)
                monitor.await_beyond(TOPIC, 1, SLACK_S)
                left_alone = begin(client, "left-alone", timeout_ms=1_000)
                write(client, left_alone, "never")
                monitor.await_beyond(TOPIC, 3, 1 + SLACK_S)
                spanning = begin(client, "spanning")
                write(client, spanning, "2")
                zookeeper.start()
                spanning.end(commit=False)
                monitor.await_beyond(TOPIC, 5, SLACK_S)
            for name, state in (("committed", "CompleteCommit"), ("left-alone", "CompleteAbort")):
                eventually(lambda name=name, state=state: describe_transaction(client, name).state == state)  # type: ignore[misc]
            after = begin(client, "after")
            write(client, after, "3")
            after.end(commit=True)
    finally:
        zookeeper.kill()


def begin(client: ClusterClient, name: str, timeout_ms: int = 60_000) -> ProducerTransaction:
    return ProducerTransaction(client, name, timeout_ms)


def write(client: ClusterClient, transaction: ProducerTransaction, value: str) -> None:
    RecordSender(client, TOPIC.topic, transaction=transaction).send({0: [NewRecord(None, value.encode())]})
