"""Changes of a group between two readings. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.client.group_admin import Group, Member

_NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class Seen:
    at_ms: int
    what: str


def changed(before: Group | None, now: Group, at_ms: int) -> list[Seen]:
    """Describe the rebalance as far as two readings show it: members that joined or left, partitions that moved."""
    if before is None:
        return []
    changes: list[str] = []
    old = {member.id: member for member in before.members}
    new = {member.id: member for member in now.members}
    changes += _joined_or_left([m for id_, m in old.items() if id_ not in new], "left")
    changes += _joined_or_left([m for id_, m in new.items() if id_ not in old], "joined")
    if before.coordinator != now.coordinator:
        changes.append(f"its coordinator moved from broker {before.coordinator} to {now.coordinator}")
    if before.assignor != now.assignor and before.assignor and now.assignor:
        changes.append(f"the assignor changed from {before.assignor} to {now.assignor}")
    if before.state != now.state:
        changes.append(f"{before.state} → {now.state}")
    owners_before = {tp: m.id for m in before.members for tp in m.partitions}
    owners_now = {tp: m.id for m in now.members for tp in m.partitions}
    moved = sum(owners_now.get(tp) != owner for tp, owner in owners_before.items())
    gained = len(owners_now.keys() - owners_before.keys())
    if moved or gained:
        changes.append(f"{moved} partitions changed hands, {gained} are newly read")
    return [Seen(at_ms, what) for what in changes]


def _joined_or_left(members: Sequence[Member], did: str) -> list[str]:
    """A few members by name, many in one line."""
    if len(members) > _NAMED_MAX:
        return [f"{len(members):,} members {did}"]
    return [f"{_name(member.client_id, member.host)} {did}" for member in members]


def _name(client: str, host: str) -> str:
    return f"{client}{host}" if host.startswith("/") else f"{client} at {host}"
