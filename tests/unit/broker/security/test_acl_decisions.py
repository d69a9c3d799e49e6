"""Decisions from ACLs: patterns, hosts, deny before allow, implied operations, and what fails closed."""

import pytest

from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer, Requester
from odradek.broker.security.authorizer.core.acl_index import AclIndex
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import (
    CLUSTER_NAME,
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

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALICE = "User:alice"
HOST = "10.0.0.1"


def acl(
    name: str = "orders",
    operation: AclOperation = READ,
    permission: PermissionType = ALLOW,
    principal: str = ALICE,
    host: str = "*",
    pattern: PatternType = LITERAL,
    kind: ResourceType = TOPIC,
) -> AclBinding:
    return AclBinding(ResourcePattern(kind, name, pattern), AclEntry(principal, host, operation, permission))


def index(*bindings: AclBinding, unreadable: tuple[ResourcePattern, ...] = (), everyone: bool = False) -> AclIndex:
    acls: dict[ResourcePattern, frozenset[AclEntry]] = {}
    for binding in bindings:
        acls[binding.pattern] = acls.get(binding.pattern, frozenset()) | {binding.entry}
    return AclIndex({**acls, **dict.fromkeys(unreadable)}, allow_if_no_acl_found=everyone)


def may(
    acls: AclIndex, operation: AclOperation = READ, name: str = "orders", who: str = ALICE, host: str = HOST
) -> bool:
    return acls.allows(who, host, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("binding", "allowed"),
    [
        (acl(), True),
        (acl("*"), True),
        (acl("ord", pattern=PREFIXED), True),
        (acl("orders", pattern=PREFIXED), True),
        (acl("orders2", pattern=PREFIXED), False),
        (acl("ord"), False),
        (acl("*", pattern=PREFIXED), False),
        (acl("Orders"), False),
        (acl(kind=GROUP), False),
        (acl(principal="User:*"), True),
        (acl(principal="User:Alice"), False),
        (acl(principal="Group:alice"), False),
        (acl(principal="Group:*"), False),
        (acl(host=HOST), True),
        (acl(host="10.0.0.2"), False),
        (acl(operation=ALL), True),
        (acl(operation=WRITE), False),
    ],
)
def test_one_acl(binding: AclBinding, allowed: bool) -> None:
    assert may(index(binding)) is allowed


@pytest.mark.parametrize(
    "denied", [acl(permission=DENY), acl("*", permission=DENY), acl("o", permission=DENY, pattern=PREFIXED)]
)
def test_a_denial_wins_wherever_it_is(denied: AclBinding) -> None:
    allowing = [acl(), acl("*"), acl("orders", pattern=PREFIXED), acl(operation=ALL)]
    assert not may(index(*allowing, denied))
    assert may(index(*allowing, denied), WRITE), "another operation"


def test_a_denial_from_one_host_is_for_that_host() -> None:
    acls = index(acl(), acl(permission=DENY, host="10.0.0.2"))
    assert may(acls)
    assert not may(acls, host="10.0.0.2")


def test_addresses_are_the_same_in_every_spelling() -> None:
    assert may(index(acl(host="0:0:0:0:0:0:0:1")), host="::1")
    assert not may(index(acl(), acl(permission=DENY, host="::1")), host="0:0:0:0:0:0:0:1")
    assert not may(index(acl(), acl(permission=DENY, host="::ffff:10.0.0.7")), host="10.0.0.7")


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER, DESCRIBE, ALL])
def test_describe_is_implied(operation: AclOperation) -> None:
    assert may(index(acl(operation=operation)), DESCRIBE)


@pytest.mark.parametrize("operation", [AclOperation.CREATE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS])
def test_describe_is_not_implied(operation: AclOperation) -> None:
    assert not may(index(acl(operation=operation)), DESCRIBE)


def test_describe_configs_is_implied_by_alter_configs_alone() -> None:
    assert may(index(acl(operation=AclOperation.ALTER_CONFIGS)), AclOperation.DESCRIBE_CONFIGS)
    assert not may(index(acl(operation=AclOperation.ALTER)), AclOperation.DESCRIBE_CONFIGS)


def test_a_denial_implies_nothing() -> None:
    acls = index(acl(operation=DESCRIBE), acl(permission=DENY))
    assert may(acls, DESCRIBE)
    assert not may(index(acl(), acl(operation=DESCRIBE, permission=DENY)), DESCRIBE)


