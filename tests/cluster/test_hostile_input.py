"""Bad input to a running broker: an error or a closed connection for its sender, and no effect on other clients.

While each attack goes on, a good client works on a connection to every processor. It must see no error and no long
stall, the broker's memory must stay within bounds, and afterwards the broker must be alive.
"""

import contextlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.base.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import Codec, compress
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.primitives import put_uvarint
from odradek.protocol.record_batch import BatchHeader, pack_batch, read_header
from odradek.protocol.records import Record, encode_record
from waiting import eventually

from . import good_client
from .good_client import MEGABYTE, NETWORK_THREADS, unnoticed
from .own_broker import (
    LAST_FETCH_BY_NAME,
    STEADY,
    OwnBroker,
    batch_of,
    fetch_request,
    produce,
    produce_request,
    read_all,
    running,
)

TOPIC = "target"
TCP_INFO_SIZE, TOTAL_RETRANSMISSIONS = 104, struct.Struct("=100xI")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnBroker]:
    directory = tmp_path_factory.mktemp("hostile")
    settings = {"num_network_threads": str(NETWORK_THREADS), "connections_max_idle_ms": "60000"}
    with running(OwnBroker(directory, zookeeper, **STEADY, **settings)) as started:
        for topic in (TOPIC, good_client.TOPIC):
            started.create_topic(topic)
        yield started
        assert "request failed" not in started.log
        assert "Traceback" not in started.log


@pytest.fixture
def growth_max() -> int:
    return 64 * MEGABYTE


@pytest.fixture(autouse=True)
def _nobody_else_notices(broker: OwnBroker, growth_max: int) -> Iterator[None]:
    with unnoticed(broker, growth_max):
        yield


class Attacker:
    """A socket to the broker, and what the broker does with it."""

    def __init__(self, broker: OwnBroker, source: str = "127.0.0.1") -> None:
        address = ("127.0.0.1", broker.port)
        self.socket = socket.create_connection(address, timeout=20, source_address=(source, 0))

    @property
    def retransmissions(self) -> int:
        """Return the segments that the system sent again for want of an answer, requests to connect included."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_SIZE)
        return int(TOTAL_RETRANSMISSIONS.unpack(info)[0])

    def send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next answer, without its size; empty if the broker closed the connection."""
        try:
            (size,) = struct.unpack(">i", self._receive_exactly(4))
            return self._receive_exactly(size)
        except (EOFError, ConnectionError):
            return b""

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(min(size - len(data), MEGABYTE))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def __enter__(self) -> "Attacker":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def answer_to(broker: OwnBroker, data: bytes) -> bytes:
    with Attacker(broker) as attacker:
        attacker.send(data)
        return attacker.receive()


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def uvarint(value: int) -> bytes:
    out = bytearray()
    put_uvarint(out, value)
    return bytes(out)


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


# ---- frames

NOT_FRAMES = {
    "http": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "a negative length": struct.pack(">i", -1),
    "the most negative length": struct.pack(">i", -(2**31)),
    "two gigabytes": struct.pack(">i", 2**31 - 1) + bytes(1000),
    "one byte too many": struct.pack(">i", 100 * MEGABYTE + 1) + bytes(1000),
}


@pytest.mark.parametrize("data", NOT_FRAMES.values(), ids=NOT_FRAMES.keys())
def test_what_is_no_frame_closes_the_connection(broker: OwnBroker, data: bytes) -> None:
    before = broker.log.count("invalid frame")
    assert answer_to(broker, data) == b""
    assert broker.log.count("invalid frame") == before + 1


def test_noise(broker: OwnBroker) -> None:
    chance = random.Random(1)
    for _ in range(200):
        with Attacker(broker) as attacker:
            attacker.send(chance.randbytes(chance.randrange(1, 3000)))


def test_frames_cut_short(broker: OwnBroker) -> None:
    whole = encode_request(produce_request(TOPIC, batch_of(b"x")), 9, 1, "client")
    for size in range(1, len(whole)):
        with Attacker(broker) as attacker:
            attacker.send(whole[:size])


