"""Dynamic settings over those of server.properties."""

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigSource
from odradek.base.config.describe import ConfigEntry, describe_all_brokers, describe_broker, describe_topic
from odradek.base.config.live_config import LiveConfig
from odradek.base.errors import ConfigError


@pytest.fixture
def live() -> LiveConfig:
    return LiveConfig(
        BrokerConfig.from_properties({"zookeeper.connect": "zk", "broker.id": "3", "log.retention.hours": "1"})
    )


def entry_of(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    return next(entry for entry in entries if entry.name == name)


def test_a_broker_s_own_comes_before_that_of_all_and_the_file_last(live: LiveConfig) -> None:
    assert live.current.topic_defaults["retention.ms"] == 3_600_000
    live.adopt({}, {"log.retention.ms": "5000"})
    assert live.current.topic_defaults["retention.ms"] == 5000
    live.adopt({"log.retention.ms": "7000"}, {"log.retention.ms": "5000"})
    assert live.current.topic_defaults["retention.ms"] == 7000
    live.adopt({}, {})
    assert live.current.topic_defaults["retention.ms"] == 3_600_000


def test_where_a_value_comes_from_is_told(live: LiveConfig) -> None:
    live.adopt({"log.retention.ms": "7000"}, {"log.retention.ms": "5000", "of.a.plugin": "x"})
    told = [
        ("log.retention.ms", "7000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("log.retention.ms", "5000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.hours", "1", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]
    for entry in (
        entry_of(describe_broker(live), "log.retention.ms"),
        entry_of(describe_topic(live, {}), "retention.ms"),
    ):
        assert (entry.value, entry.source, entry.read_only) == ("7000", ConfigSource.DYNAMIC_BROKER_CONFIG, False)
        assert [(s.name, s.value, s.source) for s in entry.synonyms] == told
    assert [(e.name, e.value) for e in describe_all_brokers(live)] == [
        ("log.retention.ms", "5000"),
        ("of.a.plugin", None),
    ]


def test_listeners_hear_of_what_is_new_and_of_nothing_else(live: LiveConfig) -> None:
    heard: list[tuple[int, int]] = []
    live.on_change.append(lambda before, after: heard.append((before.num_io_threads, after.num_io_threads)))
    live.adopt({"num.io.threads": "16"}, {})
    live.adopt({"num.io.threads": "16"}, {})
    live.adopt({"num.io.threads": "what", "broker.id": "9"}, {})
    assert heard == [(8, 16), (16, 8)]
    assert live.own == {}


def test_a_listener_that_fails_does_not_hinder_the_others(live: LiveConfig) -> None:
    heard: list[int] = []

    def fail(before: BrokerConfig, after: BrokerConfig) -> None:
        raise RuntimeError("no")

    live.on_change += [fail, lambda before, after: heard.append(after.num_io_threads)]
    live.adopt({"num.io.threads": "9"}, {})
    assert heard == [9]


def test_what_does_not_fit_together_changes_nothing(live: LiveConfig) -> None:
    live.adopt({"min.insync.replicas": "2"}, {})
    live.adopt({"log.cleaner.dedupe.buffer.size": "2000"}, {})
    assert live.own == {"min.insync.replicas": "2"}
    assert live.current.min_insync_replicas == 2


@pytest.mark.parametrize(
    ("settings", "for_all", "words"),
    [
        ({"broker.id": "1"}, False, "Cannot update these configs dynamically: Set(broker.id)"),
        ({"log.retention.hours": "1"}, True, "Cannot update these configs dynamically"),
        ({"ssl.keystore.location": "/x"}, False, "only per-listener using the listener prefix"),
        ({"listeners": "PLAINTEXT://:1"}, True, "broker id must be specified: Set(listeners)"),
        ({"listener.name.a.ssl.keystore.location": "/x"}, True, "broker id must be specified"),
        ({"listeners": "PLAINTEXT://:1"}, False, "restart the broker"),
        ({"listener.name.a.max.connections": "7"}, True, "restart the broker"),
        ({"metric.reporters": "x.Y"}, True, "Invalid value x.Y for configuration metric.reporters: Java classes"),
        ({"listener.name.a.ssl.cipher.suites": "x"}, False, "restart the broker"),
        ({"listener.name.a.plain.sasl.jaas.config": "s3cr3t"}, False, "restart the broker"),
        ({"max.connections": "many"}, False, "Invalid value many"),
        ({"max.connections": "-1"}, False, "must be at least 0"),
        ({"max.connections.per.ip": "0"}, False, "max.connections.per.ip can be 0 only"),
        ({"max.connection.creation.rate": "0"}, False, "Invalid max.connection.creation.rate 0"),
        ({"num.io.threads": "17"}, False, "not be greater than double the current value 8"),
        ({"num.io.threads": "3"}, False, "at least half the current value 8"),
        ({"num.replica.fetchers": "0"}, False, "at least 1"),
        ({"log.retention.ms": "0"}, False, "log.retention.ms"),
    ],
)
def test_refusals_say_why(live: LiveConfig, settings: dict[str, str], for_all: bool, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        live.check(settings, for_all=for_all)
    assert words in str(caught.value)


def test_what_may_be_set(live: LiveConfig) -> None:
    live.check({"num.io.threads": "16", "of.a.plugin": "x", "leader.replication.throttled.rate": "7"}, for_all=True)
    live.check({"message.max.bytes": "7", "log.cleanup.policy": "compact"}, for_all=False)


def test_a_key_without_effect_may_be_set_for_a_broker_as_in_its_file(live: LiveConfig) -> None:
    setting = {"sasl.kerberos.min.time.before.relogin": "58000"}
    live.check(setting, for_all=False)
    with pytest.raises(ConfigError, match="broker id must be specified"):
        live.check(setting, for_all=True)
    live.adopt(setting, {})
    described = entry_of(describe_broker(live), "sasl.kerberos.min.time.before.relogin")
    assert (described.value, described.source) == ("58000", ConfigSource.DYNAMIC_BROKER_CONFIG)
