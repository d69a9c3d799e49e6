"""kcat, the command line of librdkafka: lines in, lines out."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import COMPRESSIONS, TopicMaker, unused_name

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is absent (apt-get install kcat)")


def kcat(bootstrap: str, *arguments: object, stdin: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *map(str, arguments)]
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_reads_back_in_order(bootstrap: str, new_topic: TopicMaker, compression: str) -> None:
    topic = new_topic()
    lines = "".join(f"key {number}:value {number} {'x' * 100}\n" for number in range(2000))
    settings = ["-z", compression, "-X", "enable.idempotence=true"]
    kcat(bootstrap, "-P", "-t", topic, "-K:", *settings, stdin=lines)
    assert kcat(bootstrap, "-C", "-t", topic, "-K:", "-o", "beginning", "-e", "-q") == lines


def test_many_partitions_lose_and_repeat_nothing(bootstrap: str, new_topic: TopicMaker, tmp_path: Path) -> None:
    topic = new_topic(partitions=7)
    source = tmp_path / "lines"
    source.write_text("".join(f"{number}\n" for number in range(50_000)))
    kcat(bootstrap, "-P", "-t", topic, "-l", source)
    numbers = [int(line) for line in kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q").split()]
    assert sorted(numbers) == list(range(50_000))


def test_headers_and_nulls_are_preserved(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    kcat(bootstrap, "-P", "-t", topic, "-K:", "-Z", "-H", "trace=abc", stdin="key:\n")
    record = json.loads(kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J"))
    assert (record["key"], record["payload"], record["headers"]) == ("key", None, ["trace", "abc"])


def test_offsets_relative_to_the_end_and_by_time(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic()
    kcat(bootstrap, "-P", "-t", topic, stdin="old 1\nold 2\n")
    time.sleep(0.05)
    between = int(time.time() * 1000)
    kcat(bootstrap, "-P", "-t", topic, stdin="new 1\nnew 2\nnew 3\n")
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "-2", "-e", "-q").split("\n") == ["new 2", "new 3", ""]
    assert kcat(bootstrap, "-C", "-t", topic, "-o", f"s@{between}", "-e", "-q").split("\n")[0] == "new 1"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:{between}") == f"{topic} [0] offset 2\n"


def test_metadata_lists_brokers_and_partitions(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=3)
    answer = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [broker["name"] for broker in answer["brokers"]] == bootstrap.split(",")
    assert sorted(partition["partition"] for partition in answer["topics"][0]["partitions"]) == [0, 1, 2]


def test_unknown_topic_is_created_on_first_use(bootstrap: str) -> None:
    topic = unused_name()
    kcat(bootstrap, "-P", "-t", topic, stdin="first\n")
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q") == "first\n"
