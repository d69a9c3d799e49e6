"""Quotas of clients, set and read by Kafka's own tool and two admin clients, and obeyed by a broker that is used.

No time is asserted tighter than a factor of two, and only that something took long enough: a machine may be slow.
"""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer

from kafka_tools import KafkaTools
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.fetch import FetchResponse
from waiting import eventually, promptly

from .own_broker import STEADY, OwnBroker, batch_of, fetch_request, produce, produce_request

# One second is remembered: a client that goes on has used up what it may at once after two.
WINDOWS = {"quota_window_num": "2", "quota_window_size_seconds": "1"}


@pytest.fixture(scope="module")
def broker(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    settings = {**STEADY, **WINDOWS, "controller_quota_window_num": "2", "odradek_metrics_port": "0"}
    broker = OwnBroker(tmp_path_factory.mktemp("quotas"), zookeeper, **settings)
    try:
        broker.start()
        broker.create_topic("limited")
        yield broker
    finally:
        broker.stop()


def client_of(broker: OwnBroker, client_id: str) -> BrokerClient:
    return BrokerClient("127.0.0.1", broker.port, client_id=client_id)


def set_quota(broker: OwnBroker, entity: dict[str, str | None], **quotas: float | None) -> None:
    """None takes it away."""
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    ops = [OpData(key=key, value=value or 0, remove=value is None) for key, value in quotas.items()]
    with broker.client() as client:
        (result,) = client.send(AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=ops)])).entries
    assert result.error_code == ErrorCode.NONE, result


def test_a_producer_is_told_to_wait_and_is_not_read_meanwhile(broker: OwnBroker) -> None:
    set_quota(broker, {"client-id": "writer"}, producer_byte_rate=10_000)
    with client_of(broker, "writer") as writer, client_of(broker, "other") as other:
        request = produce_request("limited", batch_of(b"x" * 20_000))
        throttle_ms = writer.send(request).throttle_time_ms
        assert 800 <= throttle_ms <= 4000
        began = time.monotonic()
        assert other.send(request).throttle_time_ms == 0
        writer.send(ApiVersionsRequest())
        assert time.monotonic() - began >= throttle_ms / 2000
    set_quota(broker, {"client-id": "writer"}, producer_byte_rate=None)


def test_without_acknowledgements_too(broker: OwnBroker) -> None:
    set_quota(broker, {"client-id": "writer"}, producer_byte_rate=10_000)
    with client_of(broker, "writer") as writer:
        writer.send(produce_request("limited", batch_of(b"x" * 20_000), acks=0))
        began = time.monotonic()
        writer.send(ApiVersionsRequest())
        assert time.monotonic() - began >= 0.5
    set_quota(broker, {"client-id": "writer"}, producer_byte_rate=None)


def test_a_consumer_gets_its_records_and_then_nothing_for_a_while(broker: OwnBroker) -> None:
    with broker.client() as client:
        assert produce(client, "limited", batch_of(b"x" * 20_000)).error_code == ErrorCode.NONE
    set_quota(broker, {"user": None, "client-id": "reader"}, consumer_byte_rate=10_000)

    def read_twice() -> list[FetchResponse]:
        with client_of(broker, "reader") as reader, client_of(broker, "reader") as second:
            return [client.send(fetch_request("limited", 0), 12) for client in (reader, second)]

    answer, again = promptly(read_twice, within_s=1)  # what was read two seconds ago doesn't count any more
    assert answer.responses[0].partitions[0].records
    assert answer.throttle_time_ms > 0
    assert (again.responses, again.error_code) == ([], ErrorCode.NONE)
    assert again.throttle_time_ms > 0
    set_quota(broker, {"user": None, "client-id": "reader"}, consumer_byte_rate=None)


def test_time_of_threads_is_limited(broker: OwnBroker) -> None:
    set_quota(broker, {"user": "ANONYMOUS", "client-id": "busy"}, request_percentage=0.001)
    with client_of(broker, "busy") as busy:
        throttles = [busy.send(ApiVersionsRequest()).throttle_time_ms for _ in range(2)]
        assert 0 < max(throttles) <= 1000
    set_quota(broker, {"user": "ANONYMOUS", "client-id": "busy"}, request_percentage=None)


def test_changes_of_topics_are_limited(broker: OwnBroker) -> None:
    def create(name: str, version: int) -> tuple[int, int]:
        topic = CreatableTopic(name=name, num_partitions=8, replication_factor=1)
        answer = maker.send(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), version)
        return answer.topics[0].error_code, answer.throttle_time_ms

    set_quota(broker, {"client-id": "maker"}, controller_mutation_rate=1)
    with client_of(broker, "maker") as maker:
        assert create("made-0", 7) == (ErrorCode.NONE, 0)
    with client_of(broker, "maker") as maker:
        code, throttle_ms = create("made-1", 6)
        assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert throttle_ms > 1000
    with client_of(broker, "maker") as maker:
        more = CreatePartitionsTopic(name="made-0", count=9, assignments=None)
        (grown,) = maker.send(CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3).results
        assert grown.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    with client_of(broker, "maker") as maker:
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="made-0")], timeout_ms=30_000)
        assert maker.send(gone, 6).responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    with client_of(broker, "maker") as maker:
        code, throttle_ms = create("made-2", 5)
        assert code == ErrorCode.NONE, "older clients are held back afterwards"
        assert throttle_ms > 1000
    set_quota(broker, {"client-id": "maker"}, controller_mutation_rate=None)


