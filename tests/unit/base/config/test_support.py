"""Support of each key of Apache Kafka 3.9.2: obeyed, refused or without effect, key by key.

Kafka's list is in `tests/wire/data/kafka_3_9_configs.json`, which says how it was read from Kafka's jars.
"""

import ast
import json
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigKey, UpdateMode, format_value
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS, STATIC_KEYS, TOPIC_KEYS
from odradek.base.config.keys.topic import BROKER_SYNONYMS
from odradek.base.config.live_config import LiveConfig
from odradek.base.config.settings_page import render
from odradek.base.config.support import NO_EFFECTS, REFUSALS, Support
from odradek.base.config.support_checks import without_effect
from odradek.base.config.topic_config import validate_topic_overrides
from odradek.base.errors import ConfigError, ErrorCode, KafkaError
from odradek.broker.main import run

FACTS = json.loads((Path(__file__).parents[3] / "wire" / "data" / "kafka_3_9_configs.json").read_text())
SOURCE = Path(__file__).parents[4] / "src" / "odradek"
MINIMAL = {"zookeeper.connect": "zk:2181"}

# Packages that run in a broker: a tool that names a key doesn't obey it.
BROKER_PACKAGES = ("broker", "security")
# Keys that are read together with another one, whose value they give or change (`broker_config`, `topic_defaults`).
READ_AS = {
    "listener.security.protocol.map": "listeners",
    "log.dir": "log.dirs",
    "message.timestamp.difference.max.ms": "message.timestamp.before.max.ms",
    "node.id": "broker.id",
    "security.inter.broker.protocol": "inter.broker.listener.name",
}


def keys_with(support: Support, keys: dict[str, ConfigKey]) -> list[str]:
    return [name for name, key in keys.items() if key.support is support]


def other_value(key: ConfigKey) -> str:
    """A valid value that isn't the default."""
    candidates = ("true", "false", "1", "2", "10", "0.3", "1025", "30001", "65537", "2.8", *key.constraint.split("|"))
    return next(text for text in (*candidates, "some.Text") if _is_valid(key, text))


def _is_valid(key: ConfigKey, text: str) -> bool:
    try:
        return key.parse(text) != key.default
    except ConfigError:
        return False


# ---- every key is declared


def test_every_key_of_kafka_has_a_support_with_a_known_reason() -> None:
    for fact in FACTS["broker_keys"] + FACTS["internal_keys"]:
        key = STATIC_KEYS[fact[0]]
        reasons = {Support.OBEYED: {""}, Support.REFUSED: set(REFUSALS), Support.NO_EFFECT: set(NO_EFFECTS)}
        assert key.reason in reasons[key.support], key.name
    for fact in FACTS["topic_keys"]:
        assert TOPIC_KEYS[fact[0]].support in Support


def test_every_reason_is_used() -> None:
    every = [*STATIC_KEYS.values(), *TOPIC_KEYS.values()]
    assert {key.reason for key in every if key.support is Support.REFUSED} == set(REFUSALS)
    assert {key.reason for key in every if key.support is Support.NO_EFFECT} == set(NO_EFFECTS)


def test_a_refused_key_has_kafka_s_default() -> None:
    assert not set(keys_with(Support.REFUSED, STATIC_KEYS)) & set(DEVIATIONS)


# ---- obeyed: somebody reads the value


