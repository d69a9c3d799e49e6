"""Users, ACLs and the audit log as tables."""

import json
from collections.abc import Iterable, Mapping, Sequence

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.audit import AuditEntry
from odradek.apps.console.readings.security import AclsState
from odradek.apps.console.views.parts import Column, button, chip, paged, pager, table
from odradek.apps.figures import moment, plural
from odradek.model.acls import AclBinding, PatternType, PermissionType, ResourceType

_USERS = "User:"


def users_table(
    users: Mapping[str, Mapping[str, int]], acls: Sequence[AclBinding] | None, page_number: int, *, read_only: bool
) -> Html:
    window = paged(len(users), page_number)
    columns = [Column("User"), Column("Mechanisms"), Column("ACLs", numeric=True), Column("", numeric=True)]
    rows = [_user_cells(user, users[user], acls, read_only=read_only) for user in sorted(users)[window.window]]
    return together(table(columns, rows, empty="No user has a SCRAM credential."), pager(window))


def _user_cells(
    user: str, mechanisms: Mapping[str, int], acls: Sequence[AclBinding] | None, *, read_only: bool
) -> list[object]:
    own = None if acls is None else sum(acl.entry.principal == f"{_USERS}{user}" for acl in acls)
    acts = together(
        button("Set password", "password", cls="btn small", user=user),
        " ",
        button("Delete", "delete", cls="btn small danger", user=user),
    )
    return [
        tag("b", user),
        tag(
            "span",
            [chip(f"{name}, {iterations:,} iterations") for name, iterations in sorted(mechanisms.items())],
            cls="chips",
        ),
        "–" if own is None else tag("a", own, href=link("acls", q=f"{_USERS}{user}")),
        None if read_only else tag("span", acts, cls="nowrap"),
    ]


def matching_acls(acls: Iterable[AclBinding], text: str) -> list[AclBinding]:
    """Return the ACLs in whose columns every word of the text is found."""
    words = text.lower().split()
    return [acl for acl in acls if all(word in " ".join(acl_words(acl)).lower() for word in words)]


def acl_words(acl: AclBinding) -> tuple[str, ...]:
    return (
        acl.entry.principal,
        acl.entry.permission.shown,
        acl.entry.operation.shown,
        acl.pattern.type.shown,
        acl.pattern.name,
        acl.pattern.pattern.shown,
        acl.entry.host,
    )


def acl_key(acl: AclBinding) -> str:
    """The ACL in the words of a page, by which it is found again."""
    return json.dumps(acl_words(acl))


def acls_table(state: AclsState, text: str, page_number: int, *, read_only: bool) -> Html:
    if not state.has_authorizer:
        return tag(
            "div",
            "Brokers of this cluster check no rights: every client may do everything. "
            "A cluster of `odradek up --secure` has ACLs.",
            cls="card empty",
        )
    found = matching_acls(state.acls, text)
    window = paged(len(found), page_number)
    columns = [
        Column("Principal"),
        Column("Permission"),
        Column("Operation"),
        Column("Resource"),
        Column("Host", small=False),
        Column("", numeric=True),
    ]
    rows = [_acl_cells(acl, read_only=read_only) for acl in found[window.window]]
    empty = "No ACL matches." if state.acls else "There are no ACLs."
    return together(table(columns, rows, empty=empty), pager(window))


def _acl_cells(acl: AclBinding, *, read_only: bool) -> list[object]:
    is_denial = acl.entry.permission is PermissionType.DENY
    return [
        tag("b", acl.entry.principal),
        chip(acl.entry.permission.shown, "bad" if is_denial else "ok"),
        acl.entry.operation.shown,
        resource_html(acl),
        tag("span", acl.entry.host, cls="mono"),
        None if read_only else button("Delete", "delete", cls="btn small danger", acl=acl_key(acl)),
    ]


def resource_html(acl: AclBinding) -> Html:
    kind, name = acl.pattern.type, acl.pattern.name
    if kind is ResourceType.CLUSTER:
        return tag("span", "Cluster")
    is_prefix = acl.pattern.pattern is PatternType.PREFIXED
    shown: object = tag("span", f"{name}{'…' if is_prefix else ''}", cls="mono")
    if kind is ResourceType.TOPIC and name != "*":
        shown = tag("a", shown, href=link("topics", q=name) if is_prefix else link("topics", name))
    elif kind is ResourceType.GROUP and name != "*" and not is_prefix:
        shown = tag("a", shown, href=link("groups", name))
    return together(kind.shown, " ", shown, " ", chip("prefixed") if is_prefix else None)


def acl_sentence(acl: AclBinding) -> str:
    verb = "Denies" if acl.entry.permission is PermissionType.DENY else "Allows"
    what = "all operations" if acl.entry.operation.shown == "All" else acl.entry.operation.shown
    kind, name = acl.pattern.type, acl.pattern.name
    if kind is ResourceType.CLUSTER:
        where = "on the cluster"
    elif acl.pattern.pattern is PatternType.PREFIXED:
        where = f"on every {kind.shown} that begins with {name}"
    else:
        where = f"on every {kind.shown}" if name == "*" else f"on {kind.shown} {name}"
    source = "any address" if acl.entry.host == "*" else acl.entry.host
    return f"{verb} {acl.entry.principal} {what} {where}, from {source}."


def audit_table(entries: Sequence[AuditEntry], text: str, page_number: int) -> Html:
    words = text.lower().split()
    found = [
        entry
        for entry in entries
        if all(
            word in f"{entry.principal} {entry.host} {entry.request} {entry.detail} {entry.outcome}".lower()
            for word in words
        )
    ]
    window = paged(len(found), page_number)
    columns = [
        Column("Timestamp"),
        Column("Principal"),
        Column("Host", small=False),
        Column("Request"),
        Column("Resource", small=False),
        Column("Outcome"),
    ]
    rows = [
        (
            tag("span", moment(entry.at_ms), cls="mono soft nowrap"),
            entry.principal,
            tag("span", entry.host, cls="mono"),
            entry.request,
            tag("span", entry.detail, cls="small soft"),
            chip(entry.outcome, "ok" if entry.outcome == "done" else "bad"),
        )
        for entry in found[window.window]
    ]
    footer = tag("p", f"{plural(len(found), 'entry', 'entries')} of the newest {len(entries):,}.", cls="note")
    return together(table(columns, rows, empty="No entry matches."), pager(window), footer)
