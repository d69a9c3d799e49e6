"""Usage of a broker by its clients, compared with their quotas: bytes in, bytes out, thread time, topic changes.

A client that uses more gets a throttle time, for which its connection is not read. While nothing is limited,
`is_limiting` is False, and nothing here is called. Any thread.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.metrics import Sample
from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.quotas.core.failed_logins import FailedLogins
from odradek.broker.quotas.core.quota_table import Limit, QuotaEntity, QuotaTable, read_table
from odradek.broker.quotas.core.sampled_rate import SampledRate
from odradek.broker.quotas.core.token_bucket import TokenBucket

log = get_logger(__name__)

ACCOUNTS_MAX = 10_000
"""Number of accounts in memory: beyond it, idle ones are dropped, then the oldest. Clients choose their ids freely."""
THROTTLE_MS_MAX = 2**31 - 1

Configs = Mapping[str, Mapping[str, str]]


class Account(Protocol):
    def is_idle(self, now_ms: int) -> bool: ...


AccountT = TypeVar("AccountT", bound=Account)


class Accounts(Generic[AccountT]):
    """Accounts by entity, made at its first charge. Used under its quota's lock."""

    def __init__(self) -> None:
        self._accounts: dict[QuotaEntity, AccountT] = {}

    def of(self, entity: QuotaEntity) -> AccountT | None:
        return self._accounts.get(entity)

    def add(self, entity: QuotaEntity, account: AccountT, now_ms: int) -> AccountT:
        if len(self._accounts) >= ACCOUNTS_MAX:
            self._accounts = {p: a for p, a in self._accounts.items() if not a.is_idle(now_ms)}
        while len(self._accounts) >= ACCOUNTS_MAX:
            del self._accounts[next(iter(self._accounts))]
        self._accounts[entity] = account
        return account

    def items(self) -> list[tuple[QuotaEntity, AccountT]]:
        return list(self._accounts.items())

    def clear(self) -> None:
        self._accounts.clear()


class Quota(Generic[AccountT]):
    """Limits of one kind, and the accounts of their entities."""

    def __init__(self, key: str, windows: int, window_ms: int, clock: Clock) -> None:
        self.key = key
        self.table = QuotaTable({})
        self._windows = windows
        self._window_ms = window_ms
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: Accounts[AccountT] = Accounts()

    def set_limits(self, users: Configs, clients: Configs) -> None:
        table, faults = read_table(self.key, users, clients)
        for fault in faults:
            log.error("invalid quota ignored", why=fault)
        self.table = table
        if not table:
            with self._lock:
                self._accounts.clear()


class RateQuota(Quota[SampledRate]):
    def __init__(self, key: str, windows: int, window_ms: int, clock: Clock, throttle_ms_max: int) -> None:
        super().__init__(key, windows, window_ms, clock)
        self._throttle_ms_max = throttle_ms_max

    def charge(self, user: str, client_id: str, value: float) -> int:
        """Charge the amount and return the throttle time; 0 within the limit or without one."""
        if not self.table or (limit := self.table.of(user, client_id)) is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            rate = self._rate(limit, now_ms)
            rate.record(value, now_ms)
            return self._wait_ms(rate, limit, now_ms)

    def wait_ms(self, user: str, client_id: str) -> int:
        """Return the throttle time before more may be used."""
        if not self.table or (limit := self.table.of(user, client_id)) is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            return self._wait_ms(self._rate(limit, now_ms), limit, now_ms)

    def most_at_once(self, user: str, client_id: str) -> float:
        """Return the amount that an idle client may use in one go."""
        if not self.table or (limit := self.table.of(user, client_id)) is None:
            return float("inf")
        return limit.rate * max(1, self._windows - 1) * self._window_ms / 1000

    def rates(self) -> list[tuple[QuotaEntity, float]]:
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            return [(entity, rate.per_second(now_ms)) for entity, rate in self._accounts.items()]

    def _rate(self, limit: Limit, now_ms: int) -> SampledRate:
        found = self._accounts.of(limit.entity)
        return found or self._accounts.add(limit.entity, SampledRate(self._window_ms, self._windows), now_ms)

    def _wait_ms(self, rate: SampledRate, limit: Limit, now_ms: int) -> int:
        return min(rate.wait_ms(limit.rate, now_ms), self._throttle_ms_max)


