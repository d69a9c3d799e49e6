"""kafka-configs: settings of topics and brokers, quotas of users, clients and addresses."""

from pathlib import Path

from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.tool import ToolError, connect, in_kafkas_words
from odradek.base.config.properties import parse_properties
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, Setting, alter_configs, describe_configs, own_configs, parse_changes
from odradek.client.quota_admin import alter_quotas, describe_quotas
from odradek.client.scram_admin import MECHANISMS, alter_credentials, describe_credentials, parse_scram_setting
from odradek.protocol.messages.describe_configs import ConfigResourceType

TABLE = OptionTable(
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip or client-metrics",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("alter", "change settings"),
    Option("describe", "show settings"),
    Option("all", "with --describe: also settings that were not set there"),
    Option("entity-type", "topics, brokers, clients, users, ips or client-metrics", "TYPE"),
    Option("entity-name", "which one", "NAME"),
    Option("entity-default", "the default of clients, users, brokers or ips"),
    Option("add-config", "settings, with brackets around values with commas", "k1=v1,k2=[a,b]"),
    Option("add-config-file", "a properties file with settings", "FILE"),
    Option("delete-config", "settings to delete", "k1,k2", separator=","),
    Option("force", "accepted, without effect"),
    Option("topic", "the same as --entity-type topics --entity-name", "TOPIC"),
    Option("client", "the same as --entity-type clients --entity-name", "ID"),
    Option("client-defaults", "the same as --entity-type clients --entity-default"),
    Option("user", "the same as --entity-type users --entity-name", "USER"),
    Option("user-defaults", "the same as --entity-type users --entity-default"),
    Option("broker", "the same as --entity-type brokers --entity-name", "ID"),
    Option("broker-defaults", "the same as --entity-type brokers --entity-default"),
    Option("ip", "the same as --entity-type ips --entity-name", "ADDRESS"),
    Option("ip-defaults", "the same as --entity-type ips --entity-default"),
    *EVERY_TOOL,
)
_RESOURCES = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
_QUOTA_KINDS = {"users": "user", "clients": "client-id", "ips": "ip"}
_FLAGS = {"topic": "topics", "client": "clients", "user": "users", "broker": "brokers", "ip": "ips"}
_DEFAULT_FLAGS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
_DEFAULT = ""


def run(given: Given) -> int:
    types, names = _check(given)
    try:
        with connect(given) as client:
            if given.has("alter"):
                _alter(client, given, types, names)
            elif types[0] in _QUOTA_KINDS:
                _describe_quotas(client, types, names)
            else:
                _describe(client, types[0], names, describe_all=given.has("all"))
    except KafkaError as error:
        raise ToolError(f"Error while executing config command: {in_kafkas_words(error)}") from None
    return 0


def _check(given: Given) -> tuple[list[str], list[str]]:
    """The entity types and names; a default's name is empty."""
    given.one_action("describe", "alter")
    given.forbid_with("describe", "add-config", "delete-config")
    types, names = _entities(given)
    known = [*_RESOURCES, *_QUOTA_KINDS]
    for kind in types:
        if kind not in known:
            raise WrongOptions(f"Invalid entity type {kind}, the entity type must be one of {', '.join(known)}")
    if not types:
        raise WrongOptions("At least one entity type must be specified")
    if len(types) != len(set(types)):
        raise WrongOptions(f"Duplicate entity type(s) specified: {','.join(types)}")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise WrongOptions("Only 'users' and 'clients' entity types may be specified together")
    given.require("bootstrap-server")
    if "brokers" in types:
        for name in names:
            if name and not name.isdecimal():
                raise WrongOptions(f"The entity name for brokers must be a valid integer broker id, but it is: {name}")
    if given.has("alter"):
        _check_alter(given, types, names)
    return types, names


