"""Clusters of `odradek up --secure`: TLS everywhere, users, ACLs that deny by default."""

import itertools
import json
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import Permissions

from kafka_tools import KafkaTools
from odradek.base.config.broker_checks import AUTHORIZER
from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import AuthenticationRefused, ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.local.cluster_processes import LocalCluster
from odradek.local.server_process import serves
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.security.certificates import issue, new_authority
from odradek.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import unused_name
from .own_broker import run_odradek

SCRAM = "SCRAM-SHA-512"


def librdkafka(file: Path) -> dict[str, str | int]:
    """Settings of kcat.conf, which librdkafka's clients take as they are."""
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return {**{key: value for key, _, value in pairs}, "log_level": 0}


def test_kafka_s_tools_take_the_administrator_s_file(
    odradek_secure_cluster: OdradekCluster, kafka_tools: KafkaTools
) -> None:
    cluster, topic = odradek_secure_cluster, f"app-{unused_name()}"
    common = ("--bootstrap-server", cluster.bootstrap_servers)
    made = kafka_tools.run(
        "kafka-topics", *common, "--command-config", cluster.client_properties, "--create", "--topic", topic
    )
    assert made.status == 0, made.text
    sent = kafka_tools.run(
        "kafka-console-producer", *common, "--producer.config", cluster.app_properties, "--topic", topic, stdin="one\n"
    )
    assert sent.status == 0, sent.text
    read = kafka_tools.run(
        "kafka-console-consumer", *common, "--consumer.config", cluster.app_properties, "--topic", topic,
        "--group", "app-readers", "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000",
    )  # fmt: skip
    assert read.output.split() == ["one"], read.text


def test_the_application_may_do_what_begins_with_its_name(odradek_secure_cluster: OdradekCluster) -> None:
    cluster, topic = odradek_secure_cluster, unused_name()
    config = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config")
    assert run_odradek("topics", "create", topic, *config, cluster.client_properties).returncode == 0
    assert run_odradek("topics", "create", f"app-{topic}", *config, cluster.app_properties).returncode == 0
    refused = run_odradek("topics", "create", f"other-{topic}", *config, cluster.app_properties)
    assert "AUTHORIZATION_FAILED" in refused.stderr
    failures: list[KafkaError | None] = []
    producer = Producer(librdkafka(cluster.data_dir / "kcat.conf"))
    for name in (topic, f"app-{topic}"):
        producer.produce(name, b"x", on_delivery=lambda error, message: failures.append(error))
        producer.flush(20)
    assert [failure.code() if failure else 0 for failure in failures] == [KafkaError.TOPIC_AUTHORIZATION_FAILED, 0]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is absent (apt-get install kcat)")
