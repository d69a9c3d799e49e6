"""`odradek configs`: settings of topics, brokers, clients, users and addresses (kafka-configs)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.quotas import parse_quotas
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.cli.watch import watchable
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, Setting, alter_configs, describe_configs, own_configs, parse_changes
from odradek.client.quota_admin import alter_quotas, describe_quotas
from odradek.protocol.messages.describe_configs import ConfigResourceType

app = Noun(
    "Show and change settings of topics, brokers, clients, users and addresses.",
    examples=[
        "odradek configs describe topics orders",
        "odradek configs describe brokers 0 --all",
        "odradek configs alter topics orders --set retention.ms=3600000 --set cleanup.policy=compact,delete",
        "odradek configs alter brokers --default --set log.cleaner.threads=2",
        "odradek configs alter clients app --set producer_byte_rate=1048576",
        "odradek configs alter topics orders --delete retention.ms",
    ],
)


class EntityType(StrEnum):
    TOPICS = "topics"
    BROKERS = "brokers"
    CLIENTS = "clients"
    USERS = "users"
    IPS = "ips"


_RESOURCES = {EntityType.TOPICS: ConfigResourceType.TOPIC, EntityType.BROKERS: ConfigResourceType.BROKER}
_QUOTA_KINDS = {EntityType.CLIENTS: "client-id", EntityType.USERS: "user", EntityType.IPS: "ip"}
_COLUMNS = ("entity", "name", "value", "source", "read_only", "sensitive")

TypeArgument = Annotated[EntityType | None, Argument(metavar="TYPE", help="topics, brokers, clients, users, ips.")]
NameArgument = Annotated[str | None, Argument(metavar="NAME", help="The name or id of the entity.", show_default=False)]
TypeOption = Annotated[EntityType | None, Option("--entity-type", help="The same as TYPE.", show_default=False)]
NameOption = Annotated[str | None, Option("--entity-name", help="The same as NAME.", show_default=False)]
DefaultOption = Annotated[bool, Option("--default, --entity-default", help="The default of the whole cluster.")]
TopicOption = Annotated[str | None, Option("--topic, -t", help="The same as topics NAME.", show_default=False)]
BrokerOption = Annotated[str | None, Option("--broker", help="The same as brokers NAME.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Entity:
    """Owner of settings, given as words or by Kafka's options."""

    kind: TypeArgument = None
    name: NameArgument = None
    entity_type: TypeOption = None
    entity_name: NameOption = None
    default: DefaultOption = False
    topic: TopicOption = None
    broker: BrokerOption = None

    def chosen(self) -> tuple[EntityType, str | None]:
        """Type and name. The name is empty for the default, None if none is given."""
        kind, name = self.kind or self.entity_type, self.name or self.entity_name
        for other, named in ((EntityType.TOPICS, self.topic), (EntityType.BROKERS, self.broker)):
            if named is not None:
                if kind is not None or name is not None:
                    raise WrongUsage("name one entity: TYPE NAME, --topic NAME or --broker ID")
                kind, name = other, named
        if kind is None:
            raise WrongUsage(f"TYPE is required: one of {', '.join(EntityType)}")
        if self.default and name is not None:
            raise WrongUsage("give a name or --default, not both")
        if self.default and kind is EntityType.TOPICS:
            raise WrongUsage(
                "topics have no defaults of their own; see those of the brokers: configs describe brokers --default"
            )
        if kind is EntityType.BROKERS and name is not None and not name.isdecimal():
            raise WrongUsage(f"'{name}' is not a broker's id; see which there are with: odradek brokers")
        return kind, "" if self.default else name


@app.verb()
@watchable
def describe(
    entity: Entity,
    everything: Annotated[
        bool, Option("--all", help="Also settings of server.properties, and Kafka's defaults.")
    ] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show settings; without a name, those of all entities of the type."""
    chosen, wanted = entity.chosen()
    with ClusterClient(bootstrap_server) as client:
        if chosen in _QUOTA_KINDS:
            rows = _quota_rows(client, _QUOTA_KINDS[chosen], wanted)
        else:
            names = _names(client, chosen) if wanted is None else [wanted]
            rows = [
                _row(resource, setting)
                for resource in [Resource(_RESOURCES[chosen], item) for item in names]
                for setting in (describe_configs(client, resource) if everything else own_configs(client, resource))
            ]
    print_rows(rows, _COLUMNS, output, empty="no overrides; --all also shows defaults")


@app.verb()
def alter(
    entity: Entity,
    changes: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")
    ] = None,
    add_config: Annotated[
        str, Option("--add-config", metavar="K=V,…", help="Several settings; [a,b] around values with commas.")
    ] = "",
    deletions: Annotated[
        list[str] | None,
        Option("--delete, --unset, --delete-config", metavar="KEY", help="Restore the default; may be repeated."),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only validate the change.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Change settings, all of them or none."""
    chosen, wanted = entity.chosen()
    if wanted is None:
        raise WrongUsage(f"name one of the {chosen}, or give --default")
    given, dropped = _changes(changes or [], add_config), _keys(deletions or [])
    if not given and not dropped:
        raise WrongUsage("nothing to change: give --set KEY=VALUE or --delete KEY")
    with ClusterClient(bootstrap_server) as client:
        if chosen in _QUOTA_KINDS:
            alter_quotas(
                client, {_QUOTA_KINDS[chosen]: wanted or None}, parse_quotas(given), dropped, validate_only=dry_run
            )
        else:
            resource = Resource(_RESOURCES[chosen], wanted)
            alter_configs(client, resource, given, dropped, validate_only=dry_run)
    rows: list[dict[str, object]] = [{"name": key, "value": value} for key, value in given.items()]
    rows += [{"name": key, "value": None} for key in dropped]
    if output.is_table:
        summary = [f"{key}={value}" for key, value in given.items()] + [f"{key} back to its default" for key in dropped]
        done = "would be accepted" if dry_run else "changed"
        print(f"{done}: {chosen} {wanted or '(default)'}: {', '.join(summary)}")
    else:
        print_rows(rows, ("name", "value"), output)


def _names(client: ClusterClient, kind: EntityType) -> list[str]:
    if kind is EntityType.TOPICS:
        return sorted(client.topics())
    return [*(str(broker) for broker in sorted(client.brokers())), ""]


def _row(resource: Resource, setting: Setting) -> dict[str, object]:
    return {
        "entity": str(resource).replace("'", ""),
        "name": setting.name,
        "value": "(hidden)" if setting.is_sensitive else setting.value,
        "source": setting.source.name,
        "read_only": setting.is_read_only,
        "sensitive": setting.is_sensitive,
    }


def _quota_rows(client: ClusterClient, kind: str, name: str | None) -> list[dict[str, object]]:
    found = describe_quotas(client, {}, [kind]) if name is None else describe_quotas(client, {kind: name or None})
    return [
        {"entity": str(quotas), "name": key, "value": value, "source": "QUOTA", "read_only": False, "sensitive": False}
        for quotas in found
        for key, value in quotas.values.items()
    ]


def _changes(pairs: list[str], added: str) -> dict[str, str]:
    changes: dict[str, str] = {}
    try:
        if added:
            changes |= parse_changes(added)
    except ValueError as error:
        raise WrongUsage(str(error), "--add-config") from None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise WrongUsage(f"'{pair}' is not of the form KEY=VALUE", "--set")
        changes[key.strip()] = value.strip()
    return changes


def _keys(deletions: list[str]) -> list[str]:
    return [key.strip() for item in deletions for key in item.split(",") if key.strip()]