MALFORMED = {
    "nothing": b"",
    "half a header": b"\x00\x03\x00",
    "a client id longer than its frame": struct.pack(">hhih", ApiKey.METADATA, 1, 1, 32_000),
    "an array of 2^31-1": header(ApiKey.METADATA, 1) + struct.pack(">i", 2**31 - 1),
    "a compact array of 2^32-2": header(ApiKey.METADATA, 9) + b"\x00\xff\xff\xff\xff\x0f",
    "2^32-1 tagged fields": header(ApiKey.METADATA, 9) + b"\xff\xff\xff\xff\x0f",
    "a topic name that is no UTF-8": header(ApiKey.METADATA, 1) + struct.pack(">ih", 1, 2) + b"\xc3\x28",
    "an unknown api": header(999, 0),
    "a negative api": header(-1, 0),
    "a version from the future": header(ApiKey.METADATA, 99),
    "a negative version": header(ApiKey.METADATA, -1),
    "an api for brokers": header(ApiKey.LEADER_AND_ISR, 7) + bytes(30),
}


@pytest.mark.parametrize("payload", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_request_closes_the_connection(broker: OwnBroker, payload: bytes) -> None:
    before = broker.log.count("connection closed")
    assert answer_to(broker, framed(payload)) == b""
    assert broker.log.count("connection closed") == before + 1


def test_api_versions_of_the_future_is_answered_in_version_0(broker: OwnBroker) -> None:
    with Attacker(broker) as client:
        client.send(framed(header(ApiKey.API_VERSIONS, 99) + b"\x00whatever"))
        _, answer = decode_response(ApiVersionsResponse, memoryview(client.receive()), 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [key.api_key for key in answer.api_keys] == [ApiKey.API_VERSIONS]
        client.send(encode_request(ApiVersionsRequest(), 0, 2, None))
        assert decode_response(ApiVersionsResponse, memoryview(client.receive()), 0)[1].error_code == 0


# ---- requests that are large, and true


def names_request(count: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"n{number:x}") for number in range(count)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(request, 9, 1, None)


@pytest.mark.parametrize("growth_max", [256 * MEGABYTE])
def test_a_request_of_many_names(broker: OwnBroker) -> None:
    assert len(answer_to(broker, names_request(100_000))) > 100_000


def test_a_request_of_more_names_than_there_can_be(broker: OwnBroker) -> None:
    body = struct.pack(">i", 2 * MEGABYTE) + b"\x00\x01a" * (2 * MEGABYTE)
    assert answer_to(broker, framed(header(ApiKey.METADATA, 1) + body)) == b""


# ---- requests that are large, and nothing but work

TAGS = 20_000_000
TAG = b"\x63\x00"
EACH = 100
FULL_OF_TAGS = {
    "in the header": header(ApiKey.METADATA, 9) + uvarint(TAGS) + TAG * TAGS,
    "in the header of a produce": header(ApiKey.PRODUCE, 9) + uvarint(TAGS) + TAG * TAGS,
    "in the message": header(ApiKey.METADATA, 9) + b"\x00\x01\x00\x00\x00" + uvarint(TAGS) + TAG * TAGS,
    "in the elements of a produce": header(ApiKey.PRODUCE, 9)
    + (b"\x00\x00" + struct.pack(">hi", -1, 1000) + uvarint(TAGS // EACH + 1))
    + (b"\x02a\x01" + uvarint(EACH) + TAG * EACH) * (TAGS // EACH),
}


def cpu_s_of(broker: OwnBroker, data: bytes) -> float:
    """Cost of a frame for which the broker closes the connection."""
    before = broker.cpu_s
    assert answer_to(broker, data) == b""
    return broker.cpu_s - before


@pytest.mark.parametrize("growth_max", [256 * MEGABYTE])
@pytest.mark.parametrize("payload", FULL_OF_TAGS.values(), ids=FULL_OF_TAGS.keys())
def test_cve_2026_111115_millions_of_tagged_fields_cost_little(broker: OwnBroker, payload: bytes) -> None:
    """Beside a frame of the same size that is refused by its version, and costs no more than its receipt: three to five
    times as much. Reading them all took a hundred times as long."""
    harmless = header(ApiKey.METADATA, 99) + bytes(len(payload) - 10)
    assert cpu_s_of(broker, framed(payload)) < 10 * cpu_s_of(broker, framed(harmless))


# ---- batches


def plain_header(**fields: int) -> BatchHeader:
    return read_header(batch_of(b"x"))._replace(**fields)


def batch_with(payload: bytes, **fields: int) -> bytes:
    """A batch whose checksum is right, whatever it says."""
    return bytes(pack_batch(plain_header(**fields), payload))


ONE_RECORD = encode_record(Record(0, -1, None, b"x"), 0, -1)
WRONG_BATCHES = {
    "a wrong checksum": (batch_of(b"x")[:-1] + b"y", ErrorCode.CORRUPT_MESSAGE),
    "magic 3": (batch_of(b"x")[:16] + b"\x03" + batch_of(b"x")[17:], ErrorCode.INVALID_RECORD),
    "more records than there are": (
        batch_with(ONE_RECORD, record_count=2, last_offset_delta=1),
        ErrorCode.INVALID_RECORD,
    ),
    "fewer records than there are": (batch_with(ONE_RECORD * 3), ErrorCode.INVALID_RECORD),
    "2^31-1 records": (
        batch_with(ONE_RECORD, record_count=2**31 - 1, last_offset_delta=2**31 - 2),
        ErrorCode.INVALID_RECORD,
    ),
    "no records": (batch_with(b"", record_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "a count and a delta that differ": (batch_with(ONE_RECORD, last_offset_delta=7), ErrorCode.INVALID_RECORD),
    "a control batch": (batch_with(ONE_RECORD, attributes=0x20), ErrorCode.INVALID_RECORD),
    "codec 7": (batch_with(ONE_RECORD, attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "two batches": (batch_of(b"x") * 2, ErrorCode.INVALID_RECORD),
    "a length beyond the end": (batch_of(b"x")[:8] + b"\x7f" + batch_of(b"x")[9:], ErrorCode.CORRUPT_MESSAGE),
    "a header alone": (batch_of(b"x")[:61], ErrorCode.CORRUPT_MESSAGE),
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "too large": (batch_of(bytes(2 * MEGABYTE)), ErrorCode.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize(("records", "code"), WRONG_BATCHES.values(), ids=WRONG_BATCHES.keys())
def test_a_wrong_batch_is_refused_and_the_connection_kept(broker: OwnBroker, records: bytes, code: ErrorCode) -> None:
    with broker.client() as client:
        end = len(read_all(client, TOPIC))
        assert produce(client, TOPIC, records).error_code == code
        assert produce(client, TOPIC, batch_of(b"right")).base_offset == end
        assert len(read_all(client, TOPIC)) == end + 1


def bomb(codec: Codec) -> bytes:
    """As many zeros as fit into a batch: a gigabyte and more with those that shrink them best."""
    block = compress(codec, bytes(16 * MEGABYTE))
    return block * (MEGABYTE // len(block)) if codec is not Codec.SNAPPY else compress(codec, bytes(20 * MEGABYTE))


COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("growth_max", [160 * MEGABYTE])
@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name.lower())
def test_decompression_bombs(broker: OwnBroker, codec: Codec) -> None:
    records = batch_with(bomb(codec)[: MEGABYTE - 100], attributes=codec)
    with broker.client() as client:
        for _ in range(3):
            assert produce(client, TOPIC, records).error_code in (
                ErrorCode.MESSAGE_TOO_LARGE,
                ErrorCode.INVALID_RECORD,
            )


@pytest.mark.parametrize("growth_max", [200 * MEGABYTE])
@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name.lower())
def test_many_decompression_bombs_in_one_request(broker: OwnBroker, codec: Codec) -> None:
    """No more is unfolded than one request may ask for, and what was is not kept."""
    records = batch_with(bomb(codec)[: MEGABYTE - 100], attributes=codec)
    data = [PartitionProduceData(index=0, records=records) for _ in range(40)]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])
    with broker.client() as client:
        answers = client.send(request).responses[0].partition_responses
    codes = [answer.error_code for answer in answers]
    assert codes[0] in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD)
    assert codes[-1] == ErrorCode.REQUEST_TIMED_OUT, "which tells an honest client to send it again"


@pytest.mark.parametrize("growth_max", [160 * MEGABYTE])
@pytest.mark.parametrize("claims", [5, 2 * MEGABYTE], ids=["and a lie", "all of them"])
def test_millions_of_tiny_records(broker: OwnBroker, claims: int) -> None:
    """Different lengths in turn, so that no row of equal ones can be counted at once."""
    pair = encode_record(Record(0, 0, None, b""), 0, 0) + encode_record(Record(0, 0, None, b"a"), 0, 0)
    payload = compress(Codec.ZSTD, pair * MEGABYTE)
    records = batch_with(payload, attributes=Codec.ZSTD, record_count=claims, last_offset_delta=claims - 1)
    with broker.client() as client:
        code = produce(client, "good", records).error_code
    assert code == (ErrorCode.NONE if claims > 5 else ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("growth_max", [160 * MEGABYTE])
def test_a_search_by_time_through_many_records(broker: OwnBroker) -> None:
    """The batch claims a time that none of its records has, so that all of them are looked at."""
    count = 500_000
    record = encode_record(Record(0, 0, None, b""), 0, 0)
    fields = {"record_count": count, "last_offset_delta": count - 1, "base_timestamp": 0, "max_timestamp": 2000}
    broker.create_topic("times")
    with broker.client() as client:
        payload = compress(Codec.ZSTD, record * count)
        assert produce(client, "times", batch_with(payload, attributes=Codec.ZSTD, **fields)).error_code == 0
        wanted = ListOffsetsPartition(partition_index=0, timestamp=1000)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="times", partitions=[wanted])])
        answer = client.send(request).topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (0, -1)


@pytest.mark.parametrize("growth_max", [200 * MEGABYTE])
@pytest.mark.parametrize(("count", "code"), [(200_000, ErrorCode.NONE), (600_000, ErrorCode.MESSAGE_TOO_LARGE)])
def test_an_old_consumer_of_many_tiny_records(broker: OwnBroker, count: int, code: ErrorCode) -> None:
    """Fetch records that have to be converted, one by one."""
    topic = f"tiny-{count}"
    payload = b"".join(encode_record(Record(number, 0, None, b""), 0, 0) for number in range(count))
    fields = {"attributes": Codec.GZIP, "record_count": count, "last_offset_delta": count - 1}
    broker.create_topic(topic)
    with broker.client() as client:
        assert produce(client, topic, batch_with(compress(Codec.GZIP, payload), **fields)).error_code == 0
        answer = client.send(fetch_request(topic, 0), 3).responses[0].partitions[0]
    assert answer.error_code == code


# ---- names

WRONG_NAMES = ["../x", "..", ".", "a/b", "a\0b", "", "n" * 250, "ü", "a b", "a\nb"]


@pytest.mark.parametrize("name", WRONG_NAMES, ids=ascii)
def test_names_that_could_leave_the_directory(broker: OwnBroker, name: str) -> None:
    around = sorted(os.listdir(broker.directory))
    with broker.client() as client:
        wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        (created,) = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)).topics
        assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        (refused,) = client.send(produce_request(name, batch_of(b"x"))).responses[0].partition_responses
        assert refused.error_code != 0
        (described,) = client.send(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 8).topics
        assert described.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert sorted(os.listdir(broker.directory)) == around
    assert sorted(path.name for path in broker.log_dirs[0].iterdir() if path.is_dir()) == sorted(
        path.name for path in broker.log_dirs[0].iterdir() if path.is_dir() and path.name[-1].isdigit()
    )


def test_names_that_collide_in_metrics(broker: OwnBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("a.b", 1, 1)])["a.b"].result(10)
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic("a_b", 1, 1)])["a_b"].result(10)
    assert caught.value.args[0].code() == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_internal_topics_are_not_for_producers(broker: OwnBroker) -> None:
    with broker.client() as client:
        for name in ("__consumer_offsets", "__transaction_state"):
            assert produce(client, name, batch_of(b"x")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_client_that_pretends_to_be_a_follower(broker: OwnBroker) -> None:
    with broker.client() as client:
        before = client.send(fetch_request(TOPIC, 0), LAST_FETCH_BY_NAME).responses[0].partitions[0]
        for replica_id in (0, 1, 7):
            answer = client.send(fetch_request(TOPIC, 10**9, replica_id=replica_id), 11)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        after = client.send(fetch_request(TOPIC, 0), LAST_FETCH_BY_NAME).responses[0].partitions[0]
        described = client.send(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 8).topics[0].partitions[0]
    assert (after.high_watermark, after.log_start_offset) == (before.high_watermark, before.log_start_offset)
    assert described.isr_nodes == described.replica_nodes == [0]


# ---- clients that take their time


def test_a_client_that_fetches_and_never_reads(broker: OwnBroker) -> None:
    with broker.client() as client:
        for _ in range(20):
            last = produce(client, TOPIC, batch_of(os.urandom(900_000)))
            assert last.error_code == 0
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            attacker = stack.enter_context(Attacker(broker))
            attacker.socket.settimeout(0.1)
            frame = encode_request(fetch_request(TOPIC, last.base_offset - 19), LAST_FETCH_BY_NAME, 1, None)
            with contextlib.suppress(TimeoutError):
                attacker.socket.sendall(frame * 5000)
        time.sleep(0.5)
        # It reads at last, and gets what it asked for, in order.
        attacker.socket.settimeout(20)
        for _ in range(3):
            _, answer = decode_response(FetchResponse, memoryview(attacker.receive()), LAST_FETCH_BY_NAME)
            records = answer.responses[0].partitions[0].records
            assert isinstance(records, memoryview)
            assert len(records) > 7 * MEGABYTE


def test_a_thousand_idle_connections(broker: OwnBroker) -> None:
    before = broker.rss_bytes
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(Attacker(broker, source="127.0.0.2")) for _ in range(1000)]
        assert not any(attacker.retransmissions for attacker in attackers), "a full backlog costs a second each time"
        time.sleep(0.2)
        assert broker.rss_bytes - before < 20 * MEGABYTE
        with Attacker(broker, source="127.0.0.2") as one_more:
            one_more.send(encode_request(ApiVersionsRequest(), 0, 1, None))
            assert one_more.receive() == b"", "one address may have a thousand"