def test_kcat_takes_its_file(odradek_secure_cluster: OdradekCluster) -> None:
    """Debian's librdkafka is older than 2.6.1 and sends the client's nonce twice: brokers of Kafka 3.9 allow it."""
    command = ["kcat", "-F", str(odradek_secure_cluster.data_dir / "kcat.conf"), "-L", "-m", "20"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert listed.returncode == 0, listed.stderr
    assert odradek_secure_cluster.bootstrap_servers.split(",")[0] in listed.stdout


def test_the_example_for_confluent_kafka_runs_as_it_is(odradek_secure_cluster: OdradekCluster) -> None:
    command = [sys.executable, str(odradek_secure_cluster.data_dir / "example.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert "read: hello" in done.stdout.splitlines(), done.stdout + done.stderr


def test_the_cluster_s_health_tells_when_certificates_end(odradek_secure_cluster: OdradekCluster) -> None:
    cluster = odradek_secure_cluster
    config = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", cluster.client_properties)
    (broker,) = json.loads(run_odradek("cluster", *config, "--format", "json").stdout)["brokers"]
    listed = run_odradek("certs", "list", "--data", cluster.data_dir, "--format", "json").stdout
    ends = {row["certificate"]: row["expires"] for row in json.loads(listed)}
    assert broker["certificate_ends"][:16].replace("T", " ") in ends.values()
    assert f"{broker['certificate_days_left']} days" in run_odradek("cluster", *config).stdout


def test_secrets_are_readable_by_their_owner_alone(odradek_secure_cluster: OdradekCluster) -> None:
    data = odradek_secure_cluster.data_dir
    files = [data / "client.properties", data / "app.properties", data / "kcat.conf", *(data / "security").iterdir()]
    files += [data / "broker-0" / "server.properties", data / "broker-0", data / "zookeeper"]
    assert len(files) == 11
    readable = {file.name for file in files if stat.S_IMODE(file.stat().st_mode) & 0o077}
    assert readable == {"ca.pem"}


def test_other_processes_of_the_machine_change_nothing_in_the_coordination_server(
    odradek_secure_cluster: OdradekCluster,
) -> None:
    """Otherwise they could put a user, an ACL or another controller there, without any password."""
    settings = parse_properties((odradek_secure_cluster.data_dir / "broker-0" / "server.properties").read_text())
    stranger = KazooClient(settings["zookeeper.connect"])
    stranger.start()
    try:
        found, waiting = [], ["/"]
        while waiting:
            path = waiting.pop()
            found.append(path)
            with suppress(NoAuthError, NoNodeError):
                waiting += [f"{path.rstrip('/')}/{name}" for name in stranger.get_children(path)]
        assert {"/config/users", "/kafka-acl-extended/prefixed/Topic/app", "/controller"} <= set(found)
        writable = []
        for path in found:
            with suppress(NoAuthError, NoNodeError):
                acls, _ = stranger.get_acls(path)
                writable += [path for acl in acls if acl.id.scheme == "world" and acl.perms != Permissions.READ]
        assert set(writable) <= {"/consumers", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}
        for path in ("/config/users/app", "/config/users/admin"):
            with pytest.raises(NoAuthError):
                stranger.get(path)
        for path in ("/config/users/eve", "/kafka-acl/Topic/x", "/brokers/ids/77", "/anything"):
            with pytest.raises(NoAuthError):
                stranger.create(path, b"{}")
        for path in ("/controller", "/brokers/ids/0", "/config/users/app"):
            with pytest.raises(NoAuthError):
                stranger.delete(path)
    finally:
        stranger.stop()
        stranger.close()


def test_tokens_can_be_made_at_once(odradek_secure_cluster: OdradekCluster) -> None:
    cluster = odradek_secure_cluster
    config = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config")
    created = run_odradek("tokens", "create", *config, cluster.app_properties, "--format", "json")
    assert created.returncode == 0, created.stderr
    (token,) = json.loads(created.stdout)
    login = f'{SCRAM_MODULE} required username="{token["token"]}" password="{token["secret"]}" tokenauth="true";'
    settings = {**parse_properties(cluster.app_properties.read_text()), "sasl.jaas.config": login}
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    with BrokerClient("127.0.0.1", port, security=ClientSecurity(settings)) as client:
        assert client.send(MetadataRequest(topics=[])).cluster_id


def passwords_of(cluster: OdradekCluster) -> dict[str, str]:
    return parse_properties((cluster.data_dir / "security" / "users.properties").read_text())


def command_lines() -> list[str]:
    """Of all processes of this machine, as `ps` shows them to everybody."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_passwords_are_in_no_process_list_and_in_no_file_but_their_own(odradek_secure_cluster: OdradekCluster) -> None:
    cluster, shown = odradek_secure_cluster, command_lines()
    assert any(str(cluster.data_dir) in line for line in shown)
    shared = parse_properties((cluster.data_dir / "security" / "brokers.properties").read_text())
    hidden = {shared["delegation.token.secret.key"], shared["odradek.zookeeper.digest"].partition(":")[2]}
    secrets = {*passwords_of(cluster).values(), *hidden}
    assert [line for line in shown if any(secret in line for secret in secrets)] == []
    own = {"client.properties", "app.properties", "kcat.conf", "users.properties", "brokers.properties"}
    own.add("server.properties")
    files = [file for file in cluster.data_dir.rglob("*") if file.is_file() and file.name not in own]
    leaks = [file for file in files if any(secret.encode() in file.read_bytes() for secret in secrets)]
    assert leaks == []


def audited(cluster: OdradekCluster, event: str) -> list[dict[str, str]]:
    files = cluster.data_dir.glob("broker-*/*/odradek-audit*.log")
    entries = [json.loads(line) for file in sorted(files) for line in file.read_text().splitlines()]
    return [entry for entry in entries if entry["event"] == event]


def test_failed_logins_are_in_the_audit_log(odradek_secure_cluster: OdradekCluster) -> None:
    cluster, settings = odradek_secure_cluster, parse_properties(odradek_secure_cluster.client_properties.read_text())
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    for user in ("app", "nobody-of-that-name"):
        module = f'{SCRAM_MODULE} required username="{user}" password="wrong";'
        with pytest.raises((ConnectionFailed, AuthenticationRefused)):
            BrokerClient("127.0.0.1", port, security=ClientSecurity({**settings, "sasl.jaas.config": module}))
    anonymous = {key: value for key, value in settings.items() if key.startswith("ssl.")}
    with pytest.raises(ConnectionFailed):
        BrokerClient("127.0.0.1", port + 200, security=ClientSecurity({**anonymous, "security.protocol": "SSL"}))
    eventually(lambda: "INTERNAL" in {entry["listener"] for entry in audited(cluster, "login failed")})
    entries = [entry for entry in audited(cluster, "login failed") if entry["listener"] != "INTERNAL"]
    assert [entry["principal"] for entry in entries[-2:]] == ["User:app", ""]
    assert {entry["host"] for entry in entries} == {"127.0.0.1"}
    assert "nobody-of-that-name" not in str(entries)


def test_no_way_in_without_a_certificate_or_a_password(odradek_secure_cluster: OdradekCluster) -> None:
    cluster = odradek_secure_cluster
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    for each in (port, port + 200):
        with pytest.raises(ConnectionFailed):
            BrokerClient("127.0.0.1", each)
    trust = {
        key: value
        for key, value in parse_properties(cluster.client_properties.read_text()).items()
        if key.startswith("ssl.")
    }
    anonymous = ClientSecurity({**trust, "security.protocol": "SSL"})
    for each in (port, port + 200):
        with pytest.raises(ConnectionFailed), BrokerClient("127.0.0.1", each, security=anonymous) as client:
            client.send(MetadataRequest(topics=[]))


def test_a_secure_cluster_stays_so_and_another_one_does_not_become_it(
    odradek_secure_cluster: OdradekCluster, tmp_path: Path
) -> None:
    with pytest.raises(FatalError, match="no laboratory"):
        LocalCluster(odradek_secure_cluster.data_dir).start(None, None, {}, lab=True)
    plain = tmp_path / "broker-0"
    plain.mkdir()
    (plain / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:1\n")
    with pytest.raises(FatalError, match="without --secure"):
        LocalCluster(tmp_path).start(None, None, {}, secure=True)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[OdradekCluster]:
    cluster = OdradekCluster(tmp_path / "three", brokers=3, secure=True)
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()


def test_three_brokers_replicate_over_mutual_tls_and_survive_a_crash(three: OdradekCluster) -> None:
    config = ("--bootstrap-server", three.bootstrap_servers, "--command-config", three.client_properties)
    made = run_odradek("topics", "create", "app-t", "--partitions", 3, "--replication-factor", 3, *config)
    assert made.returncode == 0, made.stderr
    settings = librdkafka(three.data_dir / "kcat.conf")
    producer = Producer({**settings, "acks": "all"})
    for n in range(30):
        producer.produce("app-t", str(n).encode(), partition=n % 3)
    assert producer.flush(30) == 0
    renewed = run_odradek("certs", "renew", "--broker", 1, "--data", three.data_dir)
    assert renewed.returncode == 0, renewed.stderr
    three.kill(0)
    for n in range(30, 60):
        producer.produce("app-t", str(n).encode(), partition=n % 3)
    assert producer.flush(60) == 0
    three.start(0)
    consumer = Consumer({**settings, "group.id": "app-readers"})
    consumer.assign([TopicPartition("app-t", partition, 0) for partition in range(3)])
    found = sorted(int(message.value() or b"") for message in consumer.consume(60, 30))
    consumer.close()
    assert found == list(range(60))


class _Load:
    """Writes numbers with acks=all until it is stopped; knows which were acknowledged."""

    def __init__(self, settings: Mapping[str, str | int], first: int) -> None:
        self.acknowledged: list[int] = []
        self.errors: list[KafkaError] = []
        self._first = first
        self._producer = Producer({**settings, "acks": "all", "enable.idempotence": True, "log_level": 0})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        for n in itertools.count(self._first):
            self._producer.produce("t", str(n).encode(), partition=n % 3, on_delivery=self._told)
            self._producer.poll(0.002)
            if self._stopping.is_set():
                return

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value() or b""))
        else:
            self.errors.append(error)


def _restart_each(
    cluster: OdradekCluster, change: Callable[[dict[str, str]], None], security: ClientSecurity | None = None
) -> None:
    """`security`: of brokers that have no PLAINTEXT listener any more."""
    for broker_id in range(3):
        file = cluster.data_dir / f"broker-{broker_id}" / "server.properties"
        properties = parse_properties(file.read_text())
        change(properties)
        cluster.stop(broker_id)
        file.write_text(format_properties(properties))
        if security is None:
            cluster.start(broker_id)
        else:
            broker = cluster._processes.broker(broker_id)
            broker.start()
            eventually(partial(serves, broker.address, security))


def _client_security(authority: Path, mechanism: str = "PLAIN") -> ClientSecurity:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return ClientSecurity(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="alice" password="y";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority),
        }
    )


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_from_plaintext_to_sasl_ssl_and_to_another_mechanism_by_rolling_restarts_under_load(tmp_path: Path) -> None:
    authority = new_authority("test CA", 2)
    host = issue(authority, "broker", ["127.0.0.1"], 2)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "broker.pem").write_bytes(host.key + host.certificate)
    module = f'{PLAIN_MODULE} required username="b" password="x" user_b="x" user_alice="y";'
    alice: dict[str, str | int] = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "y",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }  # fmt: skip

    def with_another_listener(properties: dict[str, str]) -> None:
        port = int(properties["listeners"].rpartition(":")[2])
        properties |= {
            "listeners": f"{properties['listeners']},SASL_SSL://127.0.0.1:{port + 300}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": module,
        }

    def without_plaintext(properties: dict[str, str]) -> None:
        properties["listeners"] = properties["listeners"].partition(",")[2]
        properties |= {"authorizer.class.name": AUTHORIZER, "super.users": "User:b;User:alice"}

    def with_another_mechanism(properties: dict[str, str]) -> None:
        properties["sasl.enabled.mechanisms"] = f"PLAIN,{SCRAM}"
        login = f'{SCRAM_MODULE} required username="b" password="x";'
        properties["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"] = login

    def without_the_first(properties: dict[str, str]) -> None:
        properties["sasl.enabled.mechanisms"] = SCRAM
        del properties["listener.name.sasl_ssl.plain.sasl.jaas.config"]

    cluster = OdradekCluster(tmp_path / "rolling", brokers=3)
    try:
        cluster.start_all()
        bootstrap = cluster.bootstrap_servers
        made = run_odradek(
            "topics", "create", "t", "--partitions", 3, "--replication-factor", 3, "--bootstrap-server", bootstrap
        )
        assert made.returncode == 0, made.stderr
        secured = ",".join(f"127.0.0.1:{int(each.rpartition(':')[2]) + 300}" for each in bootstrap.split(","))
        loads = [_Load({"bootstrap.servers": bootstrap}, 0)]
        try:
            _restart_each(cluster, with_another_listener)
            _restart_each(cluster, lambda properties: properties.update({"security.inter.broker.protocol": "SASL_SSL"}))
            loads.append(_Load({"bootstrap.servers": secured, **alice}, 10_000_000))
            loads[0].stop()
            security = _client_security(tmp_path / "ca.pem")
            _restart_each(cluster, without_plaintext, security)
            with ClusterClient(secured, security=security) as client:
                for user, password in (("b", "x"), ("alice", "y")):
                    alter_credentials(client, user, [NewPassword(SCRAM, password)])
            _restart_each(cluster, with_another_mechanism, security)
            _restart_each(
                cluster,
                lambda properties: properties.update({"sasl.mechanism.inter.broker.protocol": SCRAM}),
                security,
            )
            alice["sasl.mechanism"] = SCRAM
            loads.append(_Load({"bootstrap.servers": secured, **alice}, 20_000_000))
            loads[1].stop()
            _restart_each(cluster, without_the_first, _client_security(tmp_path / "ca.pem", SCRAM))
        finally:
            for load in loads:
                load.stop()
        with pytest.raises(ConnectionFailed):
            BrokerClient("127.0.0.1", int(bootstrap.rpartition(":")[2]))
        with pytest.raises((ConnectionFailed, AuthenticationRefused)):
            BrokerClient("127.0.0.1", int(secured.rpartition(":")[2]), security=_client_security(tmp_path / "ca.pem"))
        consumer = Consumer({"bootstrap.servers": secured, **alice, "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition("t", partition, 0) for partition in range(3)])
        acknowledged = sorted(number for load in loads for number in load.acknowledged)
        found: list[int] = []
        while len(found) < len(acknowledged) and (messages := consumer.consume(1000, 20)):
            found += [int(message.value() or b"") for message in messages]
        consumer.close()
        assert [load.errors for load in loads] == [[], [], []]
        assert sorted(found) == acknowledged
    finally:
        cluster.stop_all()
