"""`odradek acls`: the ACLs of the cluster."""

from dataclasses import dataclass
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.client.acl_admin import create_acls, delete_acls, describe_acls
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
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

app = Noun(
    "Show and change ACLs. A principal is written User:alice, or User:* for all principals; the name * is every "
    "resource.",
    examples=[
        "odradek acls list",
        "odradek acls list --topic orders --resource-pattern-type match",
        "odradek acls add --principal User:alice --operation Read --topic orders --group billing",
        "odradek acls add --principal User:bob --operation All --topic tmp- --resource-pattern-type prefixed",
        "odradek acls add --deny --principal User:eve --operation All --topic '*'",
        "odradek acls delete --principal User:alice --topic orders",
    ],
)
_COLUMNS = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
PrincipalOption = Annotated[
    str | None, Option("--principal", metavar="TYPE:NAME", help="The principal of the ACL.", show_default=False)
]
OperationOption = Annotated[
    list[str] | None,
    Option("--operation", metavar="OPERATION", help="An operation: Read, Write, … or All; may be repeated."),
]
HostOption = Annotated[
    str | None, Option("--host", metavar="ADDRESS", help="The client address of the ACL.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class Resources:
    topics: Annotated[list[str] | None, Option("--topic, -t", help="A topic; may be repeated.")] = None
    groups: Annotated[list[str] | None, Option("--group, -g", help="A consumer group.")] = None
    transactional_ids: Annotated[list[str] | None, Option("--transactional-id", help="A transactional id.")] = None
    users: Annotated[list[str] | None, Option("--user-principal", help="A user, as a resource.")] = None
    tokens: Annotated[list[str] | None, Option("--delegation-token", help="A delegation token.")] = None
    cluster: Annotated[bool, Option("--cluster", help="The cluster.")] = False
    pattern_type: Annotated[
        str, Option("--resource-pattern-type", help="literal or prefixed; list and delete also take any and match.")
    ] = "literal"

    def filters(self) -> list[PatternFilter]:
        try:
            how = PatternType[self.pattern_type.upper()]
        except KeyError:
            raise WrongUsage(
                f"{self.pattern_type}: literal, prefixed, any or match", "--resource-pattern-type"
            ) from None
        named = (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.USER, self.users),
            (ResourceType.DELEGATION_TOKEN, self.tokens),
        )
        found = [PatternFilter(kind, name, how) for kind, names in named for name in names or ()]
        if self.cluster:
            found.append(PatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
        return found


@app.verb("list")
def list_acls(
    resources: Resources,
    principal: PrincipalOption = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show ACLs: those of the named resources, or all."""
    everything = [PatternFilter(ResourceType.ANY, None, PatternType.ANY)]
    entry = EntryFilter(principal, None, AclOperation.ANY, PermissionType.ANY)
    with ClusterClient(bootstrap_server) as client:
        found = [
            acl for each in resources.filters() or everything for acl in describe_acls(client, AclFilter(each, entry))
        ]
    _print(found, output, empty="there are no ACLs")


@app.verb()
def add(
    resources: Resources,
    principal: PrincipalOption = None,
    operations: OperationOption = None,
    host: HostOption = None,
    deny: Annotated[bool, Option("--deny", help="Deny the operations; a denial overrides every right.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Add ACLs, which allow or deny operations."""
    named = resources.filters()
    if principal is None or not operations or not named:
        raise WrongUsage("give --principal, --operation, and a resource such as --topic")
    if ":" not in principal:
        raise WrongUsage(f"{principal}: a principal is TYPE:NAME, as User:{principal}", "--principal")
    permission = PermissionType.DENY if deny else PermissionType.ALLOW
    bindings = []
    for resource in named:
        if resource.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise WrongUsage("literal or prefixed, to add an ACL", "--resource-pattern-type")
        pattern = ResourcePattern(resource.type, resource.name or "", resource.pattern)
        bindings += [
            AclBinding(pattern, AclEntry(principal, host or "*", _operation(name, resource.type), permission))
            for name in operations
        ]
    with ClusterClient(bootstrap_server) as client:
        create_acls(client, bindings)
    _print(bindings, output)


@app.verb()
def delete(
    resources: Resources,
    principal: PrincipalOption = None,
    operations: OperationOption = None,
    host: HostOption = None,
    everything: Annotated[bool, Option("--all", help="ACLs of all resources that match the other options.")] = False,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete ACLs, and show the deleted ones."""
    named = resources.filters()
    if not named and not everything:
        raise WrongUsage("name a resource such as --topic, or give --all for every resource")
    wanted = [_operation(name, None) for name in operations or ()] or [AclOperation.ANY]
    filters = [
        AclFilter(resource, EntryFilter(principal, host, operation, PermissionType.ANY))
        for resource in named or [PatternFilter(ResourceType.ANY, None, PatternType.ANY)]
        for operation in wanted
    ]
    with ClusterClient(bootstrap_server) as client:
        _print(delete_acls(client, filters), output, empty="no ACL matches")


def _operation(name: str, kind: ResourceType | None) -> AclOperation:
    plain = name.lower().replace("_", "").replace("-", "")
    for operation in AclOperation:
        if operation.shown.lower() == plain and operation > AclOperation.ANY:
            valid = {AclOperation.ALL} | (SUPPORTED_OPERATIONS[kind] if kind is not None else set(AclOperation))
            if operation in valid:
                return operation
            names = ", ".join(sorted(each.shown for each in valid))
            raise WrongUsage(f"{operation.shown} of a {kind.shown if kind else ''}: there are {names}", "--operation")
    raise WrongUsage(f"{name}: there are {', '.join(op.shown for op in AclOperation if op > 1)}", "--operation")


def _print(acls: list[AclBinding], output: Format, empty: str = "") -> None:
    rows = [
        {
            "resource": acl.pattern.type.shown,
            "name": acl.pattern.name,
            "pattern": acl.pattern.pattern.shown,
            "principal": acl.entry.principal,
            "host": acl.entry.host,
            "operation": acl.entry.operation.shown,
            "permission": acl.entry.permission.shown,
        }
        for acl in acls
    ]
    print_rows(sorted(rows, key=lambda row: tuple(row.values())), _COLUMNS, output, empty=empty)
