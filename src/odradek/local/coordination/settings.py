"""Settings of the coordination server, read from a `zoo.cfg` as Apache ZooKeeper has it.

Keys of Apache's own process are ignored by name. Any other key is refused, those of an ensemble before all: this server
is for one machine.
"""

from pathlib import Path

from odradek.base.errors import FatalError
from odradek.base.value_classes import dataclass

JUTE_MAXBUFFER = 0xFFFFF
"""Bytes of the largest request, ZooKeeper's default."""
_IGNORED = ("admin.enableServer", "autopurge.purgeInterval", "autopurge.snapRetainCount", "maxClientCnxns")
_DEFAULT_WORDS = "srvr"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    data_dir: Path
    port: int
    host: str = "127.0.0.1"
    tick_ms: int = 2000
    session_timeout_ms_min: int = 4000
    session_timeout_ms_max: int = 40_000
    words: frozenset[str] = frozenset({_DEFAULT_WORDS})
    """Four-letter words that are answered."""


def parse_zoo_cfg(text: str) -> ServerSettings:
    lines = (line.strip() for line in text.splitlines())
    values = dict(_pair(line) for line in lines if line and not line.startswith("#"))
    for key in _IGNORED:
        values.pop(key, None)
    try:
        data_dir, port = Path(values.pop("dataDir")), int(values.pop("clientPort"))
        tick_ms = int(values.pop("tickTime", "2000"))
        settings = ServerSettings(
            data_dir,
            port,
            values.pop("clientPortAddress", "127.0.0.1"),
            tick_ms,
            _milliseconds(values, "minSessionTimeout", 2 * tick_ms),
            _milliseconds(values, "maxSessionTimeout", 20 * tick_ms),
            frozenset(word.strip() for word in values.pop("4lw.commands.whitelist", _DEFAULT_WORDS).split(",")),
        )
    except KeyError as error:
        raise FatalError(f"{error.args[0]} is required in zoo.cfg") from error
    except ValueError as error:
        raise FatalError(f"zoo.cfg: {error}") from error
    if values:
        raise FatalError(
            f"zoo.cfg: the embedded coordination server doesn't have {', '.join(sorted(values))}; Apache ZooKeeper does"
        )
    return settings


def _pair(line: str) -> tuple[str, str]:
    key, separator, value = line.partition("=")
    if not separator:
        raise FatalError(f"zoo.cfg: {line!r} is not KEY=VALUE")
    return key.strip(), value.strip()


def _milliseconds(values: dict[str, str], key: str, default: int) -> int:
    given = int(values.pop(key, "-1"))
    return default if given == -1 else given
