"""A simulated shop: plausible orders, of which some are late, some come twice and some are broken.

Used by the sample project and by the demo. Acknowledged records are counted, so that results can be compared.
"""

import json
import random
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from odradek.client.cluster_client import ClusterClient
from odradek.client.record_sender import NewRecord, RecordSender

CATEGORIES = {1: "books", 2: "music", 3: "garden", 4: "kitchen", 5: "toys"}
_PRICES = {1: 14.0, 2: 11.0, 3: 32.0, 4: 48.0, 5: 19.0}
_POPULARITY = (35, 20, 10, 15, 20)
_LATE_SHARE, _TWICE_SHARE, _BROKEN_SHARE = 0.05, 0.03, 0.02
_CUSTOMERS = 5_000
_TICK_S = 0.1
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class SentRecord:
    value: bytes
    order: Mapping[str, Any] | None  # None: a dead letter for any pipeline
    is_copy: bool = False


@dataclass(slots=True)
class Sent:
    """Records that the cluster has acknowledged."""

    records: list[SentRecord] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.records)

    @property
    def good(self) -> int:
        return sum(record.order is not None and not record.is_copy for record in self.records)

    @property
    def twice(self) -> int:
        return sum(record.is_copy for record in self.records)

    @property
    def bad(self) -> int:
        return sum(record.order is None for record in self.records)


class OrderMaker:
    """Generator of orders: the same seed gives the same orders, with other times."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._recent: list[SentRecord] = []

    def make(self, count: int, now: datetime) -> list[SentRecord]:
        return [record for _ in range(count) for record in self._one(now)]

    def _one(self, now: datetime) -> list[SentRecord]:
        chance = self._random
        if chance.random() < _BROKEN_SHARE:
            return [SentRecord(self._broken(now), None)]
        # clocks differ, and some devices were offline for a while
        delay_s = chance.uniform(5, 40) if chance.random() < _LATE_SHARE else chance.uniform(0, 0.5)
        order = self._order(now - timedelta(seconds=delay_s))
        record = SentRecord(json.dumps(order).encode(), order)
        if chance.random() < _TWICE_SHARE:
            return [record, SentRecord(record.value, order, is_copy=True)]
        return [record]

    def _order(self, at: datetime) -> dict[str, Any]:
        chance = self._random
        self._number += 1
        category = chance.choices(list(CATEGORIES), _POPULARITY)[0]
        quantity = chance.choices((1, 2, 3, 5), (70, 20, 7, 3))[0]
        return {
            "order_id": f"{self._number:08d}-{chance.getrandbits(32):08x}",
            "customer": f"customer-{int(_CUSTOMERS * chance.random() ** 2):04d}",  # some buy more than others
            "category_id": category,
            "quantity": quantity,
            "amount": round(_PRICES[category] * quantity * chance.uniform(0.7, 1.6), 2),
            "at": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    def _broken(self, now: datetime) -> bytes:
        """An order that is invalid in one of several ways. Its number identifies it."""
        order = self._order(now)
        number = order["order_id"]
        ways: Sequence[Callable[[], bytes]] = (
            lambda: json.dumps({**order, "amount": -order["amount"]}).encode(),
            lambda: json.dumps({**order, "amount": "a lot"}).encode(),
            lambda: json.dumps({**order, "customer": None}).encode(),
            lambda: json.dumps({**order, "at": (now - timedelta(hours=1)).isoformat()}).encode(),
            lambda: json.dumps(order)[:-20].encode(),
            lambda: f"order {number}, please".encode(),
            lambda: b"\xff\xfe" + number.encode(),
        )
        return self._random.choice(ways)()


class Shop:
    """A writer with acks=all and an idempotent producer, so that each counted record is there, and once."""

    def __init__(self, bootstrap: str, *, orders: str, categories: str) -> None:
        self._client = ClusterClient(bootstrap, client_id="shop", timeout_ms=60_000)
        self._orders, self._categories = orders, categories

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def describe(self, categories: Mapping[int, str]) -> None:
        sender, partitions = RecordSender(self._client, self._categories), self._partitions(self._categories)
        for number, name in categories.items():
            key, value = str(number).encode(), json.dumps({"category_id": number, "category": name}).encode()
            sender.send({zlib.crc32(key) % partitions: [NewRecord(key, value)]})

    def sell(
        self,
        maker: OrderMaker,
        rate: int,
        seconds: float,
        goes_on: Callable[[], bool] | None = None,
        sent: Sent | None = None,
    ) -> Sent:
        """Produce orders at the rate while `goes_on()`, called after each write. `sent` counts acknowledged orders."""
        sent = Sent() if sent is None else sent
        sender, partitions = RecordSender(self._client, self._orders), self._partitions(self._orders)
        began, made = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            due = min(int(elapsed * rate) - made, rate)
            made += max(due, 0)
            records = maker.make(max(due, 0), datetime.now(UTC))
            if records:
                self._send(sender, partitions, records)
                sent.records += records
            if goes_on is not None and not goes_on():
                break
            time.sleep(_TICK_S)
        return sent

    def sell_at_once(self, records: Sequence[SentRecord]) -> None:
        """Write all orders, for experiments that need a backlog."""
        sender, partitions = RecordSender(self._client, self._orders), self._partitions(self._orders)
        for start in range(0, len(records), _AT_ONCE):
            self._send(sender, partitions, records[start : start + _AT_ONCE])

    def _send(self, sender: RecordSender, partitions: int, records: Sequence[SentRecord]) -> None:
        batches: dict[int, list[NewRecord]] = {}
        for record in records:
            key = str(record.order["customer"]).encode() if record.order else None
            place = zlib.crc32(key or record.value) % partitions
            batches.setdefault(place, []).append(NewRecord(key, record.value))
        sender.send(batches)

    def _partitions(self, topic: str) -> int:
        return len(self._client.topic(topic).partitions)
