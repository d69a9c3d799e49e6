"""Pipelines on a cluster that demands TLS and passwords, as `odradek up --secure` starts it."""

import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from odradek.apps.pipeline.kafka_settings import KafkaSettings, use_kafka_settings
from odradek.apps.pipeline.source.cluster import Cluster
from odradek.apps.pipeline.source.options import read_options, write_options
from odradek.apps.pipeline.source.writer import RowProducer
from odradek.base.config.properties import parse_properties
from odradek.client.cluster_client import ClusterClient
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE, SETTINGS_VARIABLE
from odradek.client.topic_admin import create_topic
from odradek.testing import OdradekCluster
from waiting import eventually

PROJECT = """
[pipeline]
name = "safe"
bootstrap = "{bootstrap}"
[pipeline.kafka]
properties = "{properties}"
[sources.orders]
topic = "safe-orders"
schema = "id INT"
[sinks.all_orders]
from = "orders"
table = "table"
"""


@pytest.fixture
def secure(odradek_secure_cluster: OdradekCluster, monkeypatch: pytest.MonkeyPatch) -> OdradekCluster:
    for name in (SETTINGS_VARIABLE, COMMAND_CONFIG_VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    use_kafka_settings(KafkaSettings(parse_properties(odradek_secure_cluster.client_properties.read_text())))
    return odradek_secure_cluster


def filled(cluster: OdradekCluster, topic: str, count: int) -> None:
    """By the tools' client and by librdkafka, both with the security of the process."""
    import pyarrow as pa

    with ClusterClient(cluster.bootstrap_servers) as client:
        create_topic(client, topic)
    options = write_options({"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": topic})
    rows = pa.record_batch({"value": [b'{"id": %d}' % number for number in range(count)]})
    assert RowProducer(options).write(iter([rows])).rows == count


def test_sources_and_sinks_have_the_security_of_the_pipeline(secure: OdradekCluster) -> None:
    filled(secure, "app-plain", 5)
    options = {"kafka.bootstrap.servers": secure.bootstrap_servers, "subscribe": "app-plain"}
    cluster = Cluster(read_options(options, streaming=True))
    assert list(cluster.latest(cluster.partitions()).values()) == [5]


@pytest.mark.soak
def test_a_whole_run(secure: OdradekCluster, tmp_path: Path) -> None:
    filled(secure, "safe-orders", 20)
    text = PROJECT.format(bootstrap=secure.bootstrap_servers, properties=secure.client_properties)
    (tmp_path / "pipeline.toml").write_text(text)
    command = [sys.executable, "-m", "odradek", "pipeline", "run", str(tmp_path), "--once", "--master", "local[1]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert DeltaTable(tmp_path / "table").to_pyarrow_table().num_rows == 20
    jaas = parse_properties(secure.client_properties.read_text())["sasl.jaas.config"]
    secret = jaas.split('password="')[1].split('"')[0]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file


def test_the_audit_log_is_a_frame(spark: SparkSession, secure: OdradekCluster) -> None:
    """Spark reads the lines as they are, those of rotated files too."""
    with ClusterClient(secure.bootstrap_servers) as client:
        create_topic(client, "app-audited")
    pattern = str(secure.data_dir / "broker-*" / "logs" / "odradek-audit.log*")

    def creators() -> list[tuple[str, str]]:
        audit = spark.read.json(pattern)
        found = audit.where("event = 'change' and request = 'CREATE_TOPICS' and errors = array('NONE')")
        named = found.where(f.array_contains("detail.topics.name", "app-audited"))
        return [(row.principal, row.host) for row in named.collect()]

    eventually(lambda: creators() == [("User:admin", "127.0.0.1")])
