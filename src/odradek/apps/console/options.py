"""Options of a console, and the combinations that are refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from odradek.apps.records.avro import AvroSchema
from odradek.base.errors import FatalError

PASSWORD_VARIABLE = "ODRADEK_CONSOLE_PASSWORD"
_PASSWORD_LENGTH_MIN = 8


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    bootstrap: str
    host: str = "127.0.0.1"
    port: int = 8080
    read_only: bool = False
    password: str | None = field(default=None, repr=False)
    login: Mapping[str, str] | None = field(default=None, repr=False)
    """Settings of connections of cluster users, who log in with their own names and passwords."""
    certificate: Path | None = None
    key: Path | None = None
    zookeeper: str | None = None
    """Address of ZooKeeper, for brokers that don't report it."""
    data: Path | None = None
    """A directory of `odradek up`: journals are looked for in it, changes are logged to it."""
    journals: tuple[Path, ...] = ()
    clusters: Mapping[str, str] = field(default_factory=dict)
    """More clusters: their bootstrap servers by name."""
    schemas: Mapping[str, AvroSchema] = field(default_factory=dict)
    """Schemas of values, by name; one that has a topic's name is used for that topic."""
    projects: tuple[Path, ...] = ()
    """Projects of pipelines, whose status is shown."""

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def journal_places(self) -> tuple[Path, ...]:
        return (*(() if self.data is None else (self.data,)), *self.journals)

    @property
    def name(self) -> str:
        """The cluster's name among several."""
        return self.bootstrap.split(",")[0]

    def of_cluster(self, bootstrap: str) -> "ConsoleOptions":
        """Return the options for another cluster: files of this machine are of the first one."""
        return replace(self, bootstrap=bootstrap, zookeeper=None, data=None, journals=(), projects=())

    def check(self) -> None:
        """Refuse combinations that would give strangers access."""
        if (self.certificate is None) != (self.key is None):
            raise FatalError("--certificate and --key go together")
        if self.password is not None and len(self.password) < _PASSWORD_LENGTH_MIN:
            raise FatalError(f"the console's password needs {_PASSWORD_LENGTH_MIN} characters or more")
        if self.password is not None and self.login is not None:
            raise FatalError("a password for all and logins of cluster users (--login) exclude each other")
        if self.clusters and self.login is not None:
            raise FatalError("users log in to one cluster: --cluster and --login exclude each other")
        if not self.is_local and self.password is None and self.login is None:
            raise FatalError(
                f"{self.host} can be reached by others, so a password is needed: set {PASSWORD_VARIABLE}, "
                "give --password-file, or have users of the cluster log in with --login"
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
