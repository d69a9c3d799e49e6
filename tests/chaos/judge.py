"""The verdict on a history: which of the anomalies that must never happen did happen. Pure.

The rules are those of the Jepsen workload for Kafka, with records that are unique by value. Offsets may have gaps.
A consumer here is assigned its partitions, so that it may neither skip nor go back.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from chaos.history import UNKNOWN_OFFSET, History, Polled
from odradek.model.topology import TopicPartition


class Kind(Enum):
    LOST = "an acknowledged record lies below the highest offset that was read, and nobody read it"
    UNSEEN = "an acknowledged record was not read by anyone until the end"
    INCONSISTENT_OFFSET = "two values were seen at one offset"
    DUPLICATE = "one value is at two offsets"
    FAILED_BUT_READ = "a record whose send surely failed was read"
    INVENTED = "a value was read that nobody sent"
    SENDS_OUT_OF_ORDER = "a later record of a producer has a lower offset than an earlier one"
    POLLS_OUT_OF_ORDER = "a consumer went back, or was given one record twice"
    SKIPPED = "a consumer passed over a record that another one read"
    TORN = "a part of a transaction was read"
    NOT_COPIED = "a program that copies in transactions left a record out"
    COPIES_DIFFER = "a program that copies in transactions copied a record twice, or out of order"


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: Kind
    partition: TopicPartition
    detail: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.partition}: {self.detail}"


def judge(history: History, *, idempotent: bool = True) -> list[Anomaly]:
    """Every anomaly; without idempotence a duplicate is allowed."""
    anomalies = _inconsistent_offsets(history)
    anomalies += _missing(history)
    if idempotent:
        anomalies += _duplicates(history)
        anomalies += _sends_out_of_order(history)
    anomalies += _unsent(history)
    anomalies += _polls_out_of_order(history.polled)
    anomalies += _skipped(history.polled)
    return anomalies


def _inconsistent_offsets(history: History) -> list[Anomaly]:
    values: dict[tuple[TopicPartition, int], str] = {}
    anomalies = []
    accounts = [(ack.sent.partition, ack.offset, ack.sent.value) for ack in history.acknowledged if ack.offset >= 0]
    accounts += [(polled.partition, polled.offset, polled.value) for polled in history.polled]
    for tp, offset, value in accounts:
        known = values.setdefault((tp, offset), value)
        if known != value:
            anomalies.append(Anomaly(Kind.INCONSISTENT_OFFSET, tp, f"offset {offset} is {known} and {value}"))
    return anomalies


def _missing(history: History) -> list[Anomaly]:
    read: dict[TopicPartition, set[int]] = defaultdict(set)
    values: set[str] = set()
    for polled in history.polled:
        read[polled.partition].add(polled.offset)
        values.add(polled.value)
    highest = {tp: max(offsets) for tp, offsets in read.items()}
    anomalies = []
    for ack in history.acknowledged:
        tp = ack.sent.partition
        if ack.sent.value in values if ack.offset == UNKNOWN_OFFSET else ack.offset in read[tp]:
            continue
        end = highest.get(tp, -1)
        kind = Kind.LOST if ack.offset <= end else Kind.UNSEEN
        where = "an offset that was not told" if ack.offset == UNKNOWN_OFFSET else f"offset {ack.offset}"
        anomalies.append(Anomaly(kind, tp, f"{ack.sent.value} at {where}, read up to offset {end}"))
    return anomalies


def _duplicates(history: History) -> list[Anomaly]:
    places: dict[str, set[tuple[TopicPartition, int]]] = defaultdict(set)
    for ack in history.acknowledged:
        if ack.offset != UNKNOWN_OFFSET:
            places[ack.sent.value].add((ack.sent.partition, ack.offset))
    for polled in history.polled:
        places[polled.value].add((polled.partition, polled.offset))
    return [
        Anomaly(Kind.DUPLICATE, min(where)[0], f"{value} at offsets {sorted(offset for _, offset in where)}")
        for value, where in places.items()
        if len(where) > 1
    ]


def _sends_out_of_order(history: History) -> list[Anomaly]:
    """By the offset that a client was told; where it was told none, by the one at which the record was read."""
    unplaced = {ack.sent.value for ack in history.acknowledged if ack.offset == UNKNOWN_OFFSET}
    found = {polled.value: polled.offset for polled in history.polled if polled.value in unplaced}
    by_producer: dict[tuple[str, TopicPartition], list[tuple[int, int]]] = defaultdict(list)
    for ack in history.acknowledged:
        offset = found.get(ack.sent.value, UNKNOWN_OFFSET) if ack.offset == UNKNOWN_OFFSET else ack.offset
        if offset != UNKNOWN_OFFSET:
            by_producer[ack.sent.producer, ack.sent.partition].append((ack.sent.number, offset))
    anomalies = []
    for (producer, tp), acks in by_producer.items():
        acks.sort()
        for (earlier, lower), (later, higher) in pairwise(acks):
            if higher <= lower:
                detail = f"{producer}-{earlier} at {lower}, then {producer}-{later} at {higher}"
                anomalies.append(Anomaly(Kind.SENDS_OUT_OF_ORDER, tp, detail))
    return anomalies


def _unsent(history: History) -> list[Anomaly]:
    sent = {each.value for each in history.sent}
    refused = {failed.sent.value for failed in history.failed if failed.definite}
    anomalies = []
    for polled in history.polled:
        if polled.value in refused:
            detail = f"{polled.value} at offset {polled.offset} was refused"
            anomalies.append(Anomaly(Kind.FAILED_BUT_READ, polled.partition, detail))
        elif polled.value not in sent:
            anomalies.append(Anomaly(Kind.INVENTED, polled.partition, f"{polled.value!r} at offset {polled.offset}"))
    return anomalies


def _by_consumer(polled: Iterable[Polled]) -> Mapping[tuple[str, TopicPartition], list[Polled]]:
    by_consumer: dict[tuple[str, TopicPartition], list[Polled]] = defaultdict(list)
    for each in polled:
        by_consumer[each.consumer, each.partition].append(each)
    return by_consumer


def _polls_out_of_order(polled: Iterable[Polled]) -> list[Anomaly]:
    anomalies = []
    for (consumer, tp), polls in _by_consumer(polled).items():
        for earlier, later in pairwise(polls):
            if later.offset <= earlier.offset:
                detail = f"{consumer} read offset {earlier.offset}, then {later.offset}"
                anomalies.append(Anomaly(Kind.POLLS_OUT_OF_ORDER, tp, detail))
    return anomalies


def _skipped(polled: list[Polled]) -> list[Anomaly]:
    known: dict[TopicPartition, set[int]] = defaultdict(set)
    for each in polled:
        known[each.partition].add(each.offset)
    anomalies = []
    for (consumer, tp), polls in _by_consumer(polled).items():
        offsets = {each.offset for each in polls}
        first, last = min(offsets), max(offsets)
        if missed := sorted(offset for offset in known[tp] - offsets if first < offset < last):
            anomalies.append(Anomaly(Kind.SKIPPED, tp, f"{consumer} never saw {missed[:5]} of {len(missed)}"))
    return anomalies
