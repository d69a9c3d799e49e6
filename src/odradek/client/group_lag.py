"""Lag of a group: its committed offsets beside the ends of the partitions, and the member that reads each."""

from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import Group, Member, committed_offsets
from odradek.client.partition_offsets import list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import LATEST


@dataclass(frozen=True, slots=True)
class Lag:
    tp: TopicPartition | None  # None: a member without partitions
    committed: int | None
    end: int | None  # None: the partition has no leader, or is gone
    member: Member | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else self.end - self.committed


def group_lags(client: ClusterClient, group: Group) -> list[Lag]:
    """Return one row per assigned partition, member by member; then members without partitions; then partitions with
    offsets and no member.
    """
    committed = committed_offsets(client, group.name)
    owned = {tp for member in group.members for tp in member.partitions}
    ends = known_ends(client, owned | committed.keys())
    rows = [
        Lag(tp, committed.get(tp), ends.get(tp), member)
        for member in sorted(group.members, key=lambda member: -len(member.partitions))
        for tp in sorted(member.partitions, key=lambda tp: (tp.partition, tp.topic))
    ]
    rows += [Lag(None, None, None, member) for member in group.members if not member.partitions]
    rows += [Lag(tp, committed[tp], ends.get(tp), None) for tp in sorted(committed.keys() - owned)]
    return rows


def known_ends(client: ClusterClient, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offsets of partitions that exist and have a leader; the others are left out without a wait."""
    topics = client.topics(sorted({tp.topic for tp in partitions})) if partitions else {}
    led = {
        TopicPartition(topic.name, state.partition)
        for topic in topics.values()
        for state in topic.partitions
        if state.is_available
    }
    found = list_offsets(client, dict.fromkeys(sorted(partitions & led), LATEST))
    return {tp: answer.offset for tp, answer in found.items() if answer.offset is not None}