def _check_alter(given: Given, types: list[str], names: list[str]) -> None:
    if not names and types[0] in ("topics", "client-metrics"):
        raise WrongOptions(f"an entity name must be specified with --alter of {','.join(types)}")
    if not names:
        raise WrongOptions(
            "an entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if len(types) != len(names):
        raise WrongOptions("An entity name must be specified for every entity type")
    if given.has("add-config") and given.has("add-config-file"):
        raise WrongOptions("Only one of --add-config or --add-config-file must be specified")
    if not given.any_of("add-config", "add-config-file", "delete-config"):
        raise WrongOptions(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def _entities(given: Given) -> tuple[list[str], list[str]]:
    flags, defaults = given.any_of(*_FLAGS), given.any_of(*_DEFAULT_FLAGS)
    if (flags or defaults) and given.any_of("entity-type", "entity-name", "entity-default"):
        raise WrongOptions("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    types = given.values("entity-type") + [_FLAGS[flag] for flag in flags] + [_DEFAULT_FLAGS[flag] for flag in defaults]
    named = iter(given.values("entity-name"))
    # names belong to types in their order
    names = [
        next(named) if name == "entity-name" else _DEFAULT
        for name in given.order
        if name in ("entity-name", "entity-default")
    ]
    return types, names + [given.text(flag) for flag in flags] + [_DEFAULT for _ in defaults]


def _alter(client: ClusterClient, given: Given, types: list[str], names: list[str]) -> None:
    changes, deletions = _changes(given), [key.strip() for key in given.values("delete-config")]
    if types == ["users"]:
        changes, deletions = _alter_scram(client, names[0], changes, deletions)
    if types[0] in _QUOTA_KINDS:
        entity = {_QUOTA_KINDS[kind]: name or None for kind, name in zip(types, names, strict=True)}
        there = {key for quotas in describe_quotas(client, entity) for key in quotas.values}
        _must_be_there(deletions, there)
        if changes or deletions:
            alter_quotas(client, entity, {key: _rate(key, value) for key, value in changes.items()}, deletions)
    else:
        resource = Resource(_RESOURCES[types[0]], names[0])
        if deletions:
            _must_be_there(deletions, {setting.name for setting in own_configs(client, resource)})
        alter_configs(client, resource, changes, deletions)
    if names[0]:
        print(f"Completed updating config for {types[0][:-1]} {names[0]}.")
    else:
        print(f"Completed updating default config for {types[0]} in the cluster.")


def _alter_scram(
    client: ClusterClient, user: str, changes: dict[str, str], deletions: list[str]
) -> tuple[dict[str, str], list[str]]:
    """Sets and deletes passwords; the other changes are left."""
    asked = {name: value for name, value in changes.items() if name in MECHANISMS}
    gone = [name for name in deletions if name in MECHANISMS]
    if not asked and not gone:
        return changes, deletions
    if not user:
        raise ToolError("The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials.")
    try:
        passwords = [parse_scram_setting(name, value) for name, value in asked.items()]
    except ValueError as error:
        raise ToolError(str(error)) from None
    _must_be_there(gone, set(describe_credentials(client, [user]).get(user, {})))
    alter_credentials(client, user, passwords, gone)
    return (
        {name: value for name, value in changes.items() if name not in MECHANISMS},
        [name for name in deletions if name not in MECHANISMS],
    )


def _changes(given: Given) -> dict[str, str]:
    if given.has("add-config-file"):
        path = Path(given.text("add-config-file"))
        try:
            return parse_properties(path.read_text())
        except OSError as error:
            raise ToolError(f"{path} can't be read: {error.strerror}") from None
    if not given.has("add-config"):
        return {}
    try:
        return parse_changes(given.text("add-config"))
    except ValueError as error:
        raise ToolError(str(error)) from None


def _must_be_there(deletions: list[str], there: set[str]) -> None:
    if missing := [key for key in deletions if key not in there]:
        raise ToolError(f"Invalid config(s): {','.join(missing)}")


def _rate(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ToolError(f"Cannot parse quota configuration value for {key}: {value}") from None


def _describe(client: ClusterClient, kind: str, names: list[str], *, describe_all: bool) -> None:
    for name in names or _names(client, kind):
        if name:
            print(f"{'All' if describe_all else 'Dynamic'} configs for {kind[:-1]} {name} are:")
        else:
            print(f"Default configs for {kind} in the cluster are:")
        resource = Resource(_RESOURCES[kind], name)
        for setting in describe_configs(client, resource) if describe_all else own_configs(client, resource):
            print(_line(setting))


def _names(client: ClusterClient, kind: str) -> list[str]:
    if kind == "topics":
        return sorted(client.topics())
    return [*(str(broker) for broker in sorted(client.brokers())), _DEFAULT]


def _line(setting: Setting) -> str:
    synonyms = ", ".join(
        f"{synonym.source.name}:{synonym.name}={_value(synonym.value)}" for synonym in setting.synonyms
    )
    sensitive = "true" if setting.is_sensitive else "false"
    return f"  {setting.name}={_value(setting.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _describe_quotas(client: ClusterClient, types: list[str], names: list[str]) -> None:
    named = dict(zip([_QUOTA_KINDS[kind] for kind in types], names, strict=False))
    others = [_QUOTA_KINDS[kind] for kind in types[len(names) :]]
    for quotas in describe_quotas(client, {kind: name or None for kind, name in named.items()}, others):
        values = ", ".join(f"{key}={_as_java(value)}" for key, value in quotas.values.items())
        print(f"Quota configs for {quotas} are {values}")
    if types == ["users"]:
        _describe_scram(client, [name for name in names if name] if names else None)


def _describe_scram(client: ClusterClient, users: list[str] | None) -> None:
    if users == []:
        return
    for user, mechanisms in describe_credentials(client, users).items():
        shown = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in mechanisms.items())
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def _as_java(value: float) -> str:
    """1000.5, and 1.0E7 from ten million on."""
    if value < 1e7:
        return str(value)
    digits, _, exponent = f"{value:.16e}".partition("e")
    mantissa = digits.rstrip("0")
    return f"{mantissa}{'0' if mantissa.endswith('.') else ''}E{int(exponent)}"
