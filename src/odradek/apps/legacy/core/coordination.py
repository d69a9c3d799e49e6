"""Next step of a coordinator of design two, from the state of its group. Pure.

A partition moves in three steps, each visible in ZooKeeper, so that any coordinator can go on where another stopped:
its owner is asked to release it; the owner deletes the owner's node; the node is created for the new owner, together
with the order to read it. A dead member has released everything.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from odradek.apps.legacy.core.range_assignment import assign, member_of
from odradek.apps.legacy.core.znodes import AssignedPartitions, Registration
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Group:
    """State of a group in ZooKeeper."""

    members: Mapping[str, Registration]
    registered: Mapping[str, int]
    """The czxid of each member's registration."""
    partitions: Mapping[str, Collection[int]]
    owners: Mapping[TopicPartition, str]
    """The stream that each owner's node names."""
    assignments: Mapping[str, AssignedPartitions]
    """The last assignment of each member, also of members that are gone or have registered again since."""


@dataclass(frozen=True, slots=True)
class Order:
    """Writes for one member, all at once."""

    own: Mapping[TopicPartition, str]
    """The owners' nodes that name its streams from now on."""
    assignment: AssignedPartitions | None
    """Its new assignment; None: it has the right one."""


@dataclass(frozen=True, slots=True)
class Steps:
    orders: Mapping[str, Order]
    release: frozenset[TopicPartition]
    """Owners' nodes of dead members, of partitions that are not assigned any more."""
    forget: frozenset[str]
    """Members that are gone and still have an assignment."""


def next_steps(group: Group) -> Steps:
    wanted = assign(group.members, group.partitions)
    owners = {tp: stream for tp, stream in group.owners.items() if member_of(stream) in group.members}
    given = {tp: stream for tp, stream in wanted.items() if tp not in owners}
    orders = {}
    for member, registration in group.registered.items():
        own = {tp: stream for tp, stream in given.items() if member_of(stream) == member}
        held = own.keys() | {tp for tp, stream in owners.items() if member_of(stream) == member}
        to_read = frozenset(tp for tp in held if tp in wanted and member_of(wanted[tp]) == member)
        assigned = AssignedPartitions(registration, to_read, frozenset(held - to_read))
        is_news = not _says_as_much(group.assignments.get(member), assigned)
        if own or is_news:
            orders[member] = Order(own, assigned if is_news else None)
    return Steps(
        orders=orders,
        release=frozenset(group.owners.keys() - owners.keys() - wanted.keys()),
        forget=frozenset(group.assignments.keys() - group.registered.keys()),
    )


def _says_as_much(earlier: AssignedPartitions | None, assigned: AssignedPartitions) -> bool:
    """Compare two orders, without releases that were carried out."""
    return (
        earlier is not None
        and earlier.registration == assigned.registration
        and earlier.partitions == assigned.partitions
        and earlier.release >= assigned.release
    )
