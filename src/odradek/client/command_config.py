"""Security settings of this process's clients, from the command line, the project or the environment.

    ODRADEK_COMMAND_CONFIG      path of a properties file, as of Kafka's own tools
    ODRADEK_CLIENT_SETTINGS     the settings themselves, as a JSON object; they go before the file

It is kept in the environment, so that processes that a command starts connect in the same way, Spark's workers too.
"""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.client.client_security import ClientSecurity

COMMAND_CONFIG_VARIABLE = "ODRADEK_COMMAND_CONFIG"
SETTINGS_VARIABLE = "ODRADEK_CLIENT_SETTINGS"


def use_command_config(path: Path) -> None:
    """ConfigError if the file can't be used."""
    _security(str(path.absolute()))
    os.environ[COMMAND_CONFIG_VARIABLE] = str(path.absolute())


def use_client_settings(settings: Mapping[str, str]) -> None:
    """ConfigError if the settings can't be used. The process and those that it starts connect with them from now on."""
    text = json.dumps(dict(settings))
    _security_of_text(text)
    os.environ[SETTINGS_VARIABLE] = text


def command_security() -> "ClientSecurity | None":
    """Return the security of connections without settings of their own; None: PLAINTEXT."""
    if text := os.environ.get(SETTINGS_VARIABLE):
        return _security_of_text(text)
    path = os.environ.get(COMMAND_CONFIG_VARIABLE)
    return _security(path) if path else None


def command_settings() -> dict[str, str]:
    """Return the settings of `command_security`, by Kafka's names, for clients that are not ours."""
    if text := os.environ.get(SETTINGS_VARIABLE):
        return dict(json.loads(text))
    if path := os.environ.get(COMMAND_CONFIG_VARIABLE):
        from odradek.base.config.properties import parse_properties

        return parse_properties(Path(path).read_text("utf-8"))
    return {}


@lru_cache(maxsize=4)
def _security(path: str) -> "ClientSecurity":
    from odradek.client.client_security import ClientSecurity

    return ClientSecurity.from_file(Path(path))


@lru_cache(maxsize=4)
def _security_of_text(text: str) -> "ClientSecurity":
    from odradek.client.client_security import ClientSecurity

    return ClientSecurity(json.loads(text))
