"""`[pipeline.kafka]`: settings of the Kafka clients of a pipeline, security above all.

    [pipeline.kafka]
    properties = "client.properties"                        # a file, as Kafka's own tools take it
    security.protocol = "SASL_SSL"                          # or the settings one by one, by Kafka's names
    sasl.jaas.config = { env = "SHOP_JAAS" }                # a secret in the environment
    ssl.key.password = { file = "/run/secrets/password" }   # or in a file

Secrets are no part of the declaration's values that are printed, of Spark's options, or of the status: the settings go
to the clients by the environment of the process and of Spark's workers (`command_config`).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.session import SparkTarget
from odradek.apps.pipeline.toml_section import Section
from odradek.base.config.properties import parse_properties
from odradek.base.errors import ConfigError, FatalError
from odradek.client.command_config import (
    COMMAND_CONFIG_VARIABLE,
    SETTINGS_VARIABLE,
    command_security,
    use_client_settings,
    use_command_config,
)

_SECRET_BYTES_MAX = 1 << 20
_ELSEWHERE = {"bootstrap.servers": "bootstrap in [pipeline] says where the cluster answers"}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """`settings` are complete; `file` is set when a properties file alone gives them."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: Path | None = None


def read_kafka_settings(section: Section, directory: Path) -> KafkaSettings:
    """FatalError names a setting that can't be used, never its value."""
    content = section.rest()
    properties = content.pop("properties", None)
    settings: dict[str, str] = {}
    file: Path | None = None
    if properties is not None:
        if not isinstance(properties, str):
            raise section.wrong("properties is the path of a file")
        file = directory / properties
        settings |= parse_properties(_text_of(section, "properties", file))
    own = dict(_flat(section, directory, "", content))
    for name, advice in _ELSEWHERE.items():
        if name in own:
            raise section.wrong(f"takes no {name}: {advice}")
    return KafkaSettings({**settings, **own}, file if not own else None)


def use_kafka_settings(kafka: KafkaSettings) -> None:
    """Use the settings in this process and its child processes. FatalError names an unusable one."""
    if not kafka.settings:
        return
    try:
        if kafka.file is not None:
            os.environ.pop(SETTINGS_VARIABLE, None)
            use_command_config(kafka.file)
        else:
            use_client_settings(kafka.settings)
    except ConfigError as error:
        raise FatalError(f"[pipeline.kafka] {error}") from None


def settings_of_workers(kafka: KafkaSettings, target: SparkTarget) -> dict[str, str]:
    """Settings of Spark by which its workers have the security of this process; local ones inherit it.

    FatalError if they can't have it.
    """
    if target.is_local or command_security() is None:
        return {}
    if target.remote:
        raise FatalError("--remote has no way to give a Spark Connect server the security of Kafka's clients")
    if kafka.settings and kafka.file is None:
        raise FatalError(
            "[pipeline.kafka]: workers of a cluster read the settings of Kafka's clients from a file that they share "
            'with the driver: give them as properties = "FILE" alone'
        )
    return {f"spark.executorEnv.{COMMAND_CONFIG_VARIABLE}": os.environ[COMMAND_CONFIG_VARIABLE]}


def _flat(section: Section, directory: Path, prefix: str, content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return settings by their full names: TOML reads the dots of `sasl.mechanism` as tables."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value.keys() in ({"env"}, {"file"}):
            yield name, _secret(section, directory, name, value)
        elif isinstance(value, dict):
            yield from _flat(section, directory, f"{name}.", value)
        elif isinstance(value, list):
            raise section.wrong(f"{name} is a text, or {{ env = … }}, or {{ file = … }}")
        else:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _secret(section: Section, directory: Path, name: str, place: Mapping[str, Any]) -> str:
    if variable := place.get("env"):
        if variable not in os.environ:
            raise section.wrong(f"{name}: there is no {variable} in the environment")
        return os.environ[variable]
    return _text_of(section, name, directory / str(place.get("file"))).rstrip("\n")


def _text_of(section: Section, name: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise section.wrong(f"{name}: {path} can't be read: {error.strerror}") from None
    if len(content) > _SECRET_BYTES_MAX:
        raise section.wrong(f"{name}: {path} is larger than {_SECRET_BYTES_MAX} bytes")
    return content.decode("utf-8", "replace")
