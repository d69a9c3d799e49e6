import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode
from odradek.broker.quotas import client_quotas
from odradek.broker.quotas.client_quotas import ClientQuotas, QuotaExceeded

CONFIG = BrokerConfig.from_properties({"zookeeper.connect": "zk", "broker.id": "3"})


class HandClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def monotonic_ns(self) -> int:
        return self.ms * 1_000_000


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def quotas(clock: HandClock) -> ClientQuotas:
    return ClientQuotas(CONFIG, clock)  # type: ignore[arg-type]


def limit(quotas: ClientQuotas, **limits: str) -> None:
    quotas.set_limits({}, {"app": limits})


def test_nothing_is_limited_until_somebody_says_so(quotas: ClientQuotas) -> None:
    assert not quotas.is_limiting
    limit(quotas, producer_byte_rate="100")
    assert quotas.is_limiting
    quotas.set_limits({}, {"app": {}})
    assert not quotas.is_limiting


def test_who_uses_too_much_waits(quotas: ClientQuotas, clock: HandClock) -> None:
    limit(quotas, producer_byte_rate="100")
    assert quotas.produce.charge("u", "app", 1000) == 0
    assert quotas.produce.charge("u", "app", 500) == 5000
    assert quotas.produce.wait_ms("someone else", "app") == 5000
    assert quotas.produce.charge("u", "other", 5000) == 0
    assert quotas.fetch.charge("u", "app", 5000) == 0
    clock.ms += 16_000
    assert quotas.produce.wait_ms("u", "app") == 0


def test_time_of_threads_costs_a_window_at_most(quotas: ClientQuotas) -> None:
    limit(quotas, request_percentage="1")
    assert quotas.request.charge("u", "app", 10) == 0
    assert quotas.request.charge("u", "app", 10_000) == 1000


def test_what_may_be_read_at_once(quotas: ClientQuotas) -> None:
    assert quotas.fetch.most_at_once("u", "app") == float("inf")
    limit(quotas, consumer_byte_rate="100")
    assert quotas.fetch.most_at_once("u", "app") == 1000


def test_changes_are_refused_while_others_are_not_paid_for(quotas: ClientQuotas, clock: HandClock) -> None:
    limit(quotas, controller_mutation_rate="2")
    assert quotas.mutations.take("u", "app", 30, strict=True) == 0
    with pytest.raises(QuotaExceeded) as refused:
        quotas.mutations.take("u", "app", 1, strict=True)
    assert (refused.value.code, refused.value.wait_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 4000)
    assert quotas.mutations.take("u", "app", 2, strict=False) == 5000
    clock.ms += 5000
    assert quotas.mutations.take("u", "app", 1, strict=True) == 0


def test_accounts_are_bounded(quotas: ClientQuotas, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "ACCOUNTS_MAX", 10)
    quotas.set_limits({}, {"<default>": {"producer_byte_rate": "1"}})
    for number in range(100):
        quotas.produce.charge("u", f"client-{number}", 1)
        assert len(quotas.produce.rates()) <= 10
    clock.ms += 60_000
    quotas.produce.charge("u", "newest", 1)
    assert [entity.client_id for entity, _ in quotas.produce.rates()] == ["newest"]
