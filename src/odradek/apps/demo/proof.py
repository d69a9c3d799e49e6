"""Comparison of the sent records with the results, without Spark: pyarrow reads the table, our client the topics.

Each good order must be in the table once; each bad record among the dead letters once; the revenue of each window and
category, its last value in the topic, must be the sum of the orders.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from odradek.apps.pipeline.sample_orders import CATEGORIES, Sent
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import FetchOptions, RecordReader, records_in
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST
from odradek.protocol.records import Record

_WINDOW_S = 10
_CENT = 0.011
Windows = Mapping[tuple[str, str], tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    expected: int
    found: int
    lost: int
    twice: int
    wrong: int

    @property
    def ok(self) -> bool:
        return not (self.lost or self.twice or self.wrong)


@dataclass(frozen=True, slots=True)
class Proof:
    checks: tuple[Check, ...]
    windows: Windows
    reasons: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def prove(sent: Sent, table: Path, bootstrap: str, dead_letters: str, revenue: str) -> Proof:
    letters, written = topic_records(bootstrap, dead_letters), topic_records(bootstrap, revenue)
    windows = last_windows(written)
    return Proof(
        checks=(
            compare("orders in the Delta table", order_ids(sent), Counter(table_orders(table))),
            compare("bad records among the dead letters", _bad_values(sent), Counter(r.value for r in letters)),
            compare_windows(sent, windows),
        ),
        windows=windows,
        reasons=Counter(reason_of(record) for record in letters),
    )


def compare(what: str, expected: Mapping[object, int], found: Mapping[object, int]) -> Check:
    return Check(
        what,
        expected=sum(expected.values()),
        found=sum(found.values()),
        lost=sum(max(0, count - found.get(item, 0)) for item, count in expected.items()),
        twice=sum(max(0, count - expected[item]) for item, count in found.items() if item in expected),
        wrong=sum(count for item, count in found.items() if item not in expected),
    )


def compare_windows(sent: Sent, found: Windows) -> Check:
    expected = expected_windows(sent)
    wrong = [key for key, sums in found.items() if key not in expected or not _same(expected[key], sums)]
    lost = [key for key in expected if key not in found]
    return Check("windows of revenue in the topic", len(expected), len(found), len(lost), 0, len(wrong))


def expected_windows(sent: Sent) -> Windows:
    sums: dict[tuple[str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for record in sent.records:
        if record.order is None or record.is_copy:
            continue
        at = datetime.fromisoformat(record.order["at"]).timestamp()
        start = datetime.fromtimestamp(at // _WINDOW_S * _WINDOW_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        key = (CATEGORIES[record.order["category_id"]], start)
        sums[key] = (sums[key][0] + 1, sums[key][1] + record.order["amount"])
    return dict(sums)


def last_windows(records: list[Record]) -> Windows:
    """The last value of each window, by category and start. All records of a key are in one partition, in order."""
    windows: dict[tuple[str, str], tuple[int, float]] = {}
    for record in records:
        row = json.loads(record.value or b"{}")
        windows[row["category"], row["window_start"]] = (row["orders"], row["revenue"])
    return windows


def topic_records(bootstrap: str, topic: str) -> list[Record]:
    """All committed records, partition by partition."""
    committed = IsolationLevel.READ_COMMITTED
    found: dict[TopicPartition, list[Record]] = {}
    with ClusterClient(bootstrap) as client:
        partitions = [TopicPartition(topic, p.partition) for p in client.topic(topic).partitions]
        first = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
        latest = list_offsets(client, dict.fromkeys(partitions, LATEST), committed)
        ends = {tp: at.offset or 0 for tp, at in latest.items()}
        reader = RecordReader(
            client, {tp: first[tp].offset or 0 for tp in partitions}, FetchOptions(isolation=committed)
        )
        for tp in partitions:
            if reader.positions[tp] >= ends[tp]:
                reader.stop(tp)
        while reader.positions:
            for fetched in reader.poll():
                found.setdefault(fetched.tp, []).extend(records_in(fetched))
            for tp in [tp for tp, at in reader.positions.items() if at >= ends[tp]]:
                reader.stop(tp)
    return [record for tp in partitions for record in found.get(tp, [])]


def table_orders(table: Path) -> list[str]:
    from deltalake import DeltaTable

    rows = DeltaTable(table).to_pyarrow_dataset().to_table(["order_id"])
    return [str(item) for item in rows["order_id"].to_pylist()]


def reason_of(record: Record) -> str:
    reasons = [value for key, value in record.headers if _text(key) == "odradek.reason"]
    return _text(reasons[0] or b"") if reasons else "none given"


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def order_ids(sent: Sent) -> Counter[object]:
    return Counter(str(r.order["order_id"]) for r in sent.records if r.order is not None and not r.is_copy)


def _bad_values(sent: Sent) -> Counter[object]:
    return Counter(record.value for record in sent.records if record.order is None)


def _same(expected: tuple[int, float], found: tuple[int, float]) -> bool:
    return expected[0] == found[0] and abs(expected[1] - found[1]) < _CENT
