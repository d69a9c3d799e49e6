"""server.properties as values: what is taken, what is refused and why."""

import types
import typing
from dataclasses import fields
from pathlib import Path

import pytest

from odradek.base.config import broker_checks
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigType, Password
from odradek.base.config.keys import STATIC_KEYS
from odradek.base.config.listeners import Listener, SecurityProtocol
from odradek.base.config.topic_defaults import topic_defaults
from odradek.base.errors import ConfigError

MINIMAL = {"zookeeper.connect": "zk:2181"}
TWO = "PLAINTEXT:PLAINTEXT,B:PLAINTEXT"


def config(**properties: str) -> BrokerConfig:
    """Keys with underscores for dots."""
    return BrokerConfig.from_properties(MINIMAL | {name.replace("_", "."): text for name, text in properties.items()})


def refusal(**properties: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config(**properties)
    return str(caught.value)


def test_defaults() -> None:
    broker = config()
    assert broker.broker_id == -1
    assert broker.num_network_threads == 3
    assert broker.listeners == (Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, "", 9092),)
    assert broker.advertised_listeners == broker.listeners
    assert broker.inter_broker_listener_name == "PLAINTEXT"
    assert broker.log_dirs == ("/tmp/kafka-logs",)
    assert broker.zookeeper_connection_timeout_ms == broker.zookeeper_session_timeout_ms == 18000
    assert broker.warnings == ()
    assert set(broker.values) == set(STATIC_KEYS)


PYTHON_TYPES = {
    ConfigType.BOOLEAN: bool,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.STRING: str,
}
DERIVED = {
    "listeners", "advertised_listeners", "inter_broker_listener_name", "log_dirs", "zookeeper_connect",
    "zookeeper_connection_timeout_ms", "max_connections_per_ip_overrides",
    "values", "originals", "topic_defaults", "warnings",
}  # fmt: skip


def test_each_field_has_the_type_of_its_key() -> None:
    hints = typing.get_type_hints(BrokerConfig)
    for field in fields(BrokerConfig):
        if field.name in DERIVED:
            continue
        key = STATIC_KEYS[field.name.replace("_", ".")]
        expected = PYTHON_TYPES[key.type]
        hint = hints[field.name]
        if key.default is None:
            assert isinstance(hint, types.UnionType)
            assert set(typing.get_args(hint)) == {expected, type(None)}, field.name
        else:
            assert hint is expected, field.name


