"""Cost of decoding, in steps: every count pays for what it makes the decoder do, before it does it.

Time is measured nowhere here: a step stands for a bounded number of bytecodes, and those can be counted.
`test_costliest_frames` measures, on demand.
"""

import struct
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from adversary import UNKNOWN_TAG, BodyWriter, Shape, uvarint

from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.codec import python_decoder
from odradek.protocol.decoding_steps import HEADER_STEPS_MAX, STEPS_MAX
from odradek.protocol.framing import decode_request, parse_request_header
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.primitives import UNKNOWN_TAG_STEPS, OverBudget
from odradek.protocol.schema import Request
from opcodes import opcodes_of

OPCODES_PER_STEP_MAX = 5
REFUSED_WITHIN_OPCODES = 1000
ENDLESS = 1 << 60

EVERY_API = [pytest.param(api.request, id=api.request.__name__) for api in APIS.values()]


@pytest.mark.parametrize("message", EVERY_API)
def test_every_count_is_paid_for_to_the_step(message: type[Request]) -> None:
    for version in message.VERSIONS:
        writer, decode = BodyWriter(message, version), message.decoder(version)
        for shape in writer.shapes(3):
            body, steps = memoryview(writer.body(shape)), writer.steps(shape)
            assert decode(body, 0, steps)[1] == len(body), shape
            with pytest.raises(OverBudget):
                decode(body, 0, steps - 1)


@pytest.mark.parametrize("message", EVERY_API)
def test_a_step_is_a_bounded_amount_of_work(message: type[Request]) -> None:
    """A part of a message that costs no steps, or too few, could be repeated until a frame is full."""
    for version in {message.VERSIONS[0], message.VERSIONS[-1]}:
        writer, decode = BodyWriter(message, version), python_decoder(message, version)
        for shape in writer.shapes(20):
            few = Shape(message, version, shape.path, tuple(1 for _ in shape.counts), shape.tags[:1])
            bodies = [memoryview(writer.body(each)) for each in (shape, few)]
            many_opcodes, few_opcodes = (opcodes_of(partial(decode, body, 0, ENDLESS)) for body in bodies)
            steps = writer.steps(shape) - writer.steps(few)
            assert many_opcodes - few_opcodes <= OPCODES_PER_STEP_MAX * steps, shape


def header(key: ApiKey, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


MILLION = 1_000_000
FULL_OF_TAGS = {
    "in the header": header(ApiKey.METADATA, 9) + uvarint(MILLION) + UNKNOWN_TAG * MILLION + b"\x01\x00\x00\x00\x00",
    "in the message": header(ApiKey.METADATA, 9) + b"\x00\x01\x00\x00\x00" + uvarint(MILLION) + UNKNOWN_TAG * MILLION,
    "in an element": header(ApiKey.METADATA, 9) + b"\x00\x02\x02a" + uvarint(MILLION) + UNKNOWN_TAG * MILLION,
    "beside known ones": header(ApiKey.FETCH, 12) + bytes(26) + b"\x01" * 3 + uvarint(MILLION) + UNKNOWN_TAG * MILLION,
}


@pytest.mark.parametrize("frame", FULL_OF_TAGS.values(), ids=FULL_OF_TAGS)
def test_cve_2026_111115_a_frame_full_of_tagged_fields_is_refused_before_the_first_is_read(frame: bytes) -> None:
    assert opcodes_of(partial(refused, partial(decode_request, memoryview(frame)))) < REFUSED_WITHIN_OPCODES


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(OverBudget):
        call()


def test_tagged_fields_of_many_elements_draw_on_one_budget() -> None:
    writer, decode = BodyWriter(MetadataRequest, 9), python_decoder(MetadataRequest, 9)
    shape = Shape(MetadataRequest, 9, ("topics",), (100,), (UNKNOWN_TAG,) * 50)
    body = memoryview(writer.body(shape))
    enough = writer.steps(shape)
    assert enough > 100 * 50 * UNKNOWN_TAG_STEPS
    decode(body, 0, enough)
    whole = opcodes_of(partial(decode, body, 0, enough))
    assert opcodes_of(partial(refused, partial(decode, body, 0, enough // 10))) < whole / 5, "no more work than steps"


def test_a_header_has_room_for_some_tagged_fields() -> None:
    most = HEADER_STEPS_MAX // UNKNOWN_TAG_STEPS
    frame = header(ApiKey.METADATA, 9) + uvarint(most) + UNKNOWN_TAG * most
    assert parse_request_header(memoryview(frame)).body_position == len(frame)
    with pytest.raises(OverBudget):
        parse_request_header(memoryview(header(ApiKey.METADATA, 9) + uvarint(most + 1) + UNKNOWN_TAG * (most + 1)))


PARTITIONS = 200_000
PER_TOPIC = 10
SAMPLE = 2_000
TOPICS = range(SAMPLE // PER_TOPIC)
REPLICAS = [1001, 1002, 1003]
OF_THE_LARGEST_CLUSTERS = [
    (
        UpdateMetadataRequest(
            topic_states=[
                UpdateMetadataTopicState(
                    topic_name=f"topic-{topic}",
                    topic_id=uuid4(),
                    partition_states=[
                        UpdateMetadataPartitionState(partition_index=index, isr=REPLICAS, replicas=REPLICAS)
                        for index in range(PER_TOPIC)
                    ],
                )
                for topic in TOPICS
            ]
        ),
        8,
    ),
    (
        LeaderAndIsrRequest(
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=f"topic-{topic}",
                    topic_id=uuid4(),
                    partition_states=[
                        LeaderAndIsrPartitionState(partition_index=index, isr=REPLICAS, replicas=REPLICAS)
                        for index in range(PER_TOPIC)
                    ],
                )
                for topic in TOPICS
            ]
        ),
        7,
    ),
    (
        FetchRequest(
            topics=[
                FetchTopic(topic_id=uuid4(), partitions=[FetchPartition(partition=index) for index in range(PER_TOPIC)])
                for _ in TOPICS
            ]
        ),
        17,
    ),
    (
        OffsetCommitRequest(
            topics=[
                OffsetCommitRequestTopic(
                    name=f"topic-{topic}",
                    partitions=[OffsetCommitRequestPartition(partition_index=index) for index in range(PER_TOPIC)],
                )
                for topic in TOPICS
            ]
        ),
        9,
    ),
    (MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{topic}") for topic in range(SAMPLE)]), 12),
]


@pytest.mark.parametrize(
    ("request_", "version"), OF_THE_LARGEST_CLUSTERS, ids=[type(r).__name__ for r, _ in OF_THE_LARGEST_CLUSTERS]
)
def test_requests_about_200_000_partitions_are_within_the_budget(request_: Request, version: int) -> None:
    """Asked about a hundredth of them, with a hundredth of the steps."""
    body = memoryview(request_.encode(version))
    decoded, _ = request_.decoder(version)(body, 0, STEPS_MAX * SAMPLE // PARTITIONS)
    assert decoded == request_
