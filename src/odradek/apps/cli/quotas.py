"""`odradek quotas`: quotas of users, clients and addresses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.name_values import parse_name_value_pairs
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.cli.watch import watchable
from odradek.client.cluster_client import ClusterClient
from odradek.client.quota_admin import alter_quotas, describe_quotas

app = Noun(
    "Show and change quotas: producer_byte_rate, consumer_byte_rate, request_percentage and "
    "controller_mutation_rate of users and clients, connection_creation_rate of addresses.",
    examples=[
        "odradek quotas describe",
        "odradek quotas alter --client app --set producer_byte_rate=1048576",
        "odradek quotas alter --user-default --client app --set request_percentage=50",
        "odradek quotas alter --client app --delete producer_byte_rate",
    ],
)

_COLUMNS = ("entity", "quota", "value")


@dataclass(frozen=True, slots=True)
class Whose:
    user: Annotated[str | None, Option("--user", help="A user.", show_default=False)] = None
    user_default: Annotated[
        bool, Option("--user-default, --user-defaults", help="Users without quotas of their own.")
    ] = False
    client_id: Annotated[str | None, Option("--client", help="A client id.", show_default=False)] = None
    client_default: Annotated[
        bool, Option("--client-default, --client-defaults", help="Client ids without quotas of their own.")
    ] = False
    ip: Annotated[str | None, Option("--ip", help="A client address.", show_default=False)] = None
    ip_default: Annotated[
        bool, Option("--ip-default, --ip-defaults", help="Addresses without quotas of their own.")
    ] = False

    def entity(self) -> dict[str, str | None]:
        entity: dict[str, str | None] = {}
        for kind, name, default in (
            ("user", self.user, self.user_default),
            ("client-id", self.client_id, self.client_default),
            ("ip", self.ip, self.ip_default),
        ):
            if name is not None and default:
                raise WrongUsage(f"give the name of one {kind} or the default, not both")
            if name is not None or default:
                entity[kind] = name
        if "ip" in entity and len(entity) > 1:
            raise WrongUsage("an address can't be combined with --user or --client")
        return entity


@app.verb()
@watchable
def describe(
    whose: Whose,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show quotas of the named entity, or all quotas."""
    entity = whose.entity()
    with ClusterClient(bootstrap_server) as client:
        found = describe_quotas(client, entity, strict=bool(entity))
    rows = [
        {"entity": str(quotas), "quota": key, "value": value, "parts": quotas.entity}
        for quotas in found
        for key, value in quotas.values.items()
    ]
    print_rows(rows, _COLUMNS, output, empty="there are no quotas")


@app.verb()
def alter(
    whose: Whose,
    changes: Annotated[
        list[str] | None, Option("--set", metavar="QUOTA=NUMBER", help="A quota; may be repeated.")
    ] = None,
    deletions: Annotated[
        list[str] | None, Option("--delete, --unset", metavar="QUOTA", help="A quota to remove; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only validate the change.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Set or remove quotas."""
    entity = whose.entity()
    if not entity:
        raise WrongUsage(
            "an entity is required: --user, --client or --ip, or one of --user-default, --client-default, --ip-default"
        )
    try:
        given = parse_quotas(parse_name_value_pairs(changes or []))
    except ValueError as error:
        raise WrongUsage(str(error), "--set") from None
    if not given and not deletions:
        raise WrongUsage("nothing to change: give --set QUOTA=NUMBER or --delete QUOTA")
    with ClusterClient(bootstrap_server) as client:
        alter_quotas(client, entity, given, deletions or [], validate_only=dry_run)
        found = describe_quotas(client, entity)
    rows = [
        {"entity": str(quotas), "quota": key, "value": value}
        for quotas in found
        for key, value in quotas.values.items()
    ]
    print_rows(rows, _COLUMNS, output, empty="no quota is left")


def parse_quotas(values: Mapping[str, str]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, value in values.items():
        try:
            numbers[key] = float(value)
        except ValueError:
            raise WrongUsage(f"{key}={value}: a quota is a number", "--set") from None
    return numbers