def test_slow_loris(broker: OwnBroker) -> None:
    frame = encode_request(ApiVersionsRequest(), 0, 1, None)
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(Attacker(broker, source="127.0.0.3")) for _ in range(300)]
        for byte in frame:
            for attacker in attackers:
                attacker.send(bytes([byte]))
        assert all(attacker.receive() for attacker in attackers), "slow is no crime"


@pytest.mark.parametrize("growth_max", [300 * MEGABYTE])
def test_large_frames_that_never_end(broker: OwnBroker) -> None:
    """Each claims 10 MB and sends 9; the memory for requests has room for 26 of them."""
    part = bytes(MEGABYTE)
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            attacker = stack.enter_context(Attacker(broker, source="127.0.0.4"))
            attacker.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                attacker.socket.send(struct.pack(">i", 10 * MEGABYTE) + header(ApiKey.PRODUCE, 9))
                for _ in range(9):
                    attacker.socket.send(part)
                    time.sleep(0.001)
        time.sleep(0.3)


def test_pipelined_requests_are_answered_in_order(broker: OwnBroker) -> None:
    count = 10_000
    frames = b"".join(encode_request(ApiVersionsRequest(), 0, number, None) for number in range(count))
    with Attacker(broker) as attacker:
        sender = threading.Thread(target=attacker.send, args=(frames,))
        sender.start()
        numbers = [struct.unpack(">i", attacker.receive()[:4])[0] for _ in range(count)]
        sender.join()
    assert numbers == list(range(count))


def test_connections_leave_nothing_behind(broker: OwnBroker) -> None:
    descriptors = Path(f"/proc/{broker.pid}/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(3000):
        with Attacker(broker, source="127.0.0.5"):
            pass
    eventually(lambda: len(list(descriptors.iterdir())) <= before + 10)