class MutationQuota(Quota[TokenBucket]):
    """Partitions that are made and deleted."""

    def take(self, user: str, client_id: str, count: int, *, strict: bool) -> int:
        """Charge this change and return the throttle time. Strict: it is refused while earlier ones aren't paid for
        (KafkaError).
        """
        if not self.table or (limit := self.table.of(user, client_id)) is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            bucket = self._bucket(limit, now_ms)
            if strict and (wait_ms := bucket.wait_ms(now_ms)):
                raise QuotaExceeded(wait_ms)
            bucket.take(count, now_ms)
            return 0 if strict else min(bucket.wait_ms(now_ms), THROTTLE_MS_MAX)

    def tokens(self) -> list[tuple[QuotaEntity, float]]:
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            return [(entity, bucket.tokens(now_ms)) for entity, bucket in self._accounts.items()]

    def _bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        """Return the bucket; a changed limit begins with a new bucket of its size."""
        found = self._accounts.of(limit.entity)
        if found is not None and found.rate == limit.rate:
            return found
        holds_s = self._windows * self._window_ms / 1000
        return self._accounts.add(limit.entity, TokenBucket(limit.rate, holds_s, now_ms), now_ms)


class QuotaExceeded(KafkaError):
    def __init__(self, wait_ms: int) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        self.wait_ms = min(wait_ms, THROTTLE_MS_MAX)


class ClientQuotas:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        windows = config.quota_window_num
        window_ms = config.quota_window_size_seconds * 1000
        self.produce = RateQuota("producer_byte_rate", windows, window_ms, clock, THROTTLE_MS_MAX)
        self.fetch = RateQuota("consumer_byte_rate", windows, window_ms, clock, THROTTLE_MS_MAX)
        # In percent of one thread. A request that took long costs a window at most, as in Kafka.
        self.request = RateQuota("request_percentage", windows, window_ms, clock, throttle_ms_max=window_ms)
        self.mutations = MutationQuota(
            "controller_mutation_rate",
            config.controller_quota_window_num,
            config.controller_quota_window_size_seconds * 1000,
            clock,
        )
        self.addresses = AddressLimits(FailedLogins(config.odradek_failed_authentication_rate_per_ip))
        self.is_limiting = False
        """True if any client has a quota."""
        self.throttles = 0
        self.throttled_ms = 0

    def set_limits(self, users: Configs, clients: Configs) -> None:
        """Set the limits of users (by their names below /config/users) and of client ids."""
        kinds: tuple[Quota[SampledRate] | Quota[TokenBucket], ...]
        kinds = (self.produce, self.fetch, self.request, self.mutations)
        for quota in kinds:
            quota.set_limits(users, clients)
        self.is_limiting = any(quota.table for quota in kinds)

    def samples(self) -> Iterable[Sample]:
        for name, quota in (("produce_byte_rate", self.produce), ("fetch_byte_rate", self.fetch)):
            yield from _samples(name, quota.rates())
        yield from _samples("request_request_time", self.request.rates())
        yield from _samples("controllermutation_tokens", self.mutations.tokens())
        yield Sample("odradek_quotas_throttles_total", "counter", self.throttles, {})
        yield Sample("odradek_quotas_throttled_ms_total", "counter", self.throttled_ms, {})


def _samples(name: str, values: Iterable[tuple[QuotaEntity, float]]) -> Iterable[Sample]:
    for entity, value in values:
        yield Sample(f"kafka_server_{name}", "gauge", value, {"user": entity.user, "client_id": entity.client_id})
