"""Blocks of producer ids for other brokers: for the present registration alone."""

from types import SimpleNamespace

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.producer_ids import ProducerIds
from odradek.broker.zk.znodes import ProducerIds as Block
from odradek.model.topology import Broker


def ids() -> ProducerIds:
    store = SimpleNamespace(
        brokers=SimpleNamespace(load_brokers=lambda: {1: Broker(1, (), epoch=77)}),
        producer_ids=SimpleNamespace(allocate=lambda broker_id: Block(broker_id, 0, 999)),
    )
    return ProducerIds(0, store)  # type: ignore[arg-type]


def test_a_registered_broker_gets_a_block() -> None:
    assert ids().allocate_for(1, 77) == range(1000)


@pytest.mark.parametrize(
    ("broker", "epoch", "error"),
    [
        (2, 77, ErrorCode.BROKER_ID_NOT_REGISTERED),
        (1, 76, ErrorCode.STALE_BROKER_EPOCH),
        (1, 78, ErrorCode.STALE_BROKER_EPOCH),
        (1, -1, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_others_get_none(broker: int, epoch: int, error: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refusal:
        ids().allocate_for(broker, epoch)
    assert refusal.value.code is error
