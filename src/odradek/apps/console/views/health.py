"""Problems of partitions: the same words count them on the Cluster screen and filter the Topics screen."""

from collections.abc import Mapping

from odradek.client.cluster_client import PartitionState

OFFLINE = "offline"
UNDER_REPLICATED = "under-replicated"
UNDER_MIN_ISR = "under-min-isr"
AT_MIN_ISR = "at-min-isr"
NOT_PREFERRED = "not-preferred"
PROBLEMS = {
    "": "any health",
    OFFLINE: "offline",
    UNDER_REPLICATED: "under-replicated",
    UNDER_MIN_ISR: "under min ISR",
    AT_MIN_ISR: "at min ISR",
    NOT_PREFERRED: "not led by the preferred replica",
}


def min_isr(settings: Mapping[str, str]) -> int:
    """Return min.insync.replicas of a topic; 1 where it is not known."""
    text = settings.get("min.insync.replicas", "1")
    return int(text) if text.isdecimal() else 1


def problems_of(partition: PartitionState, needed: int) -> frozenset[str]:
    """`needed`: min.insync.replicas. A partition that can't have more replicas in sync is not at its minimum."""
    found = set()
    if partition.is_under_replicated:
        found.add(UNDER_REPLICATED)
    if not partition.is_available:
        return frozenset({*found, OFFLINE})
    if partition.leader != partition.replicas[0]:
        found.add(NOT_PREFERRED)
    wanted, in_sync = min(needed, len(partition.replicas)), len(partition.isr)
    if in_sync < wanted:
        found.add(UNDER_MIN_ISR)
    elif 1 < wanted == in_sync < len(partition.replicas):
        found.add(AT_MIN_ISR)
    return frozenset(found)
