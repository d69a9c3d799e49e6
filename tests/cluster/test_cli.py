"""The command line against a running cluster, as a person or a script uses it."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from odradek.testing import OdradekCluster
from waiting import PATIENCE_S

from .conftest import Run, TopicMaker, told

PATIENCE_MS = str(PATIENCE_S * 1000)
ODRADEK = [sys.executable, "-m", "odradek"]
_numbers = count()


@pytest.fixture
def topic(odradek: Run) -> str:
    name = f"cli-{next(_numbers)}"
    made = odradek("topics", "create", name, "--partitions", "3", "--replication-factor", "1")
    assert made.returncode == 0, made.stderr
    return name


def test_a_topic_from_its_creation_to_its_end(odradek: Run) -> None:
    create = ("--create", "--topic", "cli-life", "--partitions", "2", "--replication-factor", "1")
    made = odradek("topics", *create, "--config", "retention.ms=60000")
    assert made.stdout == "created topic cli-life: 2 partitions, replication factor 1\n"

    again = odradek("topics", *create)
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    assert "topic 'cli-life' exists already; with --if-not-exists that is no error" in again.stderr
    assert odradek("topics", *create, "--if-not-exists").returncode == 0

    (described,) = told(odradek("topics", "describe", "cli-life", "--format", "json"))
    assert described["configs"] == {"retention.ms": "60000"}
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1]
    assert described["partitions"][0]["isr"] == described["partitions"][0]["replicas"]

    assert odradek("topics", "alter", "cli-life", "--partitions", "4").returncode == 0
    shrunk = odradek("topics", "alter", "cli-life", "--partitions", "1")
    assert shrunk.returncode == 1

    listed = told(odradek("topics", "--list", "--topic", "cli-li.*", "--format", "json"))
    assert [(row["topic"], row["partitions"]) for row in listed] == [("cli-life", 4)]

    assert odradek("topics", "delete", "cli-life").returncode == 0
    gone = odradek("topics", "delete", "cli-life")
    assert gone.returncode == 1
    assert "topic 'cli-life' does not exist; see which do with: odradek topics list" in gone.stderr
    assert odradek("topics", "delete", "cli-life", "--if-exists").returncode == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("create", "no spaces"),
        ("create", "t", "--replication-factor", "30000"),
        ("create", "t", "--config", "no.such.config=1"),
        ("create", "t", "--config", "retention.ms=soon"),
    ],
)
def test_what_a_broker_refuses_is_told_in_one_line(odradek: Run, wrong: tuple[str, ...]) -> None:
    result = odradek("topics", *wrong)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: topic '")
    assert result.stderr.count("\n") == 1


def test_keys_and_headers_come_back_as_they_went(odradek: Run, topic: str) -> None:
    lines = "".join(f"origin:{n}\tkey{n}|value {n} ü\n" for n in range(20))
    written = told(
        odradek("produce", "--topic", topic, "--key-separator", "|", "--headers", "--format", "json", stdin=lines)
    )
    assert written["records"] == 20
    read = odradek("consume", "--topic", topic, "--from-beginning", "--exit-at-end", "--format", "json")
    records = [json.loads(line) for line in read.stdout.splitlines()]
    assert {record["key"]: record["value"] for record in records} == {f"key{n}": f"value {n} ü" for n in range(20)}
    assert all(record["headers"] == [{"key": "origin", "value": record["key"][3:]}] for record in records)
    assert read.stderr == "20 records read\n"


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_many_records_in_order_with_every_compression(odradek: Run, topic: str, compression: str) -> None:
    lines = "".join(f"line {n}\n" for n in range(5000))
    options = ("--partition", "1", "--batch-size", "4096", "--compression", compression)
    assert odradek("produce", "--topic", topic, *options, stdin=lines).returncode == 0
    assert odradek("consume", "--topic", topic, "--from-beginning", "--exit-at-end").stdout == lines


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acknowledgements(odradek: Run, topic: str, acks: str) -> None:
    assert odradek("produce", "--topic", topic, "--acks", acks, stdin="a\nb\n").returncode == 0
    read = odradek("consume", "--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", PATIENCE_MS)
    assert read.stdout == "a\nb\n"


def test_several_topics_as_words(odradek: Run, new_topic: TopicMaker) -> None:
    first, second = new_topic(partitions=1), new_topic(partitions=1)
    described = told(odradek("topics", "-o", "json", "describe", first, second))
    assert [item["topic"] for item in described] == [first, second]
    assert odradek("topics", "delete", first, second).stdout.count("deleted topic") == 2


def test_where_to_begin(odradek: Run, topic: str) -> None:
    odradek("produce", "--topic", topic, "--partition", "0", stdin="".join(f"{n}\n" for n in range(10)))
    options = ("--topic", topic, "--partition", "0", "--exit-at-end")
    assert odradek("consume", *options, "--offset", "7").stdout == "7\n8\n9\n"
    assert odradek("consume", *options, "--offset", "-2").stdout == "8\n9\n"
    assert odradek("consume", *options, "--offset", "latest").stdout == ""
    shaped = odradek("consume", *options, "--offset", "9", "--format-string", r"%t/%p@%o=%s;\n")
    assert shaped.stdout == f"{topic}/0@9=9;\n"
    beyond = odradek("consume", *options[:-1], "--offset", "99")
    assert beyond.returncode == 1
    assert "has no offset 99" in beyond.stderr
    to_the_end = odradek("consume", "--topic", topic, "--offset", "99", "--exit-at-end")
    assert (to_the_end.returncode, to_the_end.stdout) == (0, "")
    assert f"warning: partition {topic}-0 ends at offset " in to_the_end.stderr
    at_the_end = odradek("consume", "--topic", topic, "--exit-at-end")
    assert "consume begins at the latest offset; --from-beginning reads" in at_the_end.stderr


def test_records_that_fit_a_filter(odradek: Run, topic: str) -> None:
    lines = "".join(f'key{n}|{{"amount": {n * 10}, "kind": "{"ab"[n % 2]}"}}\n' for n in range(20))
    odradek("produce", topic, "--key-separator", "|", stdin=lines)
    options = ("--from-beginning", "--exit-at-end", "-o", "json", "--decode", "json")
    read = odradek(
        "consume", topic, *options, "--filter", "value.amount >= 150 and not (value.kind = a or key = key19)"
    )
    assert sorted(json.loads(line)["value"]["amount"] for line in read.stdout.splitlines()) == [150, 170]
    assert read.stderr == "2 records shown, 20 records scanned\n"
    wrong = odradek("consume", topic, "--filter", "value.amount >")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "a value is missing after >" in wrong.stderr


def test_committed_offsets_are_decoded(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "--partition", "0", stdin="a\nb\n")
    assert odradek("consume", topic, "--group", f"of-{topic}", "--from-beginning", "-c", "2").returncode == 0
    search = (
        "--from-beginning",
        "--exit-at-end",
        "-o",
        "json",
        "--filter",
        f"key.group_id = of-{topic} and key.partition.topic = {topic}",
    )
    read = odradek("consume", "__consumer_offsets", *search)
    found = [json.loads(line) for line in read.stdout.splitlines()]
    assert 2 in [each["value"]["offset"] for each in found]


def test_following_until_interrupted(odradek: Run, odradek_cluster: OdradekCluster, topic: str) -> None:
    command = [*ODRADEK, "consume", "--topic", topic, "--from-beginning"]
    command += ["--bootstrap-server", odradek_cluster.bootstrap_servers]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # An unbuffered line is seen here before it is counted there: the interrupt would come between the two.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, **pipes, text=True, env=buffered) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        try:
            for word in ("one", "two"):
                odradek("produce", "--topic", topic, stdin=f"{word}\n")
                assert follower.stdout.readline() == f"{word}\n"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(PATIENCE_S) == 0
            assert "2 records read" in follower.stderr.read()
        finally:
            follower.kill()


def test_lines_that_trickle_in_are_written_at_once(odradek: Run, odradek_cluster: OdradekCluster, topic: str) -> None:
    command = [*ODRADEK, "produce", "--topic", topic, "--bootstrap-server", odradek_cluster.bootstrap_servers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as producer:
        assert producer.stdin is not None
        producer.stdin.write("early\n")
        producer.stdin.flush()
        read = odradek("consume", "--topic", topic, "--from-beginning", "-c", "1", "--timeout-ms", PATIENCE_MS)
        assert read.stdout == "early\n"
        assert producer.poll() is None
        producer.stdin.close()
        assert producer.wait(PATIENCE_S) == 0


def test_a_wrong_line_is_named_and_what_came_before_is_written(odradek: Run, topic: str) -> None:
    result = odradek("produce", "--topic", topic, "--key-separator", ":", stdin="a:1\nb\n")
    assert result.returncode == 1
    assert "standard input line 2: no key separator ':' in the line; 1 records were written" in result.stderr


def test_offsets_by_time(odradek: Run, topic: str) -> None:
    before_ms = time.time_ns() // 1_000_000
    odradek("produce", "--topic", topic, "--partition", "2", stdin="a\nb\nc\n")
    asked = ("offsets", "--topic", topic, "--partitions", "2", "--format", "json")
    assert told(odradek(*asked)) == [{"topic": topic, "partition": 2, "earliest": 0, "latest": 3, "records": 3}]
    for when, offset in (("latest", 3), ("earliest", 0), (str(before_ms), 0), (str(before_ms + 10**6), None)):
        (row,) = told(odradek(*asked, "--time", when))
        assert row["offset"] == offset, when
    (newest,) = told(odradek(*asked, "--time", "max-timestamp"))
    assert newest["timestamp_ms"] >= before_ms


@pytest.mark.parametrize(
    "command",
    [("produce", "--topic", "cli-none"), ("consume", "--topic", "cli-none"), ("offsets", "--topic", "cli-none")],
)
def test_a_topic_that_is_not_there(odradek: Run, command: tuple[str, ...]) -> None:
    result = odradek(*command)
    assert result.returncode == 1
    assert result.stderr.startswith("error: topic 'cli-none' does not exist; see which do with: odradek topics list")


def test_perf(odradek: Run, topic: str) -> None:
    produce = ("perf", "produce", "--topic", topic, "--num-records", "3001", "--record-size", "100", "--format", "json")
    written = told(odradek(*produce, "--batch-size", "2000"))
    assert (written["records"], written["bytes"]) == (3001, 300_100)
    assert written["p50_ms"] <= written["p99_ms"] <= written["latency_max_ms"]
    read = told(odradek("perf", "consume", "--topic", topic, "--messages", "3001", "--format", "json"))
    assert read["records"] == 3001
    short = odradek("perf", "consume", "--topic", topic, "--messages", "3002", "--timeout", "500")
    assert short.returncode == 1
    assert "only 3001 of 3002 records came" in short.stderr


def test_dump_log_reads_what_the_broker_wrote(odradek: Run, odradek_cluster: OdradekCluster, topic: str) -> None:
    odradek("produce", "--topic", topic, "--partition", "0", stdin="a\nb\n")
    (directory,) = Path(odradek_cluster.data_dir).rglob(f"{topic}-0")
    verified = subprocess.run(
        [*ODRADEK, "dump-log", "--verify", str(directory)], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    segment = directory / "00000000000000000000.log"
    dump = [*ODRADEK, "dump-log", "--print-data-log", "--format", "json", str(segment)]
    shown = subprocess.run(dump, capture_output=True, text=True, check=True)
    (batch,) = (json.loads(line) for line in shown.stdout.splitlines())
    assert (batch["baseOffset"], batch["lastOffset"], batch["isvalid"]) == (0, 1, True)
    assert [record["payload"] for record in batch["records"]] == ["a", "b"]


def test_no_broker_there() -> None:
    command = [*ODRADEK, "topics", "list", "--bootstrap-server", "127.0.0.1:1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("error: no broker answers at 127.0.0.1:1: Connection refused")
    assert "odradek up" in result.stderr
