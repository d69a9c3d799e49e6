"""Snapshot of the demo at one moment, taken about twice a second."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.apps.demo.stage import BROKERS, REVENUE, Stage
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.record_reader import FetchOptions, RecordReader, records_in
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel

TABLE_QUERY = "orders"


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    sent: int
    sent_per_second: float
    processed: int
    lag: int | None
    batch_ms: int
    leads: Mapping[int, int | None]  # None: dead
    revenue: Mapping[str, float]


@dataclass(slots=True)
class Observer:
    stage: Stage
    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    _windows: dict[tuple[str, str], float] = field(default_factory=dict)
    _reader: RecordReader | None = None
    _client: ClusterClient | None = None

    def look(self, sent: int, status: Mapping[str, Any] | None) -> Sample:
        self._read_revenue()
        query = next((q for q in (status or {}).get("queries", []) if q["name"] == TABLE_QUERY), None)
        at_s, before = time.monotonic() - self.began, self.samples[-8] if len(self.samples) >= 8 else None
        lags = [q["lag"] for q in (status or {}).get("queries", [])]
        sample = Sample(
            at_s=at_s,
            sent=sent,
            sent_per_second=(sent - before.sent) / (at_s - before.at_s) if before else 0.0,
            processed=query["input_rows_total"] if query else 0,
            lag=None if not lags or None in lags else max(lags),
            batch_ms=query["batch_ms"] if query else 0,
            leads=self._leads(),
            revenue=self._revenue(),
        )
        self.samples.append(sample)
        return sample

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _leads(self) -> dict[int, int | None]:
        try:
            known = self.stage.leaders()
        except (KafkaError, ConnectionFailed):
            known = {}
        live = {broker.id for broker in self.stage.cluster.brokers if broker.pid is not None}
        return {number: known.get(number, 0) if number in live else None for number in range(BROKERS)}

    def _read_revenue(self) -> None:
        """Read the last value of each window so far; a topic that can't be read now is read later."""
        try:
            if self._reader is None:
                self._client = ClusterClient(self.stage.bootstrap, timeout_ms=3_000)
                partitions = self._client.topic(REVENUE).partitions
                positions = {TopicPartition(REVENUE, p.partition): 0 for p in partitions}
                committed = IsolationLevel.READ_COMMITTED
                self._reader = RecordReader(self._client, positions, FetchOptions(max_wait_ms=1, isolation=committed))
            for fetched in self._reader.poll():
                for record in records_in(fetched):
                    row = json.loads(record.value or b"{}")
                    self._windows[row["category"], row["window_start"]] = row["revenue"]
        except (KafkaError, ConnectionFailed):
            return

    def _revenue(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for (category, _), amount in self._windows.items():
            sums[category] = sums.get(category, 0.0) + amount
        return sums
