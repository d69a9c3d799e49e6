"""What a coordinator of design two does next, from what it sees of its group. Pure.

A partition moves in three steps, each visible in ZooKeeper, so that any coordinator can go on where another stopped:
it goes from its owner's assignment; the owner deletes the owner's node; the node is created for the new owner, and the
partition comes into that one's assignment. Who died has let go of everything.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from odradek.legacy.range_assignment import assign, member_of
from odradek.legacy.znodes import Registration
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Group:
    """What ZooKeeper has of a group."""

    members: Mapping[str, Registration]
    partitions: Mapping[str, Collection[int]]
    owners: Mapping[TopicPartition, str]
    """The stream that each owner's node names."""
    assignments: Mapping[str, frozenset[TopicPartition]]
    """What each member was last told; nothing of those that have registered again since."""


@dataclass(frozen=True, slots=True)
class Steps:
    vacate: frozenset[TopicPartition]
    """Owners' nodes of members that are gone."""
    appoint: Mapping[TopicPartition, str]
    """Owners' nodes to create, for the stream."""
    tell: Mapping[str, frozenset[TopicPartition]]
    """Members whose assignment changes."""


def next_steps(group: Group) -> Steps:
    wanted = assign(group.members, group.partitions)
    vacated = frozenset(tp for tp, stream in group.owners.items() if member_of(stream) not in group.members)
    appointed = {tp: s for tp, s in wanted.items() if tp not in group.owners or tp in vacated}
    owners = {tp: stream for tp, stream in group.owners.items() if tp not in vacated} | appointed
    to_read: dict[str, set[TopicPartition]] = {member: set() for member in group.members}
    for tp, stream in owners.items():
        if tp in wanted and member_of(wanted[tp]) == member_of(stream):
            to_read[member_of(stream)].add(tp)
    assignments = {member: frozenset(partitions) for member, partitions in to_read.items()}
    return Steps(
        vacate=vacated,
        appoint=appointed,
        tell={member: told for member, told in assignments.items() if group.assignments.get(member) != told},
    )
