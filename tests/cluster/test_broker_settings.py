"""Settings of server.properties, as clients and operators see them on a running broker."""

import re
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from odradek.base.metric_descriptions import descriptions
from odradek.local.cluster_processes import LocalCluster
from odradek.local.server_process import serves
from odradek.local.zookeeper_server import free_port


@pytest.fixture(scope="module")
def external_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, external_port: int) -> Iterator[LocalCluster]:
    internal_port = free_port()
    settings = {
        "listeners": f"INTERNAL://127.0.0.1:{internal_port},EXTERNAL://127.0.0.1:{external_port}",
        "advertised.listeners": f"INTERNAL://127.0.0.1:{internal_port},EXTERNAL://localhost:{external_port}",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "odradek.metrics.port": "0",
        "log.retention.hour": "1",
        "background.threads": "3",
        "listener.name.external.max.connections": "2",
    }
    cluster = LocalCluster(tmp_path_factory.mktemp("settings"))
    try:
        cluster.start(None, None, settings)
        yield cluster
    finally:
        cluster.stop()


def log_of(cluster: LocalCluster) -> str:
    return cluster.broker(0).log_file.read_text()


def test_each_listener_tells_its_own_address(cluster: LocalCluster, external_port: int) -> None:
    internal = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=10)
    external = AdminClient({"bootstrap.servers": f"127.0.0.1:{external_port}"}).list_topics(timeout=10)
    assert [str(broker) for broker in internal.brokers.values()] == [f"{cluster.bootstrap_servers}/0"]
    assert [str(broker) for broker in external.brokers.values()] == [f"localhost:{external_port}/0"]


def test_an_unknown_key_is_a_warning_that_says_what_was_meant(cluster: LocalCluster) -> None:
    assert re.search(r"WARNING .*log\.retention\.hour is ignored; did you mean log\.retention\.hours", log_of(cluster))


def test_a_setting_without_effect_is_told_with_its_reason(cluster: LocalCluster) -> None:
    (told,) = [line for line in log_of(cluster).splitlines() if "background.threads" in line]
    assert "config has no effect" in told
    assert "background tasks share one thread" in told


def test_a_listener_has_its_own_limit_of_connections(cluster: LocalCluster, external_port: int) -> None:
    request = struct.pack(">ihhihi", 14, 3, 1, 7, -1, 0)  # Metadata

    def ask() -> socket.socket:
        connected = socket.create_connection(("127.0.0.1", external_port), 10)
        connected.sendall(request)
        return connected

    held = [ask(), ask()]
    try:
        for connection in held:
            assert len(connection.recv(8, socket.MSG_WAITALL)) == 8
        held.append(ask())
        held[2].settimeout(0.3)
        with pytest.raises(TimeoutError):
            held[2].recv(1)
        assert serves(cluster.broker(0).address), "the other listener is free"
        held[0].close()
        held[2].settimeout(30)
        assert len(held[2].recv(8, socket.MSG_WAITALL)) == 8
    finally:
        for connection in held:
            connection.close()


def test_traffic_is_counted_under_the_names_of_the_jmx_exporter(cluster: LocalCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(100):
        producer.produce("counted", str(number))
    assert producer.flush(10) == 0
    found = re.search(r"http://\S+/metrics", log_of(cluster))
    assert found
    with urllib.request.urlopen(found[0], timeout=10) as answer:
        metrics = answer.read().decode()
    assert 'kafka_server_brokertopicmetrics_messagesin_total{topic="counted"} 100.0' in metrics
    assert re.search(r'kafka_network_requestmetrics_requests_total\{request="Produce",version="\d+"\} [1-9]', metrics)
    for timing in ("requestqueue", "local", "remote", "responsesend", "total"):
        assert f'kafka_network_requestmetrics_{timing}timems{{quantile="0.99",request="Produce"}}' in metrics
    named = set(re.findall(r"^(\w+)(?:{| )", metrics, re.MULTILINE))
    assert named - set(descriptions()) == set(), "describe them in base/metric_descriptions.py"
    assert "# HELP kafka_server_replicamanager_leadercount Partitions that this broker leads." in metrics


def run_broker(directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to give up by itself."""
    lines = {"zookeeper.connect": "127.0.0.1:1", "log.dirs": str(directory / "logs"), **settings}
    properties = directory / "server.properties"
    properties.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in lines.items()))
    command = [sys.executable, "-m", "odradek", "broker", str(properties)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_bad_value_refuses_to_start_and_names_the_key(tmp_path: Path) -> None:
    stopped = run_broker(tmp_path, num_io_threads="many")
    assert stopped.returncode == 1
    assert stopped.stderr.count("\n") == 1
    assert "num.io.threads" in stopped.stderr
    assert "many" in stopped.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"authorizer.class.name": "com.example.Authorizer", "allow.everyone.if.no.acl.found": "false"},
            "com.example.Authorizer for configuration authorizer.class.name: Java classes can't run",
        ),
        ({"remote.log.storage.system.enable": "true"}, "storage.system.enable: tiered storage isn't supported"),
    ],
)
def test_a_broker_refuses_what_kafka_would_do_and_it_does_not(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    stopped = run_broker(tmp_path, **settings)
    assert stopped.returncode == 1
    assert stopped.stderr.startswith("error: Invalid value ")
    assert stopped.stderr.count("\n") == 1
    assert words in stopped.stderr
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("protocol", "settings", "words"),
    [
        ("SSL", {}, "needs a private key"),
        ("SSL", {"ssl.keystore.location": "/no/such/file"}, "ssl.keystore.location: No such file"),
        ("SASL_PLAINTEXT", {}, "listener SASL_PLAINTEXT: GSSAPI is in sasl.enabled.mechanisms and needs"),
        (
            "SASL_PLAINTEXT",
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "needs listener.name.sasl_plaintext.plain.sasl.jaas.config",
        ),
    ],
)
def test_a_listener_that_can_not_be_secured_stops_the_start(
    tmp_path: Path, protocol: str, settings: dict[str, str], words: str
) -> None:
    listeners = {"listeners": f"{protocol}://127.0.0.1:0", "security.inter.broker.protocol": protocol}
    stopped = run_broker(tmp_path, **listeners, **settings)
    assert stopped.returncode == 1
    assert words in stopped.stderr
    assert stopped.stderr.count("\n") == 1
    assert not (tmp_path / "logs").exists()


def test_a_second_broker_with_the_same_id_says_why_it_stops(tmp_path: Path, cluster: LocalCluster) -> None:
    settings = {
        "broker.id": "0",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "zookeeper.connect": cluster.zookeeper.connect,
        "zookeeper.session.timeout.ms": "2000",
    }
    stopped = run_broker(tmp_path, **settings)
    assert stopped.returncode == 1
    assert "a broker with id 0 is already registered at 127.0.0.1" in stopped.stderr
