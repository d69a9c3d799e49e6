"""The properties file of this process's clients: security, where a command or its environment names one.

It is kept in the environment, so that processes that a command starts connect in the same way.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.client.client_security import ClientSecurity

COMMAND_CONFIG_VARIABLE = "ODRADEK_COMMAND_CONFIG"


def use_command_config(path: Path) -> None:
    """ConfigError if the file can't be used."""
    _security(str(path.absolute()))
    os.environ[COMMAND_CONFIG_VARIABLE] = str(path.absolute())


def command_security() -> "ClientSecurity | None":
    """Return the security of connections without settings of their own; None: PLAINTEXT."""
    path = os.environ.get(COMMAND_CONFIG_VARIABLE)
    return _security(path) if path else None


@lru_cache(maxsize=4)
def _security(path: str) -> "ClientSecurity":
    from odradek.client.client_security import ClientSecurity

    return ClientSecurity.from_file(Path(path))