def test_an_address_connects_so_often(broker: OwnBroker) -> None:
    set_quota(broker, {"ip": "127.0.0.3"}, connection_creation_rate=2)

    def connected() -> socket.socket:
        return socket.create_connection(("127.0.0.1", broker.port), 30, source_address=("127.0.0.3", 0))

    refused = 0
    with ExitStack() as stack:
        for one in [stack.enter_context(connected()) for _ in range(6)]:
            one.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")  # ApiVersions v0
            try:
                refused += not one.recv(1)
            except OSError:
                refused += 1  # held for a while and then closed, with what it sent unread
    assert 1 <= refused <= 4
    with broker.client():
        pass  # other addresses don't feel it
    set_quota(broker, {"ip": "127.0.0.3"}, connection_creation_rate=None)


def test_kafka_s_tool_sets_and_shows_quotas(broker: OwnBroker, kafka_tools: KafkaTools) -> None:
    def configs(*arguments: str) -> str:
        printed = kafka_tools.run("kafka-configs", "--bootstrap-server", broker.bootstrap, *arguments)
        assert printed.status == 0, printed.text
        return printed.text

    entities = {
        ("--entity-type", "users", "--entity-name", "alice"): "producer_byte_rate=1024",
        ("--entity-type", "users", "--entity-default"): "consumer_byte_rate=2048",
        ("--entity-type", "clients", "--entity-name", "a b/c"): "request_percentage=200.5",
        (
            "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app",
        ): "controller_mutation_rate=10.0",
        ("--entity-type", "ips", "--entity-name", "127.0.0.4"): "connection_creation_rate=7",
        ("--entity-type", "brokers", "--entity-default"): "message.max.bytes=2000000",
        ("--entity-type", "broker-loggers", "--entity-name", "0"): "broker.zk.session=DEBUG",
    }  # fmt: skip
    for entity, quota in entities.items():
        assert "Completed updating" in configs("--alter", *entity, "--add-config", quota)
        assert re.search(rf"{re.escape(quota)}\b", configs("--describe", *entity)), quota
    for entity, quota in entities.items():
        configs("--alter", *entity, "--delete-config", quota.partition("=")[0])
        assert quota not in configs("--describe", *entity)


def test_a_real_producer_is_held_to_its_rate(broker: OwnBroker, kafka_tools: KafkaTools) -> None:
    """ProducerPerformance, with as much as it would send in a blink: at 400 KB a second it takes seconds."""
    set_quota(broker, {"client-id": "perf"}, producer_byte_rate=400_000)
    arguments = ["--topic", "limited", "--num-records", "2000", "--record-size", "1000", "--throughput", "-1"]
    props = [f"bootstrap.servers={broker.bootstrap}", "client.id=perf", "acks=1", "batch.size=64000"]
    began = time.monotonic()
    printed = kafka_tools.run("kafka-producer-perf-test", *arguments, "--producer-props", *props)
    took_s = time.monotonic() - began
    assert "2000 records sent" in printed.text
    # 2 MB at 400 KB/s, less what may be used at once
    assert took_s >= 2
    set_quota(broker, {"client-id": "perf"}, producer_byte_rate=None)


def test_a_real_consumer_with_a_session_reads_everything(broker: OwnBroker, kafka_tools: KafkaTools) -> None:
    """Kafka's consumer keeps a fetch session, in which an empty answer must not count as one about its partitions."""
    broker.create_topic("read-slowly")
    with broker.client() as client:
        for number in range(20):
            assert produce(client, "read-slowly", batch_of(b"%d " % number + b"x" * 20_000)).error_code == 0
    set_quota(broker, {"client-id": "slow-reader"}, consumer_byte_rate=100_000)
    printed = kafka_tools.run(
        "kafka-console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", "read-slowly", "--from-beginning",
        "--max-messages", "20", "--timeout-ms", "60000",
        "--consumer-property", "client.id=slow-reader", "--consumer-property", "fetch.max.bytes=50000",
    )  # fmt: skip
    read = [line.split()[0] for line in printed.text.splitlines() if line.endswith("x")]
    assert read == [str(number) for number in range(20)]
    set_quota(broker, {"client-id": "slow-reader"}, consumer_byte_rate=None)


def test_librdkafka_hears_of_its_throttle_and_loses_nothing(broker: OwnBroker) -> None:
    throttles: list[float] = []
    broker.create_topic("throttled")
    set_quota(broker, {"client-id": "rd"}, producer_byte_rate=200_000, consumer_byte_rate=200_000)
    heard = {"throttle_cb": lambda event: throttles.append(event.throttle_time), "client.id": "rd"}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **heard})
    for number in range(400):
        producer.produce("throttled", b"%d:" % number + b"x" * 1000)
    assert producer.flush(60) == 0
    producer.poll(0)
    assert throttles
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "throttled", "auto.offset.reset": "earliest", **heard}
    )
    consumer.subscribe(["throttled"])
    seen: list[int] = []

    def read_on() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            seen.append(int(message.value().partition(b":")[0]))
        return len(seen) >= 400

    eventually(read_on)
    consumer.close()
    assert seen == list(range(400))
    set_quota(broker, {"client-id": "rd"}, producer_byte_rate=None, consumer_byte_rate=None)
