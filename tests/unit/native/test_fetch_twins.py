"""The compiled answer to a Fetch and its Python twin."""

import random
import tempfile
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from test_twins import DEFAULT_INPUTS, SOAK_INPUTS

from odradek.base.errors import ErrorCode
from odradek.base.file_slice import COPIED_BYTES_MAX, FileSlice
from odradek.broker.api.handlers import fetch
from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.broker.replication.core.outcomes import FetchedPartition
from odradek.broker.replication.leader.fetch_reader import EpochEnd, FetchOutcome, FetchTarget
from odradek.format.transaction_index import AbortedTransaction
from odradek.model.topology import TopicPartition
from odradek.native.load import compiled
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import RequestHeader, encode_response
from odradek.protocol.messages.fetch import FetchRequest

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")

NAMES = ("t", "", "a.topic-of_more_letters", "ä" * 70, "n" * 249)
IDS = (UUID(int=0), UUID(int=1), UUID(int=2**128 - 1), UUID(int=2**64), UUID(int=2**127 + 77))
NUMBERS = (0, 1, -1, 2**31, 2**62, 2**63 - 1, -(2**63))
FILE_BYTES = 40_000


def outcome(pick: random.Random, file: FileIO, strange: float) -> FetchOutcome:
    place = TopicPartition(pick.choice(NAMES), pick.choice((0, 1, 7, 2**31 - 1)))
    target = FetchTarget(place, pick.choice(IDS), pick.choice(NUMBERS), 1000)
    size = pick.choice((0, 1, 126, 127, 128, 900, 3000, 17_000))
    records = None if pick.random() < 0.3 else FileSlice(file, pick.choice((0, 5, 20_000)), size)
    found = FetchedPartition(records, *(pick.choice(NUMBERS) for _ in range(3)))
    if pick.random() >= strange:
        return FetchOutcome(target, ErrorCode.NONE, found)
    match pick.randrange(6):
        case 0:
            return FetchOutcome(target, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        case 1:
            return FetchOutcome(target, ErrorCode.NONE, found, EpochEnd(3, 4))
        case 2:
            return FetchOutcome(target, ErrorCode.NONE, found, read_from=pick.choice((0, 2)))
        case 3:
            return FetchOutcome(target, ErrorCode.NONE, found._replace(aborted=[AbortedTransaction(1, 2, 3, 4)]))
        case 4:
            return FetchOutcome(target, ErrorCode.NONE, found._replace(high_watermark=2**63))
        case _:
            target.partition = TopicPartition(place.topic, 2**31)
            return FetchOutcome(target, ErrorCode.NONE, found)


def twin(header: RequestHeader, outcomes: list[FetchOutcome], is_committed: bool) -> bytes:
    limits = SimpleNamespace(quotas=SimpleNamespace(is_limiting=False))
    ctx = SimpleNamespace(header=header, version=header.api_version, broker=limits, is_from_broker=False)
    request = FetchRequest(isolation_level=READ_COMMITTED if is_committed else 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "compiled", None)
        response = fetch._response(cast(Any, ctx), request, None, True, outcomes)
    (frame,) = encode_response(header.correlation_id, response, header.api_version, COPIED_BYTES_MAX)
    assert isinstance(frame, bytes)
    return frame


def compare(seed: int, inputs: int) -> int:
    """Number of answers that were written."""
    pick, written = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "records"
        path.write_bytes(pick.randbytes(FILE_BYTES))
        with FileIO(path) as file:
            for _ in range(inputs):
                strange = pick.choice((0, 0, 0, 0.2))
                outcomes = [outcome(pick, file, strange) for _ in range(pick.choice((0, 1, 1, 1, 2, 5, 150)))]
                if pick.random() < 0.5:
                    outcomes.sort(key=lambda o: (o.target.partition.topic, o.target.topic_id))
                version, is_committed = pick.choice((11, 12, 13, 15, 16, 17)), pick.random() < 0.5
                header = RequestHeader(ApiKey.FETCH, version, pick.choice((0, 1, -1, 2**31 - 1)), "c", 0)
                frame = fetch._usual_response(header, 0, outcomes, is_committed)
                if frame is not None:
                    written += 1
                    assert frame == twin(header, outcomes, is_committed)
                elif not strange and version > 11:
                    assert sum(o.size for o in outcomes) > COPIED_BYTES_MAX
    return written


def test_the_twins_agree_about_fetch_responses() -> None:
    assert DEFAULT_INPUTS / 3 < compare(5, DEFAULT_INPUTS) < DEFAULT_INPUTS


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_twins_agree_about_a_million_fetch_responses() -> None:
    assert compare(random.randrange(2**32), SOAK_INPUTS)


def test_records_that_the_file_does_not_have_are_left_to_python(tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(b"short")
    with FileIO(tmp_path / "records") as file:
        found = FetchedPartition(FileSlice(file, 0, 9), 1, 1, 0)
        outcomes = [FetchOutcome(FetchTarget(TopicPartition("t", 0), IDS[1], 0, 9), ErrorCode.NONE, found)]
        assert fetch._usual_response(RequestHeader(ApiKey.FETCH, 16, 1, "c", 0), 0, outcomes, False) is None
