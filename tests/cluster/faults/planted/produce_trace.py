"""Writes a line for each batch that a broker was asked to append, when it is answered, to produce-trace.log beside its
server.properties: when it arrived and was answered, where it belongs, who sent it, and the answer.

    ARRIVED ANSWERED PARTITION producer=ID epoch=E sequence=FIRST-LAST acks=A -> offset=O [duplicate] | ERROR
    BEGAN ENDED PARTITION become leader epoch=E isr=… end=LOG END
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.base.errors import KafkaError
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_table import PartitionTable
from odradek.protocol.record_batch import HEADER_SIZE, read_header


class TraceFile:
    """Opened at the first line: when this is installed, the broker doesn't know its arguments yet."""

    def __init__(self) -> None:
        self._fd = -1

    def write(self, text: str) -> None:
        if self._fd < 0:
            path = Path(sys.argv[-1]).with_name("produce-trace.log")
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(self._fd, text.encode())


def install() -> None:
    file = TraceFile()
    append = PartitionTable.append

    def traced(self: Any, batches: Any, *, acks: int, done: Callable[[Any], None], **others: Any) -> Any:
        arrived = time.time()
        asked = list(batches)
        names = [_described(tp, records, acks) for tp, records in asked]

        def note(outcomes: Any) -> None:
            span = f"{arrived:.3f} {time.time():.3f}"
            lines = [f"{span} {name} -> {_answer(o)}\n" for name, o in zip(names, outcomes, strict=True)]
            file.write("".join(lines))

        def noted(outcomes: Any) -> None:
            note(outcomes)
            done(outcomes)

        outcomes = append(self, asked, acks=acks, done=noted, **others)
        if outcomes is not None:
            note(outcomes)
        return outcomes

    PartitionTable.append = traced  # type: ignore[method-assign]
    for name in ("become_leader", "become_follower"):
        setattr(Partition, name, _noting(getattr(Partition, name), name.replace("_", " "), file))


def _noting(change: Callable[..., bool], name: str, file: TraceFile) -> Callable[..., bool]:
    def changed(self: Any, directive: Any) -> bool:
        began = time.time()
        answer = change(self, directive)
        end = self.log.log_end_offset
        text = f"{self.topic_partition} {name} epoch={directive.state.leader_epoch} isr={directive.state.isr} end={end}"
        file.write(f"{began:.3f} {time.time():.3f} {text}\n")
        return answer

    return changed


def _described(tp: Any, records: Any, acks: int) -> str:
    if not isinstance(records, memoryview) or len(records) < HEADER_SIZE:
        return f"{tp} unreadable acks={acks}"
    header = read_header(records)
    sequences = f"{header.base_sequence}-{header.last_sequence}"
    return f"{tp} producer={header.producer_id} epoch={header.producer_epoch} sequence={sequences} acks={acks}"


def _answer(outcome: Any) -> str:
    if isinstance(outcome, KafkaError):
        return f"{outcome.code.name} {outcome.message or ''}".rstrip()
    return f"offset={outcome.first_offset}" + (" duplicate" if outcome.is_duplicate else "")
