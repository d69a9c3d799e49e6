"""`odradek perf`: measures producing and consuming (kafka-producer-perf-test, kafka-consumer-perf-test)."""

import time
from collections.abc import Callable
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    Format,
    FormatOption,
    note,
    print_fields,
    progress,
    warn,
)
from odradek.apps.cli.perf_producer import PerfProducer, ProduceLoad
from odradek.apps.cli.perf_stats import Windows, latencies, producer_line, throughput
from odradek.apps.cli.produce import Acks, AcksOption, Compression, CompressionOption
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import FetchOptions, RecordReader
from odradek.client.record_sender import ACKS_ALL
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST

app = Noun(
    "Measure the speed of producing and consuming.",
    examples=[
        "odradek perf produce --topic t --num-records 1000000 --record-size 1024",
        "odradek perf produce --topic t --num-records 50000 --record-size 100 --throughput 5000 --format json",
        "odradek perf consume --topic t --messages 1000000",
    ],
)


@app.verb()
def produce(
    topic: Annotated[str, Option("--topic, -t", placed=True, help="The topic, which must exist.")],
    num_records: Annotated[int, Option("--num-records", min=1, help="Number of records to write.")],
    record_size: Annotated[int, Option("--record-size", min=1, help="Bytes of each value.")] = 1024,
    records_per_second: Annotated[
        int, Option("--throughput", help="Records per second; -1 for as many as possible.")
    ] = -1,
    batch_size: Annotated[int, Option("--batch-size", min=1, help="Bytes of a batch.")] = 16 * 1024,
    compression: CompressionOption = Compression.NONE,
    acks: AcksOption = Acks.ALL,
    in_flight: Annotated[int, Option("--in-flight", min=1, help="Requests in flight per broker.")] = 5,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Write random records and show throughput and latency, from a request's sending to its answer."""
    if records_per_second == 0 or records_per_second < -1:
        raise WrongUsage(f"{records_per_second} is neither positive nor -1", "--throughput")
    load = ProduceLoad(
        topic=topic,
        records=num_records,
        record_size=record_size,
        batch_size=batch_size,
        compression=compression.codec,
        acks=acks.number,
        # Apache Kafka can tell a repeated batch from a new one only for the last five of a producer.
        idempotent=acks.number == ACKS_ALL and in_flight <= 5,
        records_per_second=None if records_per_second < 0 else records_per_second,
        in_flight=in_flight,
    )
    with ClusterClient(bootstrap_server) as client, progress("writing", num_records) as show:
        producer = PerfProducer(client, load)
        seconds = producer.run(_report(Windows(producer.samples, record_size, note), show))
    figures = throughput(producer.acknowledged, producer.acknowledged * record_size, seconds)
    figures |= latencies(producer.samples)
    if output.is_table:
        print(producer_line(figures))
    else:
        print_fields(figures, output)


def _report(windows: Windows, show: Callable[[int], None]) -> Callable[[int], None]:
    """Move the bar on a terminal; print a line every five seconds elsewhere."""

    def report(acknowledged: int) -> None:
        show(acknowledged)
        windows(acknowledged)

    return report


@app.verb()
def consume(
    topic: Annotated[str, Option("--topic, -t", placed=True, help="The topic to read, from its beginning.")],
    messages: Annotated[int, Option("--messages, --num-records", min=1, help="Number of records to read.")],
    fetch_size: Annotated[int, Option("--fetch-size", min=1, help="Bytes per partition in one answer.")] = 1024 * 1024,
    timeout_ms: Annotated[
        int, Option("--timeout", min=1, help="Milliseconds without a record after which reading ends.")
    ] = 10_000,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Read records from the beginning and show the throughput. Batches are counted, not decoded."""
    with ClusterClient(bootstrap_server) as client, progress("reading", messages) as show:
        asked = [TopicPartition(topic, state.partition) for state in client.topic(topic).partitions]
        first = list_offsets(client, dict.fromkeys(asked, EARLIEST))
        positions = {tp: found.offset or 0 for tp, found in first.items()}
        reader = RecordReader(client, positions, FetchOptions(partition_max_bytes=fetch_size))
        records = size = 0
        started = last_record_at = time.monotonic()
        while records < messages and (time.monotonic() - last_record_at) * 1000 < timeout_ms:
            for fetched in reader.poll():
                last_record_at = time.monotonic()
                records += sum(header.record_count for _, header in fetched.batches)
                size += sum(header.size for _, header in fetched.batches)
            show(min(records, messages))
    if records < messages:
        warn(f"only {records} of {messages} records came; then none for {timeout_ms} ms")
    print_fields(throughput(records, size, last_record_at - started), output)
    if records < messages:
        raise Exit(1)
