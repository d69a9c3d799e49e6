"""kafka-producer-perf-test: writes random records and prints the speed."""

from odradek.apps.cli.kafka.options import EVERY_TOOL, Given, Option, OptionTable, WrongOptions
from odradek.apps.cli.kafka.properties import given_properties, is_true
from odradek.apps.cli.kafka.tool import ToolError, security_of
from odradek.apps.cli.perf_producer import PerfProducer, ProduceLoad
from odradek.apps.cli.perf_stats import Windows, kafka_line, latencies, throughput
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.record_sender import ACKS_ALL
from odradek.protocol.compression import Codec

TABLE = OptionTable(
    "This tool is used to verify the producer performance.",
    Option("topic", "the topic", "TOPIC"),
    Option("num-records", "how many", "N"),
    Option("record-size", "bytes of each record", "BYTES"),
    Option("throughput", "records per second, -1 for as many as possible", "N"),
    Option("producer-props", "bootstrap.servers, acks, batch.size, compression.type, …", "KEY=VALUE", takes_rest=True),
    Option("producer.config", "a file with such properties", "FILE"),
    Option("print-metrics", "accepted, without effect"),
    *EVERY_TOOL,
)
_ACKS = {"0": 0, "1": 1, "-1": ACKS_ALL, "all": ACKS_ALL}


def run(given: Given) -> int:
    given.require("topic", "num-records", "record-size", "throughput")
    if not given.any_of("producer-props", "producer.config"):
        raise WrongOptions("Either --producer-props or --producer.config must be specified.")
    properties = given_properties(given, "producer-props", "producer.config")
    if "bootstrap.servers" not in properties:
        raise WrongOptions("No resolvable bootstrap urls given in bootstrap.servers")
    load = _load(given, properties)
    try:
        security = security_of(properties)
        with ClusterClient(
            properties["bootstrap.servers"], client_id="perf-producer-client", security=security
        ) as client:
            producer = PerfProducer(client, load)
            seconds = producer.run(Windows(producer.samples, load.record_size, print))
    except KafkaError as error:
        raise ToolError(str(error)) from None
    figures = throughput(producer.acknowledged, producer.acknowledged * load.record_size, seconds)
    print(kafka_line(figures | latencies(producer.samples)))
    return 0


def _load(given: Given, properties: dict[str, str]) -> ProduceLoad:
    acks, codec = properties.get("acks", "all"), properties.get("compression.type", "none")
    if acks not in _ACKS:
        raise WrongOptions(f"Invalid value {acks} for configuration acks: must be one of all, -1, 0, 1")
    if codec.upper() not in Codec.__members__:
        raise WrongOptions(f"Unknown compression name: {codec}")
    try:
        rate = float(given.text("throughput"))
        batch_size = int(properties.get("batch.size", 16_384))
        in_flight = int(properties.get("max.in.flight.requests.per.connection", 5))
    except ValueError as error:
        raise WrongOptions(f"{error}") from None
    return ProduceLoad(
        topic=given.text("topic"),
        records=_positive(given, "num-records"),
        record_size=_positive(given, "record-size"),
        batch_size=batch_size,
        compression=Codec[codec.upper()],
        acks=_ACKS[acks],
        idempotent=_ACKS[acks] == ACKS_ALL
        and in_flight <= 5
        and is_true(properties, "enable.idempotence", default=True),
        records_per_second=None if rate <= 0 else max(1, int(rate)),
        in_flight=in_flight,
    )


def _positive(given: Given, name: str) -> int:
    number = given.number(name) or 0
    if number < 1:
        raise WrongOptions(f"argument --{name}: {number} is not positive")
    return number