def test_without_an_acl_the_setting_decides() -> None:
    other = acl("other")
    assert not may(index(other))
    assert may(index(other, everyone=True))
    assert not may(index(acl(principal="User:bob"), everyone=True)), "there is one: it is not alice's"


def test_what_cannot_be_read_is_denied_even_where_everyone_is_allowed() -> None:
    for pattern in (
        ResourcePattern(TOPIC, "orders"),
        ResourcePattern(TOPIC, "*"),
        ResourcePattern(TOPIC, "or", PREFIXED),
    ):
        acls = index(acl(), acl("other"), unreadable=(pattern,), everyone=True)
        assert not may(acls)
        assert may(acls, name="other") is (pattern.name != "*")


def test_an_index_is_changed_pattern_by_pattern() -> None:
    first = index(acl(), acl("a", pattern=PREFIXED), acl("bb", pattern=PREFIXED))
    second = first.changed(
        {
            ResourcePattern(TOPIC, "orders"): frozenset(),
            ResourcePattern(TOPIC, "a", PREFIXED): None,
            ResourcePattern(TOPIC, "bb", PREFIXED): frozenset(),
            ResourcePattern(TOPIC, "ccc", PREFIXED): frozenset({acl().entry}),
        }
    )
    names = ("orders", "ax", "bbx", "cccx")
    assert [may(first, name=name) for name in names] == [True, True, True, False]
    assert [may(second, name=name) for name in names] == [False, False, False, True]


def test_cve_2024_27309_remove_one_of_three_acls_leaves_two() -> None:
    """The authorizer went on as if there were none of them."""
    authorizer = AclAuthorizer([], allow_everyone_if_no_acl_found=False)
    bob, carol = "User:bob", "User:carol"
    entries = {acl(principal=principal).entry for principal in (ALICE, bob, carol)}
    authorizer.set_acls({ResourcePattern(TOPIC, "orders"): frozenset(entries)})
    assert all(allowed(authorizer, who) for who in (ALICE, bob, carol))
    entries.remove(acl(principal=bob).entry)
    authorizer.set_acls({ResourcePattern(TOPIC, "orders"): frozenset(entries)}, everything=False)
    assert [allowed(authorizer, who) for who in (ALICE, bob, carol)] == [True, False, True]
    assert authorizer.acl_count == 2


def allowed(authorizer: AclAuthorizer, who: str, operation: AclOperation = READ, name: str = "orders") -> bool:
    return authorizer.authorize(Requester(KafkaPrincipal.parse(who), HOST, "FETCH"), operation, TOPIC, name)


def test_until_acls_are_read_super_users_alone_are_allowed() -> None:
    authorizer = AclAuthorizer([KafkaPrincipal("User", "root")], allow_everyone_if_no_acl_found=True)
    assert not allowed(authorizer, ALICE)
    assert allowed(authorizer, "User:root")
    authorizer.set_acls({})
    assert allowed(authorizer, ALICE)


def test_a_super_user_is_not_denied() -> None:
    authorizer = AclAuthorizer([KafkaPrincipal("User", "root")], allow_everyone_if_no_acl_found=False)
    denial = acl("*", operation=ALL, permission=DENY, principal="User:*")
    authorizer.set_acls({denial.pattern: frozenset({denial.entry})})
    assert allowed(authorizer, "User:root")
    assert not allowed(authorizer, "Group:root")


def test_refusals_are_told_when_they_were_asked_for() -> None:
    told = []
    authorizer = AclAuthorizer(
        [],
        allow_everyone_if_no_acl_found=False,
        on_denied=lambda requester, operation, kind, name: told.append((operation, kind, name)),
    )
    authorizer.set_acls({})
    requester = Requester(KafkaPrincipal.parse(ALICE), HOST, "METADATA")
    assert not authorizer.authorize(requester, DESCRIBE, TOPIC, "a", log_denied=False)
    assert authorizer.authorized_operations(requester, TOPIC, "a") == 0
    assert told == []
    assert not authorizer.authorize(requester, DESCRIBE, TOPIC, "a")
    assert told == [(DESCRIBE, TOPIC, "a")]


