"""Transactions of foreign producers: the outcome of each by their own account, and what readers of committed records
may see of it. Pure.

A producer prints, a line each, before it does it: `B TXN` begin, `R TXN NUMBER TOPIC PARTITION` a record, `C TXN` the
commit is asked for; and `E TXN OUTCOME` when it was told the outcome. A transaction without an end is undecided if its
commit was asked for. Otherwise nobody may ever see it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from chaos.history import UNKNOWN_OFFSET, Acknowledged, Failed, History, Sent
from chaos.judge import Anomaly, Kind
from odradek.model.topology import TopicPartition

RECORDS_MAX = 1_000
"""Records of a transaction: the number of a record is that of its transaction times this, and its own."""


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Transaction:
    producer: str
    number: int
    outcome: Outcome = Outcome.ABORTED
    records: list[Sent] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"transaction {self.number} of {self.producer}"


def read_transactions(producer: str, lines: Iterable[str]) -> list[Transaction]:
    """A last line that was torn by a kill counts as not printed: what it announces was not done yet."""
    found: dict[int, Transaction] = {}
    for line in lines:
        if not line.endswith("\n"):
            break
        kind, txn, *rest = line.split()
        transaction = found.setdefault(int(txn), Transaction(producer, int(txn)))
        if kind == "R":
            number, topic, partition = rest
            sent = Sent(producer, int(txn) * RECORDS_MAX + int(number), TopicPartition(topic, int(partition)))
            transaction.records.append(sent)
        elif kind == "C":
            transaction.outcome = Outcome.UNKNOWN
        elif kind == "E":
            transaction.outcome = Outcome(rest[0])
    return list(found.values())


def add_to(history: History, transactions: Iterable[Transaction]) -> None:
    """Committed records are acknowledged, records of aborted transactions have surely failed."""
    for transaction in transactions:
        history.sent += transaction.records
        if transaction.outcome is Outcome.COMMITTED:
            history.acknowledged += [Acknowledged(sent, UNKNOWN_OFFSET, 0.0) for sent in transaction.records]
        else:
            is_aborted = transaction.outcome is Outcome.ABORTED
            error = transaction.outcome.value
            history.failed += [Failed(sent, error, definite=is_aborted) for sent in transaction.records]


def torn(transactions: Iterable[Transaction], seen: Collection[str]) -> list[Anomaly]:
    """Transactions of which readers see a part."""
    anomalies = []
    for transaction in transactions:
        visible = [sent for sent in transaction.records if sent.value in seen]
        if visible and len(visible) < len(transaction.records):
            missing = next(sent for sent in transaction.records if sent.value not in seen)
            detail = f"{missing.value} of {transaction.name} is not visible, {len(visible)} other records are"
            anomalies.append(Anomaly(Kind.TORN, missing.partition, detail))
    return anomalies


def copy_faults(source: Mapping[int, Sequence[str]], copies: Mapping[int, Sequence[str]], topic: str) -> list[Anomaly]:
    """Compare the values of each partition with those of its copy: the same, each once, in the same order."""
    anomalies = []
    for partition, values in source.items():
        copied = copies.get(partition, ())
        if list(values) == list(copied):
            continue
        tp = TopicPartition(topic, partition)
        known = set(copied)
        missing = [value for value in values if value not in known]
        anomalies += [Anomaly(Kind.NOT_COPIED, tp, f"{value} of {len(missing)} missing ones") for value in missing[:1]]
        place = next((n for n, pair in enumerate(zip(values, copied, strict=False)) if pair[0] != pair[1]), None)
        if place is not None:
            detail = f"{copied[place]} in place of {values[place]}, copy {place}"
            anomalies.append(Anomaly(Kind.COPIES_DIFFER, tp, detail))
        elif len(copied) > len(values):
            anomalies.append(Anomaly(Kind.COPIES_DIFFER, tp, f"{copied[len(values)]} behind the last record"))
    return anomalies
