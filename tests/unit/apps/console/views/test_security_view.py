"""Users, ACLs and audit entries as people read them."""

import json

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.readings.audit import audit_entries
from odradek.apps.console.readings.security import AclsState
from odradek.apps.console.views.security import acl_sentence, acls_table, audit_table, matching_acls, users_table
from odradek.model.acls import (
    AclBinding,
    AclEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

HOSTILE = "<script>alert(1)</script>"


def _acl(
    name: str, user: str = "alice", *, pattern: PatternType = PatternType.LITERAL, deny: bool = False
) -> AclBinding:
    permission = PermissionType.DENY if deny else PermissionType.ALLOW
    entry = AclEntry(f"User:{user}", "*", AclOperation.READ, permission)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, pattern), entry)


def test_an_acl_is_a_sentence() -> None:
    assert acl_sentence(_acl("orders")) == "Allows User:alice Read on Topic orders, from any address."
    assert acl_sentence(_acl("*", deny=True)) == "Denies User:alice Read on every Topic, from any address."
    prefixed = _acl("app", pattern=PatternType.PREFIXED)
    assert acl_sentence(prefixed) == "Allows User:alice Read on every Topic that begins with app, from any address."


def test_acls_are_found_by_words_of_any_column() -> None:
    acls = [_acl("orders"), _acl("letters", "bob", deny=True)]
    assert matching_acls(acls, "bob deny") == acls[1:]
    assert matching_acls(acls, "USER:ALICE orders") == acls[:1]
    assert matching_acls(acls, "nobody") == []


def test_a_cluster_without_an_authorizer_says_what_that_means() -> None:
    assert "check no rights: every client may do everything" in acls_table(
        AclsState((), has_authorizer=False), "", 1, read_only=False
    )
    assert "There are no ACLs." in acls_table(AclsState(()), "", 1, read_only=False)


def test_names_are_text() -> None:
    shown = users_table({HOSTILE: {"SCRAM-SHA-512": 8192}}, [], 1, read_only=False)
    shown += acls_table(AclsState((_acl(HOSTILE, HOSTILE),)), "", 1, read_only=False)
    lines = [json.dumps({"time_ms": 1, "event": "denied", "principal": HOSTILE, "resource": HOSTILE}).encode()]
    shown += audit_table(audit_entries(lines), "", 1)
    assert "<script" not in shown


def test_audit_entries_are_told_in_names_and_half_lines_are_left_out() -> None:
    change = {
        "time_ms": 7,
        "event": "change",
        "principal": "User:admin",
        "host": "10.0.0.7",
        "request": "CREATE_ACLS",
        "errors": ["NONE"],
        "detail": {"creations": [{"resource_type": 2, "resource_name": "a", "operation": 3}]},
    }
    denied = {"time_ms": 8, "event": "denied", "principal": "User:eve", "operation": "Read", "resource": "a"}
    lines = [json.dumps(change).encode(), json.dumps(denied).encode(), b'{"time_ms": 9, "ev', b"3"]
    first, second = audit_entries(lines)
    assert (first.outcome, first.detail) == ("done", "resource_type=Topic, resource_name=a, operation=Read")
    assert (second.outcome, second.detail) == ("denied", "operation=Read, resource=a")
