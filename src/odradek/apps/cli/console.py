"""`odradek console`: the web console of a cluster, in a process of its own."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.records.avro import AvroError, AvroSchema
from odradek.base.config.properties import parse_properties
from odradek.base.errors import FatalError
from odradek.base.logs import configure
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE
from odradek.local.console_process import DEFAULT_PORT

MISSING = "the web console needs NiceGUI: pip install 'odradek[console]'"


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of this machine that the console shows."""

    data: Annotated[
        Path | None,
        Option("--data", metavar="DIR", help="Of `odradek up`: its journals, its brokers.", show_default=False),
    ] = None
    journal: Annotated[
        list[Path] | None,
        Option("--journal", metavar="DIR", help="More places with flight recorders' journals."),
    ] = None
    pipeline: Annotated[list[Path] | None, Option("--pipeline", metavar="DIR", help="A pipeline project.")] = None
    schema: Annotated[
        list[str] | None,
        Option("--schema", metavar="TOPIC=FILE", help="An Avro schema of a topic's values; may be repeated."),
    ] = None


@dataclass(frozen=True, slots=True)
class Entrance:
    """Address of the console, and the users that may log in."""

    port: Annotated[int, Option("--port", min=1, max=65535, help="Port of the console.")] = DEFAULT_PORT
    host: Annotated[str, Option("--host", help="Address of the console; any but loopback needs a password.")] = (
        "127.0.0.1"
    )
    password_file: Annotated[
        Path | None,
        Option(
            "--password-file",
            metavar="FILE",
            help="A file whose first line is the password.",
            show_default="$ODRADEK_CONSOLE_PASSWORD",
        ),
    ] = None
    login: Annotated[
        Path | None,
        Option(
            "--login",
            metavar="FILE",
            help="Users of the cluster log in, and have their own rights. FILE has security.protocol, sasl.*, ssl.*.",
        ),
    ] = None
    certificate: Annotated[Path | None, Option("--certificate", metavar="PEM", help="Serve https.")] = None
    key: Annotated[Path | None, Option("--key", metavar="PEM", help="The certificate's private key.")] = None


@command(
    examples=[
        "odradek console",
        "odradek console --bootstrap-server kafka-1:9092 --read-only",
        "ODRADEK_CONSOLE_PASSWORD=… odradek console --host 0.0.0.0 --certificate cert.pem --key key.pem",
        "odradek console --login client.properties",
    ]
)
def console(
    sources: Sources,
    entrance: Entrance,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    read_only: Annotated[bool, Option("--read-only", help="Allow no changes.")] = False,
    lab: Annotated[
        bool, Option("--lab", help="With the laboratory: crash and freeze the brokers of --data by a button.")
    ] = False,
    clusters: Annotated[
        list[str] | None,
        Option("--cluster", metavar="NAME=HOST:PORT,…", help="One more cluster to show; may be repeated."),
    ] = None,
    zookeeper: Annotated[
        str | None,
        Option("--zookeeper", metavar="HOST:PORT,…", help="Address of ZooKeeper.", show_default="as brokers say"),
    ] = None,
) -> None:
    """Show and operate a cluster in the browser."""
    try:
        from odradek.apps.console.options import PASSWORD_VARIABLE, ConsoleOptions
        from odradek.apps.console.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("odradek"):
            raise
        raise FatalError(MISSING) from error
    data = sources.data
    if lab and entrance.login is not None:
        raise WrongUsage("the laboratory has no users: --lab and --login exclude each other", "--lab")
    if lab and data is None:
        raise WrongUsage("the laboratory needs the brokers' directory: --data DIR", "--lab")
    from odradek.local.local_machine import LocalMachine

    configure()
    options = ConsoleOptions(
        bootstrap=bootstrap_server,
        host=entrance.host,
        port=entrance.port,
        read_only=read_only,
        password=_password(entrance.password_file) or os.environ.get(PASSWORD_VARIABLE) or None,
        login=None if entrance.login is None else _login_settings(entrance.login),
        certificate=entrance.certificate,
        key=entrance.key,
        clusters=dict(_named(text, "--cluster", "NAME=HOST:PORT") for text in clusters or ()),
        zookeeper=zookeeper,
        data=None if data is None else data.absolute(),
        journals=tuple(sources.journal or ()),
        schemas=_schemas(sources.schema or ()),
        projects=tuple(sources.pipeline or ()),
    )
    serve(options, LocalMachine(data) if lab and data is not None else None)


def _schemas(given: Iterable[str]) -> dict[str, AvroSchema]:
    found: dict[str, AvroSchema] = {}
    for text in given:
        name, file = _named(text, "--schema", "TOPIC=FILE")
        try:
            found[name] = AvroSchema(Path(file).read_text("utf-8"))
        except OSError as error:
            raise WrongUsage(f"{file} can't be read: {error.strerror}", "--schema") from None
        except AvroError as error:
            raise WrongUsage(f"{file}: {error}", "--schema") from None
    return found


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise WrongUsage(f"'{text}' is not {form}", option)
    return name, value


def _login_settings(path: Path) -> dict[str, str]:
    os.environ.pop(COMMAND_CONFIG_VARIABLE, None)  # no connection of this process has credentials of its own
    try:
        return dict(parse_properties(path.read_text("utf-8")))
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror}", "--login") from None


def _password(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror}", "--password-file") from None
    return lines[0].strip() if lines else None
