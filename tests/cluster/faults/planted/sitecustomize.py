"""Plants a known fault into a broker, to see whether the judge finds it. Imported by Python itself at its start.

ODRADEK_PLANTED names the fault. Each is one that real systems have had. ODRADEK_PRODUCE_TRACE plants none: it has the
broker write down what it answered to producers.
"""

import os
from collections.abc import Callable
from typing import Any


def ack_before_replication() -> None:
    """acks=all is answered as soon as the leader has the records."""
    from odradek.replication.partition import Partition
    from odradek.replication.results import COMMITTED, Appended

    write = Partition._write

    def acknowledging(self: Any, *args: Any) -> Appended:
        return write(self, *args)._replace(awaited_in=COMMITTED)

    Partition._write = acknowledging  # type: ignore[method-assign]


def truncate_by_high_watermark() -> None:
    """Whoever changes its role drops what it doesn't know to be committed (KIP-101)."""
    from odradek.replication.partition import Partition

    def truncating(change: Callable[..., bool]) -> Callable[..., bool]:
        def changed(self: Any, directive: Any) -> bool:
            with self.lock:
                self.log.truncate_to(self.high_watermark)
            return change(self, directive)

        return changed

    Partition.become_leader = truncating(Partition.become_leader)  # type: ignore[method-assign]
    Partition.become_follower = truncating(Partition.become_follower)  # type: ignore[method-assign]


def write_duplicates() -> None:
    """A batch that is sent again is written again, whatever its sequence."""
    from odradek.log.producer_state import ProducerStates, Staged

    ProducerStates.find_duplicate = lambda self, info: None  # type: ignore[method-assign, assignment]
    ProducerStates.stage = lambda self, *args: Staged({}, [])  # type: ignore[method-assign, assignment]


FAULTS = {
    "ack-before-replication": ack_before_replication,
    "truncate-by-high-watermark": truncate_by_high_watermark,
    "write-duplicates": write_duplicates,
}

if name := os.environ.get("ODRADEK_PLANTED"):
    FAULTS[name]()
if os.environ.get("ODRADEK_PRODUCE_TRACE"):
    import produce_trace

    produce_trace.install()
