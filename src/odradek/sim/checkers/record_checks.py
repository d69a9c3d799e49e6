"""Records of producers at the end of a story: acknowledged ones are in the log, in order and once."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import batches
from odradek.protocol.records import read_records
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.access import KEYS


def read_values(log: PartitionLog) -> list[bytes]:
    """The values of all records, in the order of their offsets."""
    values: list[bytes] = []
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = log.read(offset, 1 << 20, upper_bound=end).records.read()
        if not data:
            break
        for at, header in batches(data):
            values += [record.value or b"" for record in read_records(data, at, header)]
            offset = header.next_offset
    return values


class LogKind(NamedTuple):
    is_whole: bool = True  # nothing of its beginning was deleted by retention
    is_compacted: bool = False  # former values of keys may be gone


class AcknowledgedProducer(Protocol):
    number: int

    def acknowledged_in(self, tp: TopicPartition) -> Sequence[int]:
        """The numbers of its records in the partition that were acknowledged, in order."""


def check_numbers(name: str, found: Sequence[int], acknowledged: Sequence[int], kind: LogKind) -> None:
    """Compare the records of one producer in one partition, by their numbers, with the acknowledged ones."""
    if len(set(found)) < len(found):
        raise Violation(f"{name}: records are stored twice, the log has {list(found)}")
    if any(later < earlier for earlier, later in pairwise(found)):
        raise Violation(f"{name}: records are out of order, the log has {list(found)}")
    held = set(found)
    expected = list(acknowledged)
    if kind.is_compacted:
        last_of_key = {number % KEYS: number for number in sorted(acknowledged)}
        newer = {number % KEYS: number for number in found}
        expected = [number for key, number in last_of_key.items() if newer.get(key, -1) < number]
    elif not kind.is_whole:
        first = min(held, default=0)
        expected = [number for number in acknowledged if number >= first] if held else []
    if lost := [number for number in expected if number not in held]:
        raise Violation(f"{name}: acknowledged records {lost} are lost, the log has {list(found)}")


def _numbers(values: Sequence[bytes], producer: int, tp: TopicPartition) -> list[int]:
    start = f"{producer}/{tp.partition}/".encode()
    return [int(value[len(start) :]) for value in values if value.startswith(start)]


def check_producer(
    producer: AcknowledgedProducer, tp: TopicPartition, values: Sequence[bytes], kind: LogKind, *, where: str
) -> None:
    found = _numbers(values, producer.number, tp)
    check_numbers(f"{tp} of producer {producer.number} at {where}", found, producer.acknowledged_in(tp), kind)
