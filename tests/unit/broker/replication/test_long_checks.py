"""Batches that take long to check: put off as a whole, and refused without keeping what they unfolded into."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from replica_stage import ORDERS, ReplicaStage, batch

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.check_budget import CheckBudget, TakesLong
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.partition_table import Batch
from odradek.protocol.compression import Codec, compress
from odradek.protocol.record_batch import pack_batch, read_header


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path)
    yield stage
    stage.close()


def batches() -> list[Batch]:
    """A good one, and one of 30 MB."""
    header = read_header(batch("x"))._replace(attributes=Codec.GZIP)
    bomb = pack_batch(header, compress(Codec.GZIP, bytes(30 << 20)))
    return [(ORDERS, batch("good")), (ORDERS, memoryview(bomb))]


def test_a_request_is_put_off_before_anything_of_it_is_written(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1, isr=(0,))
    with pytest.raises(TakesLong):
        stage.replicas.append(
            batches(),
            acks=1,
            timeout_ms=0,
            api_version=9,
            refused=RefusedBatches(),
            budget=CheckBudget(is_quick=True),
            done=lambda _: None,
        )
    assert stage.partition.log.log_end_offset == 0
    outcomes = stage.replicas.append(
        batches(),
        acks=1,
        timeout_ms=0,
        api_version=9,
        refused=RefusedBatches(),
        budget=CheckBudget(is_quick=False),
        done=lambda _: None,
    )
    assert outcomes is not None
    _, refused = outcomes
    assert stage.partition.log.log_end_offset == 1
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.INVALID_RECORD


def test_a_refusal_holds_nothing_of_what_was_checked(stage: ReplicaStage) -> None:
    """An answer may have to wait for other partitions, and its refusals with it."""
    stage.become(0, epoch=1, isr=(0,))
    outcomes = stage.replicas.append(
        batches(), acks=1, timeout_ms=0, api_version=9, refused=RefusedBatches(), done=lambda _: None
    )
    assert outcomes is not None
    refused = outcomes[1]
    assert isinstance(refused, KafkaError)
    assert refused.__traceback__ is None
    assert refused.__context__ is None
