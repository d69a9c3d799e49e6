"""Memory of allowed actions on a connection: it ends with the ACLs and with the principal, and holds no denial."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.api.authorization import authorized, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.security.authorizer import acl_authorizer
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer, Requester
from odradek.broker.security.authorizer.allowed_names import NAMES_MAX, AllowedNames, action, remember
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import AclEntry, AclOperation, PermissionType, ResourcePattern, ResourceType

READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")


class Counting(AclAuthorizer):
    """Counts the decisions that are made."""

    def __init__(self) -> None:
        super().__init__([], allow_everyone_if_no_acl_found=False)
        self.asked: list[str] = []

    def authorize(
        self, requester: Requester, operation: AclOperation, kind: ResourceType, name: str, **how: Any
    ) -> bool:
        self.asked.append(name)
        return super().authorize(requester, operation, kind, name, **how)

    def allow(self, *names: str, who: KafkaPrincipal = ALICE) -> None:
        entry = AclEntry(str(who), "*", WRITE, PermissionType.ALLOW)
        self.set_acls({ResourcePattern(TOPIC, name): frozenset({entry}) for name in names})


@pytest.fixture
def authorizer() -> Counting:
    return Counting()


@pytest.fixture
def ctx(authorizer: Counting) -> RequestContext:
    connection = SimpleNamespace(principal=ALICE, client_host="10.0.0.1", allowed_names=None)
    context = SimpleNamespace(
        broker=SimpleNamespace(authorizer=authorizer),
        request=SimpleNamespace(connection=connection),
        header=SimpleNamespace(api_key=0),
        client_host="10.0.0.1",
        principal=ALICE,
    )
    return cast(RequestContext, context)


def test_an_allowed_action_is_decided_once(ctx: RequestContext, authorizer: Counting) -> None:
    authorizer.allow("a", "b")
    for _ in range(3):
        assert not denied_topics(ctx, WRITE, ["a", "b"])
        assert authorized(ctx, WRITE, TOPIC, "a")
    assert authorizer.asked == ["a", "b"]
    assert denied_topics(ctx, READ, ["a"]) == {"a"}, "another operation is another action"


def test_a_denied_action_is_decided_each_time(ctx: RequestContext, authorizer: Counting) -> None:
    authorizer.allow("a")
    for _ in range(2):
        assert denied_topics(ctx, WRITE, ["a", "b"]) == {"b"}
        assert not authorized(ctx, WRITE, TOPIC, "b")
    assert authorizer.asked.count("b") == 4


def test_a_change_of_acls_ends_the_memory(ctx: RequestContext, authorizer: Counting) -> None:
    authorizer.allow("a")
    assert not denied_topics(ctx, WRITE, ["a"])
    authorizer.set_acls({ResourcePattern(TOPIC, "a"): frozenset()}, everything=False)
    assert denied_topics(ctx, WRITE, ["a"]) == {"a"}
    assert not authorized(ctx, WRITE, TOPIC, "a")


def test_a_change_of_the_principal_ends_the_memory(ctx: RequestContext, authorizer: Counting) -> None:
    authorizer.allow("a")
    assert authorized(ctx, WRITE, TOPIC, "a")
    changed = cast(Any, ctx)
    changed.principal = changed.request.connection.principal = BOB
    assert not authorized(ctx, WRITE, TOPIC, "a")


def test_each_decision_is_logged_where_allowed_ones_are(
    ctx: RequestContext, authorizer: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer.allow("a")
    monkeypatch.setattr(acl_authorizer.authorizer_log, "threshold", 10)
    monkeypatch.setattr(acl_authorizer, "_log", lambda *_, **__: None)
    assert not denied_topics(ctx, WRITE, ["a"])
    assert not denied_topics(ctx, WRITE, ["a"])
    assert authorizer.asked == ["a", "a"]


def test_the_memory_is_bounded() -> None:
    names = AllowedNames(1, ALICE)[action(WRITE, TOPIC)]
    remember(names, map(str, range(NAMES_MAX + 1)))
    assert names == {str(NAMES_MAX)}
