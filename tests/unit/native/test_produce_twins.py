"""The compiled ends of a request and their Python twins: headers, what a Produce holds, and its answer."""

import random
from collections.abc import Callable

import pytest
from test_twins import DEFAULT_INPUTS, NOW, SOAK_INPUTS, Batches

from odradek.broker.api.authorization import NONE_DENIED
from odradek.broker.api.handlers import produce
from odradek.broker.log.core import validation
from odradek.broker.log.core.append_placement import PLACED_TYPES, Placed
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.producer_entry import BATCHES_KEPT, AppendedBatch, ProducerEntry
from odradek.broker.log.core.producer_state import ProducerStates, Staged
from odradek.broker.log.core.validation import BatchRules, CheckedBatch, CheckedRecords, assign_offsets
from odradek.model.topology import TopicPartition
from odradek.native.load import compiled
from odradek.protocol import batch_survey, framing
from odradek.protocol.api_keys import APIS
from odradek.protocol.framing import RequestHeader, encode_response, parse_request_header
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.record_batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
    build_batch,
    read_header,
)
from odradek.protocol.records import Record

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled inner loop is not built, or not wanted")

NAMES = ("t", "__consumer_offsets", "", "a.topic-of_more_letters", "ä" * 70, "n" * 200, "\ud800")
NUMBERS = (0, 1, -1, 2**31, 2**62, 2**63 - 1, -(2**63))


def outcome(call: Callable[..., object], *arguments: object) -> object:
    try:
        return call(*arguments)
    except ProtocolError as error:
        return str(error)


def same(call: Callable[..., object], *arguments: object) -> object:
    found = outcome(call, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "compiled", None)
        patch.setattr(batch_survey, "compiled", None)
        patch.setattr(produce, "compiled", None)
        assert outcome(call, *arguments) == found
    return found


def header_frame(pick: random.Random) -> bytearray:
    key = pick.choice((*APIS, 0, 0, 1, 18, 77, -1, 32767))
    version = pick.choice((0, 1, 3, 9, 11, 12, 17, 31, 32, -1, 32767))
    client_id = pick.choice((b"", b"client", b"\xff\xfe", "ü".encode() * 300))
    length = pick.choice((len(client_id), len(client_id), len(client_id), -1, -2, len(client_id) + 1, 32767))
    head = b"".join(number.to_bytes(2, "big", signed=True) for number in (key, version))
    tags = pick.choice((b"\0", b"\0", b"", b"\1\0\1x", b"\x80\0"))
    frame = bytearray(head + pick.randbytes(4) + length.to_bytes(2, "big", signed=True) + client_id + tags + b"body")
    return frame[: pick.choice((len(frame), len(frame), pick.randrange(len(frame) + 1)))]


def produced(made: Batches) -> ProduceRequest:
    pick, batch = made.random, made.damaged
    topics = []
    for _ in range(pick.choice((0, 1, 1, 2, 200))):
        count = pick.choice((0, 1, 2, 5)) if len(topics) < 3 else 0
        data = [
            PartitionProduceData(
                index=pick.choice((0, 1, 7, 2**31 - 1)),
                records=None if pick.random() < 0.05 else memoryview(batch()),
            )
            for _ in range(count)
        ]
        topics.append(TopicProduceData(name=pick.choice(NAMES[:-1]), partition_data=data))
    return ProduceRequest(acks=1, topic_data=topics)


def twin_of_response(request: ProduceRequest, results: list[AppendResult], correlation_id: int, version: int) -> bytes:
    in_order = iter(results)
    responses = []
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            found = next(in_order)
            answers.append(
                PartitionProduceResponse(
                    index=data.index,
                    base_offset=found.first_offset,
                    log_append_time_ms=found.log_append_time_ms,
                    log_start_offset=found.log_start_offset,
                )
            )
        responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
    (frame,) = encode_response(correlation_id, ProduceResponse(responses=responses), version)
    assert isinstance(frame, bytes)
    return frame


def produced_batch(pick: random.Random, sequence: int) -> bytearray:
    producer_id = pick.choice((7, 7, 7, 8, -1))
    batch = bytearray(
        build_batch([Record(n, NOW, None, b"v") for n in range(3)], producer_id=producer_id, base_sequence=sequence)
    )
    batch[ATTRIBUTES_AT + 1] |= pick.choice((0, 0, 0, 0, TRANSACTIONAL_BIT, CONTROL_BIT, LOG_APPEND_TIME_BIT))
    epoch = pick.choice((0, 0, 0, 0, 1)).to_bytes(2, "big")
    batch[PRODUCER_ID_AT + 8 : PRODUCER_ID_AT + 10] = epoch
    return batch[: pick.choice((len(batch), len(batch), len(batch), HEADER_SIZE - 1))]


