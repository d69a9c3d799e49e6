"""Facts of produced batches before they are checked."""

import pytest

from odradek.protocol import batch_survey
from odradek.protocol.batch_survey import BatchSurvey, idempotent_producer, is_transactional, survey_batches
from odradek.protocol.compression import Codec
from odradek.protocol.messages.produce import PartitionProduceData, TopicProduceData
from odradek.protocol.record_batch import MAGIC_AT, build_batch
from odradek.protocol.records import Record

RECORDS = [Record(n, 0, None, b"v") for n in range(3)]


def older(batch: bytes) -> bytes:
    changed = bytearray(batch)
    changed[MAGIC_AT] = 1
    return bytes(changed)


PLAIN = build_batch(RECORDS)
COMPRESSED = build_batch(RECORDS, compression=Codec.GZIP)
OF_A_TRANSACTION = build_batch(RECORDS, producer_id=7, producer_epoch=2, base_sequence=5, transactional=True)


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(
    ("batches", "found"),
    [
        ([], (0, 0, 0, 0)),
        ([PLAIN, COMPRESSED, OF_A_TRANSACTION], (9, 1, 1, 0)),
        ([PLAIN, older(PLAIN)], (3, 0, 0, 1)),
        ([PLAIN[:20], PLAIN], (3, 0, 0, 0)),
    ],
)
def test_survey(
    batches: list[bytes], found: tuple[int, ...], is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(batch_survey, "compiled", None)
    data = [PartitionProduceData(index=n, records=memoryview(batch)) for n, batch in enumerate(batches)]
    assert survey_batches([TopicProduceData(name="t", partition_data=data)]) == BatchSurvey(*found)


def test_producers() -> None:
    assert idempotent_producer(memoryview(OF_A_TRANSACTION)) == (7, 2, 5)
    assert idempotent_producer(memoryview(PLAIN)) is None
    assert idempotent_producer(memoryview(older(OF_A_TRANSACTION))) is None
    assert is_transactional(memoryview(OF_A_TRANSACTION))
    assert not is_transactional(memoryview(PLAIN))
    assert not is_transactional(None)
