"""Groups as administrators see them."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.base.value_classes import dataclass
from odradek.broker.coordinator.groups.core.group import Group, GroupState

CLASSIC = "classic"
"""The type of every group here: the newer kind, in which the broker assigns, is not part of ZooKeeper mode."""


class GroupOverview(NamedTuple):
    """Row of a group in a list of all groups, of which there may be ten thousand."""

    id: str
    protocol_type: str
    state: GroupState


@dataclass(frozen=True, slots=True)
class MemberDescription:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[MemberDescription] = ()


def describe_group(group: Group) -> GroupDescription:
    """Describe a group; subscriptions and assignments are only shown while it is stable."""
    stable = group.state is GroupState.STABLE
    protocol = (group.protocol_name or "") if stable else ""
    members = [
        MemberDescription(
            member.id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.subscription(protocol) if stable else b"",
            member.assignment if stable else b"",
        )
        for member in group.members.values()
    ]
    return GroupDescription(group.state.value, group.protocol_type or "", protocol, members)
