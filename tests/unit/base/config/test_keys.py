"""The tables against the facts read from Apache Kafka 3.9.2."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.base.config.constraints import check
from odradek.base.config.definition import format_value
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.docs import broker_documentation, topic_documentation
from odradek.base.config.keys import BROKER_KEYS, INTERNAL_KEYS, STATIC_KEYS, TOPIC_KEYS
from odradek.base.config.keys.topic import BROKER_SYNONYMS

REFERENCE = Path(__file__).parents[3] / "wire" / "data" / "kafka_3_9_configs.json"


@pytest.fixture(scope="module")
def kafka() -> dict[str, Any]:
    reference: dict[str, Any] = json.loads(REFERENCE.read_text())
    return reference


def test_every_broker_key_is_kafka_s(kafka: dict[str, Any]) -> None:
    ours = [
        [name, key.type.name, format_value(key.default), key.update_mode.value, key.importance.name]
        for name, key in BROKER_KEYS.items()
        if name not in DEVIATIONS and not name.startswith("odradek.")
    ]
    assert sorted(ours) == [key for key in kafka["broker_keys"] if key[0] not in DEVIATIONS]


def test_every_internal_key_is_kafka_s(kafka: dict[str, Any]) -> None:
    ours = [
        [name, key.type.name, format_value(key.default), key.update_mode.value, key.importance.name]
        for name, key in INTERNAL_KEYS.items()
    ]
    assert sorted(ours) == kafka["internal_keys"]


def test_deviations_are_real_and_remember_kafka_s_default(kafka: dict[str, Any]) -> None:
    theirs = {key[0]: key[2] for key in kafka["broker_keys"]}
    for name, deviation in DEVIATIONS.items():
        assert deviation.kafka_default == theirs[name]
        assert format_value(BROKER_KEYS[name].default) != theirs[name]


def test_every_topic_key_is_kafka_s(kafka: dict[str, Any]) -> None:
    ours = [[k.name, k.type.name, format_value(k.default), k.importance.name] for k in TOPIC_KEYS.values()]
    assert sorted(ours) == kafka["topic_keys"]


def test_defaults_hold_their_own_bounds() -> None:
    for key in (*STATIC_KEYS.values(), *TOPIC_KEYS.values()):
        if key.default is not None:
            check(key.name, key.default, key.constraint)


def test_topic_keys_fall_back_to_broker_keys_of_the_same_kind() -> None:
    assert set(BROKER_SYNONYMS) <= set(TOPIC_KEYS)
    for name, synonyms in BROKER_SYNONYMS.items():
        for synonym in synonyms:
            converted = synonym.endswith((".hours", ".minutes"))
            assert converted or BROKER_KEYS[synonym].type is TOPIC_KEYS[name].type


def test_every_key_has_its_words() -> None:
    assert set(broker_documentation()) == set(STATIC_KEYS)
    assert set(topic_documentation()) == set(TOPIC_KEYS)
    assert all(len(text) > 10 for text in (*broker_documentation().values(), *topic_documentation().values()))


def test_documentation_tells_what_is_different_here() -> None:
    documentation = broker_documentation()
    assert documentation["background.threads"].endswith(
        "No effect here: background tasks share one thread; long ones have their own."
    )
    assert "Refused here unless it is unset: TLS is done by OpenSSL" in documentation["ssl.provider"]
    assert "Refused here unless it is false: tiered storage" in topic_documentation()["remote.storage.enable"]
    for name, deviation in DEVIATIONS.items():
        assert f"differs from Kafka's {deviation.kafka_default}" in documentation[name]


def test_words_stay_unloaded_until_asked_for() -> None:
    program = (
        "import sys, odradek.base.config.describe; "
        "sys.exit(any(name.startswith('odradek.base.config.docs') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