def test_a_file_with_overrides(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("broker.id=3\nzookeeper.connect=zk:2181/kafka\n# a comment\nlog.dirs=/a, /b\n")
    broker = BrokerConfig.from_file(path, {"broker.id": "4"})
    assert broker.broker_id == 4
    assert broker.log_dirs == ("/a", "/b")
    assert broker.zookeeper_connect == "zk:2181/kafka"


def test_unknown_keys_warn_and_known_ones_do_not() -> None:
    broker = config(no_such_key="1", controller_quorum_voters="1@a:1", listener_name_plaintext_max_connections="7")
    assert broker.warnings == ("unknown configuration key no.such.key is ignored",)


@pytest.mark.parametrize(
    ("key", "warning"),
    [
        (
            "log.retention.hour",
            "unknown configuration key log.retention.hour is ignored; did you mean log.retention.hours?",
        ),
        ("listener.name.plaintext.max.connection", "did you mean listener.name.plaintext.max.connections?"),
        ("listener.name.plaintext.num.io.threads", "it can't be set for one listener, set num.io.threads"),
        ("listener.name.other.max.connections", "is ignored: listeners has no OTHER"),
        ("leader.replication.throttled.rate", "it can only be set while the broker runs, by kafka-configs"),
    ],
)
def test_a_warning_says_what_was_meant(key: str, warning: str) -> None:
    (told,) = BrokerConfig.from_properties(MINIMAL | {key: "5"}).warnings
    assert told.endswith(warning)


def test_deprecated_keys_warn() -> None:
    assert "offsets.commit.required.acks is deprecated" in config(offsets_commit_required_acks="-1").warnings[0]


@pytest.mark.parametrize(
    ("key", "text"),
    [("num.partitions", "0"), ("num.io.threads", "many"), ("log.cleanup.policy", "shrink"), ("listeners", "nonsense")],
)
def test_a_bad_value_names_its_key(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        BrokerConfig.from_properties(MINIMAL | {key: text})
    assert text in str(caught.value)


def test_zookeeper_connect_is_required() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect is required"):
        BrokerConfig.from_properties({})


# ---- the broker's id


def test_node_id_stands_for_broker_id() -> None:
    assert config(node_id="5").broker_id == 5
    assert config(broker_id="5").get("node.id") == 5
    assert "node.id and broker.id" in refusal(broker_id="1", node_id="2")


def test_ids_above_the_reserved_ones_are_for_generation() -> None:
    assert "reserved.broker.max.id" in refusal(broker_id="1001")
    assert config(broker_id="1001", broker_id_generation_enable="false").broker_id == 1001
    assert config(broker_id="1001", reserved_broker_max_id="2000").broker_id == 1001
    assert "broker.id" in refusal(broker_id_generation_enable="false")
    assert "broker.id" in refusal(broker_id="-2")


# ---- listeners


def test_listeners_with_names_of_ones_own() -> None:
    broker = config(
        listeners="inside://[::1]:9093, OUTSIDE://0.0.0.0:9092",
        advertised_listeners="INSIDE://::1:9093,OUTSIDE://kafka.example.org:19092",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:plaintext",
        inter_broker_listener_name="inside",
    )
    assert broker.listeners == (
        Listener("INSIDE", SecurityProtocol.PLAINTEXT, "::1", 9093),
        Listener("OUTSIDE", SecurityProtocol.PLAINTEXT, "0.0.0.0", 9092),
    )
    assert broker.advertised_listeners[1] == Listener("OUTSIDE", SecurityProtocol.PLAINTEXT, "kafka.example.org", 19092)
    assert broker.inter_broker_listener_name == "INSIDE"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9093"}, "different name"),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9092"}, "port 9092"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9092"}, "port 9092"),
        ({"listeners": "PLAINTEXT://:70000"}, "port 70000"),
        ({"listeners": "MINE://:9092"}, "no security protocol is defined for listener MINE"),
        ({"listeners": ""}, "at least one listener"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "0.0.0.0"),
        ({"listeners": "SSL://:9092"}, "inter.broker.listener.name"),
        ({"advertised.listeners": "PLAINTEXT://a:1,SSL://a:2"}, "listeners has only PLAINTEXT"),
        ({"inter.broker.listener.name": "SSL"}, "must be one of the advertised.listeners"),
        ({"inter.broker.listener.name": "X"}, "not found in listener.security.protocol.map"),
        ({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "can't both be"),
        ({"listener.security.protocol.map": "PLAINTEXT:PLAIN"}, "Invalid security protocol PLAIN"),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "not a key:value pair"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "inter-broker listener"),
        ({"control.plane.listener.name": "SSL"}, "is not in advertised.listeners"),
        ({"early.start.listeners": "SSL"}, "not in listeners"),
    ],
)
def test_listeners_that_do_not_hold_together(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(MINIMAL | properties)
    assert words in str(caught.value)


def test_the_mechanism_between_brokers_must_be_enabled() -> None:
    originals = MINIMAL | {"listeners": "SASL_PLAINTEXT://:9092"}
    values = {name: key.default for name, key in STATIC_KEYS.items()} | {
        "listeners": originals["listeners"],
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ("PLAIN",),
    }
    derived = broker_checks.derive_listeners(originals, values)
    derived |= {"log_dirs": ("/a",), "topic_defaults": topic_defaults(values)}
    with pytest.raises(ConfigError, match=r"must be one of sasl\.enabled\.mechanisms"):
        broker_checks.check(originals, values, derived)


@pytest.mark.parametrize(
    "listeners",
    ["PLAINTEXT://127.0.0.1:9092,B://[::1]:9092", "PLAINTEXT://a:0,B://a:0", "PLAINTEXT://a:1,B://a:2"],
)
def test_listeners_that_may_stand_together(listeners: str) -> None:
    assert len(config(listeners=listeners, listener_security_protocol_map=TWO).listeners) == 2


def test_advertised_listeners_may_share_a_port() -> None:
    broker = config(
        listeners="PLAINTEXT://:9092,B://:9093",
        advertised_listeners="PLAINTEXT://a:443,B://b:443",
        listener_security_protocol_map=TWO,
    )
    assert [listener.port for listener in broker.advertised_listeners] == [443, 443]


def test_a_key_for_one_listener() -> None:
    broker = config(listener_name_plaintext_max_connections="7")
    assert broker.for_listener("PLAINTEXT", "max.connections") == 7
    assert broker.for_listener("SSL", "max.connections") == 10_000
    assert "max.connections" in refusal(listener_name_plaintext_max_connections="x")


# ---- between keys


def test_retention_by_the_finest_unit() -> None:
    assert config().topic_defaults["retention.ms"] == 7 * 24 * 3_600_000
    assert config(log_retention_hours="1").topic_defaults["retention.ms"] == 3_600_000
    assert config(log_retention_hours="1", log_retention_minutes="2").topic_defaults["retention.ms"] == 120_000
    finest = config(log_retention_hours="1", log_retention_minutes="2", log_retention_ms="3")
    assert finest.topic_defaults["retention.ms"] == 3
    assert config(log_retention_hours="-5").topic_defaults["retention.ms"] == -1


def test_rolling_and_flushing_by_the_first_that_is_set() -> None:
    assert config(log_roll_hours="2").topic_defaults["segment.ms"] == 7_200_000
    assert config(log_roll_hours="2", log_roll_ms="5").topic_defaults["segment.ms"] == 5
    assert config(log_flush_scheduler_interval_ms="9").topic_defaults["flush.ms"] == 9
    assert config(log_flush_scheduler_interval_ms="9", log_flush_interval_ms="8").topic_defaults["flush.ms"] == 8


def test_the_older_timestamp_limit_counts_where_the_newer_are_open() -> None:
    defaults = config(
        log_message_timestamp_difference_max_ms="10", log_message_timestamp_after_max_ms="20"
    ).topic_defaults
    assert defaults["message.timestamp.before.max.ms"] == 10
    assert defaults["message.timestamp.after.max.ms"] == 20


def test_log_dirs_before_log_dir() -> None:
    assert config(log_dir="/a").log_dirs == ("/a",)
    assert config(log_dir="/a", log_dirs="/b,/c").log_dirs == ("/b", "/c")
    assert "log.dirs" in refusal(log_dirs=" , ")


def test_the_budget_of_requests_grows_with_the_largest_request() -> None:
    assert config().queued_max_request_bytes == 256 << 20
    assert config(socket_request_max_bytes=str(512 << 20)).queued_max_request_bytes == 512 << 20
    assert config(queued_max_request_bytes="-1").queued_max_request_bytes == -1
    assert "socket.request.max.bytes" in refusal(queued_max_request_bytes="1000")


def test_connection_limits_for_certain_addresses() -> None:
    broker = config(max_connections_per_ip="0", max_connections_per_ip_overrides="::1:5, 127.0.0.1:200")
    assert broker.max_connections_per_ip_overrides == {"::1": 5, "127.0.0.1": 200}
    assert "max.connections.per.ip.overrides" in refusal(max_connections_per_ip="0")
    assert "not an address" in refusal(max_connections_per_ip_overrides="a b:5")
    assert "max.connections.per.ip" in refusal(max_connections_per_ip_overrides="a:many")


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"offsets.commit.required.acks": "4"}, "offsets.topic.replication.factor, which is 3"),
        ({"log.message.format.version": "0.10.2", "inter.broker.protocol.version": "2.8"}, "only message format 2"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms"),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.max.compaction.lag.ms": "1", "log.cleaner.min.compaction.lag.ms": "2"}, "min.compaction.lag"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms"),
        ({"replica.lag.time.max.ms": "100"}, "replica.lag.time.max.ms"),
        ({"connections.max.idle.ms": "50"}, "connections.max.idle.ms"),
    ],
)
def test_keys_that_contradict_each_other(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(MINIMAL | properties)
    assert words in str(caught.value)


def test_a_format_that_kafka_ignores_is_ignored() -> None:
    assert config(log_message_format_version="0.10.2").topic_defaults["message.format.version"] == "3.0-IV1"


def test_secrets_do_not_show() -> None:
    assert "hunter2" not in repr(Password("hunter2"))
    assert "hunter2" not in refusal(sasl_jaas_config="hunter2")
