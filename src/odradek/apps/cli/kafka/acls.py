"""kafka-acls: add, remove and list ACLs."""

from collections.abc import Iterable, Mapping

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
from odradek.base.errors import KafkaError
from odradek.client.acl_admin import EVERY_ENTRY, EVERY_PATTERN, create_acls, delete_acls, describe_acls
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import (
    CLUSTER_NAME,
    PATTERN_TYPES,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    EntryFilter,
    PatternFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

TABLE = OptionTable(
    "This tool helps to manage acls on kafka.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("add", "add ACLs"),
    Option("remove", "remove ACLs"),
    Option("list", "list ACLs, of the resources that are named or of all"),
    Option("topic", "ACLs of a topic, * for all", "TOPIC"),
    Option("group", "ACLs of a consumer group, * for all", "GROUP"),
    Option("cluster", "ACLs of the cluster"),
    Option("transactional-id", "ACLs of a transactional id, * for all", "ID"),
    Option("delegation-token", "ACLs of a delegation token, * for all", "TOKEN ID"),
    Option("user-principal", "ACLs of a user as a resource, as User:alice", "PRINCIPAL"),
    Option(
        "resource-pattern-type", "literal or prefixed; with --list and --remove also any and match", "TYPE", "literal"
    ),
    Option("operation", "an operation that is allowed or denied", "OPERATION", "All"),
    Option("allow-principal", "a principal that is allowed, as User:alice or User:*", "PRINCIPAL"),
    Option("deny-principal", "a principal that is denied", "PRINCIPAL"),
    Option("principal", "with --list: of this principal", "PRINCIPAL"),
    Option("allow-host", "an address from which it is allowed (default: all)", "ADDRESS"),
    Option("deny-host", "an address from which it is denied (default: all)", "ADDRESS"),
    Option("producer", "rights of a producer: Write, Describe and Create on topics"),
    Option("consumer", "rights of a consumer: Read and Describe on topics, Read on groups"),
    Option("idempotent", "with --producer: IdempotentWrite on the cluster"),
    Option("force", "ask nothing"),
    *EVERY_TOOL,
)
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
_OPERATIONS = {op.shown.lower(): op for op in AclOperation if op > AclOperation.ANY}
_OP = AclOperation
Wanted = Mapping[PatternFilter, frozenset[AclEntry]]


def run(given: Given) -> int:
    given.require("bootstrap-server")
    action = given.one_action("add", "remove", "list")
    given.forbid_with("list", "producer", "consumer", "allow-host", "deny-host", "allow-principal", "deny-principal")
    for role in given.any_of("producer", "consumer"):
        given.forbid_with(role, "operation", "deny-principal", "deny-host")
    if given.has("producer") and not given.has("topic"):
        raise WrongOptions("With --producer you must specify a --topic")
    if given.has("idempotent") and not given.has("producer"):
        raise WrongOptions("The --idempotent option is only available if --producer is set")
    if given.has("consumer") and not (given.has("topic") and given.has("group")):
        raise WrongOptions("With --consumer you must specify a --topic and a --group")
    try:
        wanted = {} if action == "list" else _wanted(given)
        with connect(given) as client:
            if action == "add":
                _add(client, given, wanted)
            elif action == "remove":
                _remove(client, given, wanted)
            else:
                _list(client, given)
    except KafkaError as error:
        raise ToolError(f"Error while executing ACL command: {in_kafkas_words(error)}") from None
    return 0


def _add(client: ClusterClient, given: Given, wanted: Wanted) -> None:
    if _pattern_type(given) not in PATTERN_TYPES:
        shown = _pattern_type(given).name
        raise WrongOptions(f"A '--resource-pattern-type' value of '{shown}' is not valid when adding acls.")
    if not all(wanted.values()):
        raise WrongOptions("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for resource, entries in wanted.items():
        pattern = ResourcePattern(resource.type, resource.name or "", resource.pattern)
        _print_acls("Adding", pattern, entries)
        create_acls(client, [AclBinding(pattern, entry) for entry in entries])


def _remove(client: ClusterClient, given: Given, wanted: Wanted) -> None:
    for resource, entries in wanted.items():
        shown = _resource(resource)
        question = f"Are you sure you want to delete all ACLs for resource filter `{shown}`? (y/n)"
        if entries:
            listed = "\n".join(f"\t{_shown(entry)}" for entry in _in_order(entries))
            question = f"Are you sure you want to remove ACLs: \n {listed} \n from resource filter `{shown}`? (y/n)"
        if not given.has("force") and input(f"{question}\n").strip().lower() != "y":
            continue
        filters = [EntryFilter(e.principal, e.host, e.operation, e.permission) for e in entries] or [EVERY_ENTRY]
        delete_acls(client, [AclFilter(resource, entry) for entry in filters])


def _list(client: ClusterClient, given: Given) -> None:
    found: dict[ResourcePattern, set[AclEntry]] = {}
    for resource in _resources(given) or [EVERY_PATTERN]:
        for binding in describe_acls(client, AclFilter(resource, EVERY_ENTRY)):
            found.setdefault(binding.pattern, set()).add(binding.entry)
    principals: list[str | None] = [*_principals(given, "principal")]
    for principal in principals or [None]:
        if principal is not None:
            print(f"ACLs for principal `{principal}`")
        for pattern, entries in found.items():
            if shown := [entry for entry in entries if principal in (None, entry.principal)]:
                _print_acls("Current", pattern, shown)


def _print_acls(what: str, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
    listed = "\n".join(f"\t{_shown(entry)}" for entry in _in_order(entries))
    print(f"{what} ACLs for resource `{_resource(pattern)}`: \n {listed} \n")


def _resource(pattern: ResourcePattern | PatternFilter) -> str:
    kind, how = pattern.type.name, pattern.pattern.name
    return f"ResourcePattern(resourceType={kind}, name={pattern.name}, patternType={how})"


def _in_order(entries: Iterable[AclEntry]) -> list[AclEntry]:
    return sorted(entries, key=lambda entry: (entry.principal, entry.operation, entry.host))


def _shown(entry: AclEntry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission.name})"
    )


def _wanted(given: Given) -> dict[PatternFilter, frozenset[AclEntry]]:
    resources = _resources(given)
    if not resources:
        raise WrongOptions(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    rights: dict[PatternFilter, set[AclOperation]] = {}
    for resource in resources:
        for role in given.any_of("producer", "consumer"):
            rights.setdefault(resource, set()).update(_of_role(role, resource.type))
    if given.any_of("producer", "consumer"):
        rights = {resource: operations for resource, operations in rights.items() if operations}
    else:
        operations = {_operation(name) for name in given.values("operation")}
        rights = {resource: operations for resource in resources}  # noqa: C420
    for resource, operations in rights.items():
        valid = SUPPORTED_OPERATIONS[resource.type] | {_OP.ALL} if resource.type > ResourceType.ANY else set(_OP)
        if not operations <= valid:
            names = ",".join(sorted(operation.shown for operation in valid))
            raise WrongOptions(f"ResourceType {resource.type.name} only supports operations {names}")
    return {resource: frozenset(_entries(given, operations)) for resource, operations in rights.items()}


def _of_role(role: str, kind: ResourceType) -> set[AclOperation]:
    if role == "producer":
        return {
            ResourceType.TOPIC: {_OP.WRITE, _OP.DESCRIBE, _OP.CREATE},
            ResourceType.TRANSACTIONAL_ID: {_OP.WRITE, _OP.DESCRIBE},
            ResourceType.CLUSTER: {_OP.IDEMPOTENT_WRITE},
        }.get(kind, set())
    return {ResourceType.TOPIC: {_OP.READ, _OP.DESCRIBE}, ResourceType.GROUP: {_OP.READ}}.get(kind, set())


def _entries(given: Given, operations: Iterable[AclOperation]) -> Iterable[AclEntry]:
    wanted = sorted(operations)
    for option, permission in (("allow", PermissionType.ALLOW), ("deny", PermissionType.DENY)):
        hosts = [host.strip() for host in given.values(f"{option}-host")] or [WILDCARD]
        for principal in _principals(given, f"{option}-principal"):
            for host in hosts:
                for operation in wanted:
                    yield AclEntry(principal, host, operation, permission)


def _operation(name: str) -> AclOperation:
    try:
        return _OPERATIONS[name.strip().lower().replace("_", "")]
    except KeyError:
        known = ", ".join(op.shown for op in _OPERATIONS.values())
        raise WrongOptions(f"{name} is not an operation; there are {known}") from None


def _principals(given: Given, option: str) -> list[str]:
    principals = [value.strip() for value in given.values(option)]
    for principal in principals:
        kind, colon, _ = principal.partition(":")
        if not kind or not colon:
            raise WrongOptions(f"expected a string in format principalType:principalName but got {principal}")
    return principals


def _pattern_type(given: Given) -> PatternType:
    try:
        found = PatternType[given.text("resource-pattern-type").upper()]
    except KeyError:
        found = PatternType.UNKNOWN
    if found is PatternType.UNKNOWN:
        raise WrongOptions("--resource-pattern-type must be one of literal, prefixed, any, match")
    return found


def _resources(given: Given) -> list[PatternFilter]:
    how = _pattern_type(given)
    resources = [
        PatternFilter(kind, name.strip(), how) for option, kind in _KINDS.items() for name in given.values(option)
    ]
    if how is PatternType.LITERAL and given.any_of("cluster", "idempotent"):
        resources.append(PatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return resources
