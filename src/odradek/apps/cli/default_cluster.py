"""Cluster of a command without an address, and profiles: named clusters of a user.

The first of these holds:

    -b, --bootstrap-server        the address itself
    --data DIR                    the cluster that `odradek up --data DIR` made
    --profile NAME                a profile
    ODRADEK_BOOTSTRAP_SERVER      an address, in the environment
    ODRADEK_PROFILE               a profile, in the environment
    ./odradek-data                the cluster of the current directory, while it runs
    odradek profile use NAME      the profile in use
    127.0.0.1:9092

Security goes with the cluster that it belongs to: the client settings of a profile, or of a cluster made with
--secure, are used with the address of that profile or cluster, and with another address only where both are named on
the command line.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from odradek.base.errors import ConfigError, FatalError
from odradek.base.value_classes import dataclass
from odradek.client.bootstrap import DEFAULT_BOOTSTRAP
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE, use_command_config

BOOTSTRAP_VARIABLE = "ODRADEK_BOOTSTRAP_SERVER"
PROFILE_VARIABLE = "ODRADEK_PROFILE"
DEFAULT_DATA = Path("odradek-data")
"""The directory of a cluster of `odradek up`, in the current one."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Profile:
    bootstrap: str
    command_config: str | None = None
    """Path of the client's properties."""


@dataclass(frozen=True, slots=True)
class Profiles:
    in_use: str | None = None
    named: Mapping[str, Profile] = field(default_factory=dict)

    def get(self, name: str) -> Profile:
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none; make one with: odradek profile create NAME -b HOST:PORT"
            raise FatalError(f"there is no profile '{name}'; there are: {known}")
        return self.named[name]

    def put(self, name: str, profile: Profile) -> "Profiles":
        return replace(self, named={**self.named, name: profile})

    def without(self, name: str) -> "Profiles":
        left = {other: profile for other, profile in self.named.items() if other != name}
        return Profiles(None if self.in_use == name else self.in_use, left)


@dataclass(frozen=True, slots=True)
class DefaultCluster:
    bootstrap: str
    chosen_by: str
    command_config: str | None = None


def profiles_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "odradek" / "profiles.json"


def read_profiles() -> Profiles:
    """Read the profiles of the user. FatalError names a file that can't be used."""
    path = profiles_file()
    try:
        document: Any = json.loads(path.read_text("utf-8"))
        named = {
            str(name): Profile(str(fields["bootstrap"]), fields.get("command_config"))
            for name, fields in document["profiles"].items()
        }
        return Profiles(document.get("in_use"), named)
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FatalError(f"{path} can't be used: {error}; correct or delete it") from None


def write_profiles(profiles: Profiles) -> None:
    """Replace the file as a whole. Only the user can read it: its paths may be confidential."""
    path = profiles_file()
    named = {
        name: {"bootstrap": profile.bootstrap, "command_config": profile.command_config}
        for name, profile in sorted(profiles.named.items())
    }
    from tempfile import NamedTemporaryFile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as new:
            json.dump({"version": _VERSION, "in_use": profiles.in_use, "profiles": named}, new, indent=2)
            new.write("\n")
        os.replace(new.name, path)
    except OSError as error:
        raise FatalError(f"{path} can't be written: {error.strerror}") from None


def default_cluster() -> DefaultCluster:
    """Choose by the environment, the current directory and the profile in use."""
    if bootstrap := os.environ.get(BOOTSTRAP_VARIABLE):
        return DefaultCluster(bootstrap, f"the variable {BOOTSTRAP_VARIABLE}")
    if name := os.environ.get(PROFILE_VARIABLE):
        return _of_profile(read_profiles(), name, f"the variable {PROFILE_VARIABLE}={name}")
    if (here := _cluster_in(DEFAULT_DATA)) is not None:
        return here
    profiles = read_profiles()
    if profiles.in_use is not None:
        return _of_profile(profiles, profiles.in_use, f"the profile in use, {profiles.in_use}")
    return DefaultCluster(DEFAULT_BOOTSTRAP, "the default of Kafka")


def bootstrap_by_default() -> str:
    """Return the default cluster's address, and use its security unless there is one already."""
    chosen = default_cluster()
    _use(chosen)
    return chosen.bootstrap


def use_profile(name: str) -> None:
    """Use the profile that the command line names: stronger than the environment."""
    _use_named(_of_profile(read_profiles(), name, f"--profile {name}"))


def use_data(directory: Path) -> None:
    """Use the cluster of a directory that the command line names: stronger than the environment and a profile."""
    if (found := _cluster_in(directory, must_run=False)) is None:
        raise FatalError(f"there is no cluster in {directory}; start one with: odradek up --data {directory}")
    _use_named(found)


def _use_named(chosen: DefaultCluster) -> None:
    os.environ[BOOTSTRAP_VARIABLE] = chosen.bootstrap
    os.environ.pop(COMMAND_CONFIG_VARIABLE, None)  # it belongs to another cluster
    _use(chosen)


def _use(chosen: DefaultCluster) -> None:
    if chosen.command_config is not None and not os.environ.get(COMMAND_CONFIG_VARIABLE):
        use_command_config(Path(chosen.command_config))


def _of_profile(profiles: Profiles, name: str, chosen_by: str) -> DefaultCluster:
    profile = profiles.get(name)
    return DefaultCluster(profile.bootstrap, chosen_by, profile.command_config)


def _cluster_in(directory: Path, *, must_run: bool = True) -> DefaultCluster | None:
    """The cluster of `odradek up` in that directory."""
    if not directory.is_dir():
        return None
    from odradek.local.cluster_processes import LocalCluster  # only where there is one

    try:
        cluster = LocalCluster(directory)
        if not cluster.brokers or (must_run and not cluster.running):
            return None
        config = str(cluster.security.client_file) if cluster.security.exists else None
        return DefaultCluster(cluster.bootstrap_servers, f"the cluster in {directory}", config)
    except (OSError, KeyError, ValueError, FatalError, ConfigError):
        return None  # not a cluster of ours, or not a readable one