@cache
def read_names() -> frozenset[str]:
    """Attributes of configurations, and texts, in the code that a broker runs; attributes with dots for underscores."""
    names: set[str] = set()
    for package in BROKER_PACKAGES:
        for path in (SOURCE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and _is_configuration(node.value):
                    names.add(node.attr.replace("_", "."))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
    return frozenset(names)


def _is_configuration(owner: ast.expr) -> bool:
    """`config.x`, `self._config.x`, `before.x` …; `topic.x` where a log has its topic's settings. Not `_DEFAULTS.x`:
    who copies a default need not look at what is set."""
    last = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return last.lstrip("_") in ("config", "after", "before", "topic")


def test_an_obeyed_key_of_a_topic_is_read() -> None:
    unread = [name for name in keys_with(Support.OBEYED, TOPIC_KEYS) if READ_AS.get(name, name) not in read_names()]
    assert unread == []


def test_an_obeyed_key_is_read() -> None:
    """By itself, or as the default of a topic key that is read."""
    unread = [name for name in (*keys_with(Support.OBEYED, STATIC_KEYS), *DYNAMIC_ONLY_KEYS) if not _is_read(name)]
    assert unread == []


def _is_read(name: str) -> bool:
    topic_keys = [topic_key for topic_key, synonyms in BROKER_SYNONYMS.items() if name in synonyms]
    return bool({READ_AS.get(alias, alias) for alias in (name, *topic_keys)} & read_names())


def test_only_obeyed_keys_are_fields() -> None:
    keys = [STATIC_KEYS.get(field.name.replace("_", ".")) for field in fields(BrokerConfig)]
    assert [key.name for key in keys if key is not None and key.support is not Support.OBEYED] == []


def test_a_key_without_effect_is_not_read() -> None:
    assert [name for name in keys_with(Support.NO_EFFECT, STATIC_KEYS) if _is_read(name)] == []
    assert [name for name in keys_with(Support.NO_EFFECT, TOPIC_KEYS) if name in read_names()] == []


# ---- refused: at start, while the broker runs, and for topics


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refused")


@pytest.mark.parametrize("name", keys_with(Support.REFUSED, STATIC_KEYS))
def test_a_broker_refuses_to_start_and_says_why(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = STATIC_KEYS[name]
    text = other_value(key)
    file = directory / "server.properties"
    file.write_text(f"zookeeper.connect=127.0.0.1:1\nlog.dirs={directory}/logs\n{name}={text}\n")
    assert run(file, {}) == 1
    told = capsys.readouterr().err
    refusal = REFUSALS[key.reason]
    shown = "[hidden]" if key.sensitive else text
    assert told.startswith(f"error: Invalid value {shown} for configuration {name}: {refusal.lacks}.")
    assert f"Valid here: {format_value(key.default) or 'no value'}." in told
    assert told.endswith(f"{refusal.remedy}\n")
    assert told.count("\n") == 1
    assert not (directory / "logs").exists()


def test_its_default_is_accepted() -> None:
    defaults = {name: format_value(STATIC_KEYS[name].default) for name in keys_with(Support.REFUSED, STATIC_KEYS)}
    config = BrokerConfig.from_properties(MINIMAL | {name: text for name, text in defaults.items() if text is not None})
    assert config.warnings == ()


@pytest.mark.parametrize(
    "name",
    [n for n in keys_with(Support.REFUSED, BROKER_KEYS) if BROKER_KEYS[n].update_mode is not UpdateMode.READ_ONLY],
)
def test_a_running_broker_refuses_it_too(name: str) -> None:
    live = LiveConfig(BrokerConfig.from_properties(MINIMAL))
    text = other_value(BROKER_KEYS[name])
    cluster_wide = BROKER_KEYS[name].update_mode is UpdateMode.CLUSTER_WIDE
    for setting in (name,) if cluster_wide else (name, f"listener.name.plaintext.{name}"):
        with pytest.raises(ConfigError) as caught:
            live.check({setting: text}, for_all=cluster_wide)
        assert setting in str(caught.value)


@pytest.mark.parametrize("name", keys_with(Support.REFUSED, TOPIC_KEYS))
def test_a_topic_is_refused_it(name: str) -> None:
    defaults = BrokerConfig.from_properties(MINIMAL).topic_defaults
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides({name: other_value(TOPIC_KEYS[name])}, defaults)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert f"for configuration {name}: {REFUSALS[TOPIC_KEYS[name].reason].lacks}" in str(caught.value.message)
    validate_topic_overrides({name: format_value(TOPIC_KEYS[name].default) or ""}, defaults)


@pytest.mark.parametrize(
    "name", ["sasl.jaas.config", "listener.name.a.sasl.jaas.config", "listener.name.A.PLAIN.sasl.jaas.config"]
)
def test_a_login_module_without_listener_and_mechanism_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="must name listener and mechanism") as error:
        BrokerConfig.from_properties(MINIMAL | {name: "hunter2"})
    assert "hunter2" not in str(error.value)


def test_kraft_is_refused_before_a_missing_zookeeper_is() -> None:
    with pytest.raises(ConfigError, match=r"process\.roles: this broker is coordinated by ZooKeeper"):
        BrokerConfig.from_properties({"process.roles": "broker,controller", "node.id": "1"})


# ---- without effect: accepted, and said


def test_a_setting_without_effect_is_accepted_and_named_with_its_reason() -> None:
    for name in keys_with(Support.NO_EFFECT, STATIC_KEYS):
        text = "PLAINTEXT" if name == "early.start.listeners" else other_value(STATIC_KEYS[name])
        config = BrokerConfig.from_properties(MINIMAL | {name: text})
        assert without_effect(config.originals) == {name: NO_EFFECTS[STATIC_KEYS[name].reason]}


def test_defaults_need_no_words() -> None:
    text = format_value(STATIC_KEYS["background.threads"].default) or ""
    assert without_effect({"background.threads": text, "no.such.key": "1", "num.io.threads": "3"}) == {}


def test_the_page_of_settings_is_what_the_code_says() -> None:
    """`python -m odradek.base.config.settings_page > docs/settings.md` makes it anew."""
    assert (SOURCE.parents[1] / "docs" / "settings.md").read_text("utf-8") == render()