def test_authorized_operations_have_kafkas_bits() -> None:
    authorizer = AclAuthorizer([KafkaPrincipal("User", "root")], allow_everyone_if_no_acl_found=False)
    binding = acl(operation=READ)
    authorizer.set_acls({binding.pattern: frozenset({binding.entry})})
    root = Requester(KafkaPrincipal("User", "root"), HOST, "METADATA")
    alice = Requester(KafkaPrincipal.parse(ALICE), HOST, "METADATA")
    assert authorizer.authorized_operations(alice, TOPIC, "orders") == 1 << 3 | 1 << 8
    assert authorizer.authorized_operations(root, TOPIC, "orders") == 0b1101_1111_1000
    assert authorizer.authorized_operations(root, GROUP, "g") == 0b1_0100_1000
    assert authorizer.authorized_operations(root, CLUSTER, CLUSTER_NAME) == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    ("bindings", "everyone", "expected"),
    [
        ([], False, False),
        ([], True, True),
        ([acl(operation=WRITE)], False, True),
        ([acl(operation=ALL)], False, True),
        ([acl(operation=READ)], False, False),
        ([acl("*", operation=WRITE)], False, True),
        ([acl("o", operation=WRITE, pattern=PREFIXED)], False, True),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY)], False, False),
        ([acl(operation=WRITE), acl("ord", operation=WRITE, permission=DENY, pattern=PREFIXED)], False, False),
        ([acl(operation=WRITE), acl("orders2", operation=WRITE, permission=DENY, pattern=PREFIXED)], False, True),
        (
            [acl("ab", operation=WRITE, pattern=PREFIXED), acl("a", operation=ALL, permission=DENY, pattern=PREFIXED)],
            False,
            False,
        ),
        (
            [acl("a", operation=WRITE, pattern=PREFIXED), acl("ab", operation=ALL, permission=DENY, pattern=PREFIXED)],
            False,
            True,
        ),
        ([acl("*", operation=WRITE), acl("ab", operation=ALL, permission=DENY, pattern=PREFIXED)], False, True),
        ([acl("*", operation=WRITE), acl("*", operation=WRITE, permission=DENY)], True, False),
        ([acl(operation=WRITE, host="10.9.9.9")], False, False),
        ([acl(operation=WRITE, principal="User:bob")], False, False),
    ],
)
def test_some_resource_of_a_type(bindings: list[AclBinding], everyone: bool, expected: bool) -> None:
    assert index(*bindings, everyone=everyone).allows_any(ALICE, HOST, WRITE, TOPIC) is expected


@pytest.mark.parametrize(
    ("kind", "name", "how", "matched"),
    [
        (ResourceType.ANY, None, PatternType.ANY, {"orders", "*", "ord…"}),
        (TOPIC, "orders", LITERAL, {"orders"}),
        (TOPIC, "orders", PatternType.ANY, {"orders"}),
        (TOPIC, "ord", PREFIXED, {"ord…"}),
        (TOPIC, "orders", PREFIXED, set()),
        (TOPIC, "orders", PatternType.MATCH, {"orders", "*", "ord…"}),
        (TOPIC, "order", PatternType.MATCH, {"*", "ord…"}),
        (TOPIC, "*", LITERAL, {"*"}),
        (TOPIC, None, PREFIXED, {"ord…"}),
        (GROUP, None, PatternType.ANY, set()),
    ],
)
def test_filters(kind: ResourceType, name: str | None, how: PatternType, matched: set[str]) -> None:
    patterns = {
        "orders": ResourcePattern(TOPIC, "orders"),
        "*": ResourcePattern(TOPIC, "*"),
        "ord…": ResourcePattern(TOPIC, "ord", PREFIXED),
    }
    wanted = PatternFilter(kind, name, how)
    assert {shown for shown, pattern in patterns.items() if wanted.matches(pattern)} == matched


def test_filters_of_entries() -> None:
    binding = acl()
    any_pattern = PatternFilter(ResourceType.ANY, None, PatternType.ANY)

    def finds(principal: str | None, host: str | None, operation: AclOperation, permission: PermissionType) -> bool:
        return AclFilter(any_pattern, EntryFilter(principal, host, operation, permission)).matches(binding)

    assert finds(None, None, AclOperation.ANY, PermissionType.ANY)
    assert finds(ALICE, "*", READ, ALLOW)
    assert not finds("User:bob", None, AclOperation.ANY, PermissionType.ANY)
    assert not finds(None, HOST, AclOperation.ANY, PermissionType.ANY)
    assert not finds(None, None, ALL, PermissionType.ANY)
    assert not finds(None, None, AclOperation.ANY, DENY)
