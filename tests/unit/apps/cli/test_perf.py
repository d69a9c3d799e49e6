"""The figures of perf, and the requests that it makes in advance."""

from odradek.apps.cli.perf_stats import Sample, latencies, producer_line, throughput
from odradek.apps.cli.producer_frames import FrameSettings, ProducerFrames, records_per_batch
from odradek.client.producer_transaction import ProducerId
from odradek.client.record_sender import NOT_IDEMPOTENT
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.framing import decode_request
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.record_batch import BatchHeader, batches, check_crc
from odradek.protocol.records import Record, read_records


def frames_of(
    codec: Codec, producer: ProducerId, *, record_size: int, batch_records: int, partition: int = 0
) -> ProducerFrames:
    settings = FrameSettings(9, "test", -1, 1000, codec, record_size, batch_records)
    return ProducerFrames(TopicPartition("t", partition), settings, producer)


def sent(frame: bytes) -> tuple[int, BatchHeader, list[Record]]:
    """The correlation id, and the one batch of the request, checked as a broker would."""
    header, request = decode_request(memoryview(frame)[4:])
    assert isinstance(request, ProduceRequest)
    data = request.topic_data[0].partition_data[0].records
    assert isinstance(data, memoryview)
    ((position, batch),) = batches(data)
    check_crc(data, position, batch)
    return header.correlation_id, batch, list(read_records(data, position, batch))


def test_patched_frames_are_valid_batches_with_rising_sequences() -> None:
    for codec in (Codec.NONE, Codec.LZ4):
        frames = frames_of(codec, ProducerId(9, 2), record_size=50, batch_records=10, partition=1)
        first, batch, records = sent(frames.next(1, 1_000, 10))
        assert (first, batch.base_sequence, batch.producer_id, batch.producer_epoch) == (1, 0, 9, 2)
        assert {len(record.value or b"") for record in records} == {50}
        assert {record.timestamp for record in records} == {1_000}
        assert len({record.value for record in records}) == 10
        _, batch, _ = sent(frames.next(2, 2_000, 10))
        assert (batch.base_sequence, batch.max_timestamp) == (10, 2_000)
        _, batch, records = sent(frames.next(3, 3_000, 4))
        assert (batch.base_sequence, len(records)) == (20, 4)


def test_without_idempotence_there_is_no_sequence() -> None:
    frames = frames_of(Codec.NONE, NOT_IDEMPOTENT, record_size=5, batch_records=2)
    frames.next(1, 0, 2)
    assert sent(frames.next(2, 0, 2))[1].base_sequence == -1


def test_a_frame_that_was_handed_out_does_not_change() -> None:
    frames = frames_of(Codec.NONE, NOT_IDEMPOTENT, record_size=5, batch_records=2)
    handed_out = [frames.next(number, number, 2) for number in range(20)]
    assert [sent(frame)[0] for frame in handed_out] == list(range(20))


def test_a_batch_keeps_to_its_size() -> None:
    count = records_per_batch(16_384, 1024)
    frames = frames_of(Codec.NONE, NOT_IDEMPOTENT, record_size=1024, batch_records=count)
    assert 14_000 < sent(frames.next(1, 0, count))[1].size <= 16_384
    assert records_per_batch(10, 1024) == 1


def test_percentiles_count_records_not_requests() -> None:
    figures = latencies([Sample(1.0, 98), Sample(10.0, 1), Sample(100.0, 1)])
    assert figures == {
        "latency_avg_ms": 2.08,
        "latency_max_ms": 100.0,
        "p50_ms": 1.0,
        "p95_ms": 1.0,
        "p99_ms": 10.0,
        "p999_ms": 100.0,
    }


def test_lines_in_the_style_of_kafka() -> None:
    figures = throughput(1000, 1024 * 1024, 2.0)
    assert producer_line({**figures, **latencies([Sample(2.0, 1000)])}) == (
        "1000 records sent, 500.0 records/sec (0.5 MB/sec), 2.0 ms avg latency, 2.0 ms max latency, "
        "2.0 ms 50th, 2.0 ms 95th, 2.0 ms 99th, 2.0 ms 99.9th."
    )
    assert producer_line({**figures, **latencies([])}) == "1000 records sent, 500.0 records/sec (0.5 MB/sec)."
