"""`[pipeline.kafka]`: every form of a setting, secrets from elsewhere, and no secret in anything that is shown."""

import os
from pathlib import Path

import pytest

from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.kafka_settings import KafkaSettings, settings_of_workers, use_kafka_settings
from odradek.apps.pipeline.session import SparkTarget
from odradek.apps.pipeline.source.options import read_options
from odradek.base.errors import FatalError
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE, SETTINGS_VARIABLE, command_security

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="s3cr\\"et";'
PROJECT = (
    '[pipeline]\nname = "p"\n{kafka}\n[sources.s]\ntopic = "t"\nschema = "a INT"\n[sinks.c]\nfrom = "s"\nconsole = 1\n'
)
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SETTINGS_VARIABLE, COMMAND_CONFIG_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)


def declared(directory: Path, kafka: str) -> KafkaSettings:
    (directory / "pipeline.toml").write_text(PROJECT.format(kafka=kafka))
    pipeline = read_pipeline(directory)
    assert "s3cr" not in repr(pipeline), "a declaration can be printed"
    return pipeline.kafka


@pytest.mark.parametrize("form", ["environment", "file", "properties"])
def test_secrets_come_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    head = '[pipeline.kafka]\nsecurity.protocol = "SASL_PLAINTEXT"\n"sasl.mechanism" = "SCRAM-SHA-512"\n'
    if form == "environment":
        monkeypatch.setenv("SHOP_JAAS", JAAS)
        kafka = declared(tmp_path, head + 'sasl.jaas.config = { env = "SHOP_JAAS" }')
    elif form == "file":
        (tmp_path / "jaas").write_text(JAAS + "\n")
        kafka = declared(tmp_path, head + 'sasl.jaas.config = { file = "jaas" }')
    else:
        text = "\n".join(f"{name}={value}" for name, value in SCRAM.items()).replace("\\", "\\\\")
        (tmp_path / "client.properties").write_text(text)
        kafka = declared(tmp_path, '[pipeline.kafka]\nproperties = "client.properties"')
    assert kafka.settings == SCRAM
    use_kafka_settings(kafka)
    security = command_security()
    assert security is not None
    assert security.mechanism == "SCRAM-SHA-512"
    options = read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, streaming=True)
    assert (options.settings["sasl.username"], options.settings["sasl.password"]) == ("me", 's3cr"et')
    assert "s3cr" not in repr(options)
    assert not options.is_plain
    own = {"kafka.security.protocol": "PLAINTEXT", "kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    assert read_options(own, streaming=True).is_plain, "a query with security of its own keeps it"


def test_workers_of_a_cluster_need_a_file(tmp_path: Path) -> None:
    cluster = SparkTarget("spark://host:7077")
    assert settings_of_workers(KafkaSettings(), cluster) == {}
    use_kafka_settings(KafkaSettings(SCRAM))
    assert settings_of_workers(KafkaSettings(SCRAM), SparkTarget()) == {}
    with pytest.raises(FatalError, match="from a file that they share"):
        settings_of_workers(KafkaSettings(SCRAM), cluster)
    with pytest.raises(FatalError, match="--remote has no way"):
        settings_of_workers(KafkaSettings(SCRAM), SparkTarget(remote="sc://host"))
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT\n")
    kafka = KafkaSettings({"security.protocol": "PLAINTEXT"}, file)
    use_kafka_settings(kafka)
    assert settings_of_workers(kafka, cluster) == {f"spark.executorEnv.{COMMAND_CONFIG_VARIABLE}": str(file)}
    assert SETTINGS_VARIABLE not in os.environ


@pytest.mark.parametrize(
    ("kafka", "told"),
    [
        ('[pipeline.kafka]\nsasl.jaas.config = { env = "NOWHERE" }', "there is no NOWHERE in the environment"),
        ('[pipeline.kafka]\nssl.key.password = { file = "nowhere" }', "can't be read: No such file"),
        ('[pipeline.kafka]\nbootstrap.servers = "a:1"', "takes no bootstrap.servers"),
        ('[pipeline.kafka]\nproperties = "nowhere"', "can't be read: No such file"),
        ("[pipeline.kafka]\nsasl.mechanism = [1]", "sasl.mechanism is a text"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, kafka: str, told: str) -> None:
    with pytest.raises(FatalError, match=told):
        declared(tmp_path, kafka)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({**SCRAM, "sasl.jaas.config": 'x.Y required password="s3cret";'}, "sasl.jaas.config"),
        ({**SCRAM, "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"}, "nowhere"),
        ({"ssl.unknown": "s3cret"}, "ssl.unknown: not supported"),
    ],
)
def test_what_cannot_be_used_is_told_without_its_secret(settings: dict[str, str], told: str) -> None:
    with pytest.raises(FatalError, match=told) as raised:
        use_kafka_settings(KafkaSettings(settings))
    assert "s3cr" not in str(raised.value)
    assert SETTINGS_VARIABLE not in os.environ
