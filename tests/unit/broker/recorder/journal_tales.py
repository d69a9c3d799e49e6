"""Entries for tests of the journal."""

from collections.abc import Iterator

from odradek.broker.recorder.core.entry import Kind
from odradek.broker.recorder.recorder import Facts


def telling(*facts: Facts) -> Iterator[Facts]:
    yield from facts


def state(leader: int, leader_epoch: int, *isr: int, topic: str = "orders", partition: int = 0) -> Facts:
    return {
        "kind": Kind.WRITE,
        "what": "PartitionState",
        "topic": topic,
        "partition": partition,
        "leader": leader,
        "leader_epoch": leader_epoch,
        "isr": isr,
    }


ELECTED: Facts = {"kind": Kind.TERM, "what": "Elected"}
EVENT: Facts = {"kind": Kind.EVENT, "what": "BrokersChanged"}
