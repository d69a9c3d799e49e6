"""`odradek profile`: clusters by name, so that commands need no address."""

from pathlib import Path
from typing import Annotated

from odradek.apps.cli.default_cluster import (
    BOOTSTRAP_VARIABLE,
    DEFAULT_DATA,
    PROFILE_VARIABLE,
    Profile,
    default_cluster,
    profiles_file,
    read_profiles,
    write_profiles,
)
from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import Format, FormatOption, note, print_fields, print_rows, warn
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import FatalError
from odradek.client.bootstrap import DEFAULT_BOOTSTRAP, parse_bootstrap
from odradek.client.client_security import ClientSecurity

_PRECEDENCE = (
    "-b HOST:PORT",
    "--data DIR, a cluster of `odradek up`",
    "--profile NAME",
    f"${BOOTSTRAP_VARIABLE}",
    f"${PROFILE_VARIABLE}",
    f"the cluster in ./{DEFAULT_DATA}, while it runs",
    "the profile in use",
    DEFAULT_BOOTSTRAP,
)
app = Noun(
    "Keep clusters by name, with their addresses and client settings.\n\n"
    f"A command asks the first of: {'; '.join(_PRECEDENCE)}. The client settings of a profile are used with its own "
    "address, or where --profile names it.",
    examples=[
        "odradek profile create prod -b kafka-1:9092,kafka-2:9092 --command-config prod.properties",
        "odradek profile use prod",
        "odradek topics list --profile prod",
        "odradek profile show",
    ],
)
NameArgument = Annotated[str, Argument(metavar="NAME", help="Name of the profile.")]


def _check_name(name: str) -> None:
    if not name or len(name) > 100 or not all(char.isalnum() or char in "-_." for char in name):
        raise ValueError(f"'{name[:40]}' is not a name: letters, digits, '-', '_' and '.'")


@app.verb(examples=["odradek profile create trial -b 127.0.0.1:19092 --use"])
def create(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the profile.", check=_check_name)],
    bootstrap_server: Annotated[
        str,
        Option("--bootstrap-server, -b", metavar="HOST:PORT,…", check=parse_bootstrap, help="Brokers to ask first."),
    ],
    command_config: Annotated[
        Path | None,
        Option("--command-config", metavar="FILE", help="Properties of the client: security.protocol, sasl.…, ssl.…"),
    ] = None,
    use: Annotated[bool, Option("--use", help="Use the profile from now on.")] = False,
    replaces: Annotated[bool, Option("--replace", help="Replace an existing profile.")] = False,
) -> None:
    """Create a profile, or change it with --replace."""
    profiles = read_profiles()
    if name in profiles.named and not replaces:
        raise FatalError(f"there is a profile '{name}' already; --replace changes it")
    if command_config is not None:
        ClientSecurity.from_file(command_config)  # refused now, not at the first use
    config = None if command_config is None else str(command_config.absolute())
    profiles = profiles.put(name, Profile(bootstrap_server, config))
    if use:
        profiles = type(profiles)(name, profiles.named)
    write_profiles(profiles)
    note(f"profile {name} created{' and in use' if use else f'; use it with: odradek profile use {name}'}")


@app.verb(examples=["odradek profile use prod", "odradek profile use --none"])
def use(
    name: Annotated[str | None, Argument(metavar="NAME", help="Name of the profile.")] = None,
    none: Annotated[bool, Option("--none", help="Use no profile.")] = False,
) -> None:
    """Use a profile from now on, in every command that is not given a cluster."""
    if (name is None) is not none:
        raise WrongUsage("either NAME or --none is required")
    profiles = read_profiles()
    if name is not None:
        profiles.get(name)
    write_profiles(type(profiles)(name, profiles.named))
    note("no profile is in use" if name is None else f"profile {name} is in use")
    if name is not None and (chosen := default_cluster()).bootstrap != profiles.get(name).bootstrap:
        warn(f"commands ask {chosen.bootstrap} here: {chosen.chosen_by} comes before the profile in use")


@app.verb("list")
def list_profiles(output: FormatOption = Format.TABLE) -> None:
    """List the profiles."""
    profiles = read_profiles()
    rows = [
        {
            "profile": name,
            "in_use": name == profiles.in_use,
            "bootstrap_server": profile.bootstrap,
            "command_config": profile.command_config,
        }
        for name, profile in sorted(profiles.named.items())
    ]
    empty = "there are no profiles; make one with: odradek profile create NAME -b HOST:PORT"
    print_rows(rows, ("profile", "in_use", "bootstrap_server", "command_config"), output, empty=empty)


@app.verb()
def show(
    name: Annotated[str | None, Argument(metavar="NAME", help="Name of the profile.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show a profile; without a name, the default cluster and the reason for its choice."""
    if name is not None:
        profile = read_profiles().get(name)
        fields: dict[str, object] = {
            "profile": name,
            "bootstrap_server": profile.bootstrap,
            "command_config": profile.command_config,
        }
    else:
        chosen = default_cluster()
        fields = {
            "bootstrap_server": chosen.bootstrap,
            "command_config": chosen.command_config,
            "chosen_by": chosen.chosen_by,
            "profiles_file": str(profiles_file()),
        }
    print_fields(fields, output)


@app.verb()
def delete(name: NameArgument) -> None:
    """Delete a profile. Its files stay."""
    profiles = read_profiles()
    profiles.get(name)
    write_profiles(profiles.without(name))
    note(f"profile {name} deleted")