def places(pick: random.Random) -> bool:
    """A batch behind the end of the log, with the producer's next entry; others are left to Python, and untouched."""
    assert compiled is not None
    sequence = pick.choice((0, 5, 2**31 - 3, 2**31 - 1, -1))
    kept = tuple(AppendedBatch(sequence, 100 + n, pick.choice((0, 2)), NOW) for n in range(pick.choice((0, 1, 9, 10))))
    states = ProducerStates(0)
    states.entries[7] = ProducerEntry(7, pick.choice((0, 0, 0, 1)), -1, NOW, pick.choice((-1, -1, -1, 50)), kept)
    after = pick.choice(((sequence + 1) % 2**31, (sequence + 1) % 2**31, sequence, 0, -1))
    given = produced_batch(pick, after)
    records, newest = memoryview(bytearray(given)), pick.choice((NOW, NOW, NOW, NOW + 1))
    offset, epoch = pick.choice((103, 2**62)), pick.choice((3, 3, 3, 2**40))
    batches = (
        [CheckedBatch(records, read_header(records), newest)] if len(records) >= HEADER_SIZE else [(records, (), NOW)]
    )
    found = compiled.place_next(PLACED_TYPES, batches, states.entries, offset, epoch, BATCHES_KEPT)
    if found is None:
        assert records == given
    if len(records) < HEADER_SIZE or epoch == 2**40:
        assert found is None
        return False
    usual = newest == NOW and not given[ATTRIBUTES_AT + 1] & LOG_APPEND_TIME_BIT
    copy = memoryview(bytearray(given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "compiled", None)
        checked = CheckedRecords([CheckedBatch(copy, read_header(copy), newest)], BatchRules(), NOW)
        validated = assign_offsets(checked, next_offset=offset, leader_epoch=epoch)
    staged = states.stage_next(validated.batches)
    assert (found is None) == (staged is None or not usual)
    if found is None or staged is None:
        return False
    assert found == (*validated, staged)
    types = type(found), type(found.batches[0]), type(found.staged), *map(type, found.staged.entries.values())
    assert types == (Placed, BatchInfo, Staged, *[ProducerEntry] * len(staged.entries))
    return True


def listed(request: ProduceRequest) -> list[tuple[TopicPartition, memoryview | str]]:
    found = produce._batches(request, None, NONE_DENIED)
    assert all(type(tp) is TopicPartition for tp, _ in found)
    return [(tp, records if isinstance(records, memoryview) else str(records)) for tp, records in found]


def compare(seed: int, inputs: int) -> int:
    """Number of headers that were read."""
    made, read, placed = Batches(seed), 0, 0
    pick = made.random
    assert compiled is not None
    for _ in range(inputs):
        found = same(parse_request_header, memoryview(header_frame(pick)))
        read += isinstance(found, RequestHeader)
        placed += places(pick)
        request = produced(made)
        same(batch_survey.survey_batches, request.topic_data)
        same(listed, request)
        numbers = [pick.choice(NUMBERS) for _ in range(5)]
        results = [AppendResult(*numbers) for topic in request.topic_data for _ in topic.partition_data]
        correlation_id, version = pick.choice((0, 1, -1, 2**31 - 1)), pick.randrange(13)
        frame = compiled.produce_response(request.topic_data, results, AppendResult, correlation_id, version)
        assert frame == twin_of_response(request, results, correlation_id, version)
    assert inputs / 30 < placed < inputs
    return read


def test_the_twins_agree_about_the_ends_of_a_request() -> None:
    inputs = DEFAULT_INPUTS // 3
    assert inputs / 10 < compare(3, inputs) < inputs


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_twins_agree_about_a_million_ends_of_requests() -> None:
    assert compare(random.randrange(2**32), SOAK_INPUTS)


def test_an_answer_with_a_refusal_or_of_another_version_is_left_to_python() -> None:
    assert compiled is not None
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0)] * 2)]
    written = AppendResult(1, 2, 3, 4, 5)
    answer = compiled.produce_response
    assert answer(topics, [written, written], AppendResult, 1, 12) is not None
    assert answer(topics, [written, written], AppendResult, 1, 13) is None
    assert answer(topics, [written, ValueError()], AppendResult, 1, 12) is None
    assert answer(topics, [written], AppendResult, 1, 12) is None
    assert answer(topics, [written] * 3, AppendResult, 1, 12) is None
    assert answer(topics, [written, written._replace(first_offset=2**63)], AppendResult, 1, 12) is None
    topics[0].name = NAMES[-1]
    assert answer(topics, [written, written], AppendResult, 1, 12) is None
