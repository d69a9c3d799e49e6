"""Groups, settings, disks and health by our command line; the groups are made by a client that isn't ours."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from .conftest import Run, TopicMaker, told, unused_name


@pytest.fixture
def topic(new_topic: TopicMaker, odradek: Run) -> str:
    """Two partitions with five records each."""
    name = new_topic(partitions=2)
    for partition in ("0", "1"):
        lines = "".join(f"{n}\n" for n in range(5))
        assert odradek("produce", "--topic", name, "--partition", partition, stdin=lines).returncode == 0
    return name


def consumer_of(bootstrap: str, group: str, **settings: object) -> Consumer:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0, **settings}
    )


@pytest.fixture
def group(bootstrap: str, topic: str) -> str:
    """It stands at 3 in the first partition, and has not been in the second."""
    name = unused_name()
    consumer = consumer_of(bootstrap, name)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    return name


def offsets_of(odradek: Run, group: str) -> dict[int, tuple[int, int]]:
    (described,) = told(odradek("groups", "describe", group, "--format", "json"))
    return {row["partition"]: (row["current_offset"], row["lag"]) for row in described["partitions"]}


def test_a_group_is_listed_described_moved_and_deleted(odradek: Run, topic: str, group: str, tmp_path: Path) -> None:
    assert group in [row["group"] for row in told(odradek("groups", "list", "--state", "Empty", "--format", "json"))]
    assert offsets_of(odradek, group) == {0: (3, 2)}
    assert odradek("groups", "members", group).stderr == "no active members\n"

    planned = odradek("groups", "reset", group, "--topic", topic, "--to-earliest", "--dry-run", "--format", "json")
    first, second = told(planned)
    assert (first["old_offset"], first["new_offset"], first["old_lag"], first["new_lag"]) == (3, 0, 2, 5)
    assert (second["old_offset"], second["new_offset"]) == (None, 0)
    assert planned.stderr == "nothing was changed; --execute does it\n"
    assert offsets_of(odradek, group) == {0: (3, 2)}

    assert odradek("groups", "reset", group, "--topic", f"{topic}:1", "--to-offset", "4", "--execute").returncode == 0
    assert offsets_of(odradek, group) == {0: (3, 2), 1: (4, 1)}
    assert odradek("groups", "reset", group, "--all-topics", "--shift-by", "-2", "--execute").returncode == 0
    assert offsets_of(odradek, group) == {0: (1, 4), 1: (2, 3)}
    beyond = odradek("groups", "reset", group, "--all-topics", "--shift-by", "99", "--execute")
    assert "5 is the nearest offset it has" in beyond.stderr
    assert offsets_of(odradek, group) == {0: (5, 0), 1: (5, 0)}
    long_ago = ("--to-datetime", "2001-01-01T00:00:00")
    assert odradek("groups", "reset", group, "--topic", topic, *long_ago, "--execute").returncode == 0
    assert offsets_of(odradek, group) == {0: (0, 5), 1: (0, 5)}
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,2\n{topic},1,1\n")
    assert odradek("groups", "reset", group, "--from-file", str(file), "--execute").returncode == 0
    assert offsets_of(odradek, group) == {0: (2, 3), 1: (1, 4)}

    assert odradek("groups", "delete", group, "--topic", f"{topic}:1").returncode == 0
    assert offsets_of(odradek, group) == {0: (2, 3)}
    assert odradek("groups", "delete", group).returncode == 0
    gone = odradek("groups", "describe", group)
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)
    assert f"group '{group}' does not exist; see which do with: odradek groups list" in gone.stderr


@pytest.mark.parametrize("an_hour", ["1h", "60 minutes", "PT1H"])
def test_a_group_is_moved_back_by_a_duration(
    odradek: Run, bootstrap: str, new_topic: TopicMaker, group: str, an_hour: str
) -> None:
    name = new_topic(partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for minutes in (90, 61, 59, 30):
        producer.produce(name, b"old", timestamp=time.time_ns() // 1_000_000 - minutes * 60_000)
    assert producer.flush(30) == 0
    (moved,) = told(
        odradek("groups", "reset", group, "--topic", name, "--by-duration", an_hour, "--execute", "--format", "json")
    )
    assert (moved["new_offset"], moved["new_lag"]) == (2, 2)


def test_a_group_with_members_is_not_touched(odradek: Run, bootstrap: str, topic: str, group: str) -> None:
    consumer = consumer_of(bootstrap, group, **{"client.id": "reader", "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.1)
        (member,) = told(odradek("groups", "members", group, "--format", "json"))
        assert (member["client_id"], member["assignment"]) == ("reader", [f"{topic}-0", f"{topic}-1"])
        refused = odradek("groups", "reset", group, "--topic", topic, "--to-earliest", "--execute")
        assert refused.returncode == 1
        assert "with 1 member; stop them first" in refused.stderr
        assert odradek("groups", "delete", group).returncode == 1
    finally:
        consumer.close()
    assert offsets_of(odradek, group)[0][0] == 3


@pytest.mark.parametrize(
    "wrong",
    [
        ("groups", "reset", "g", "--topic", "t"),
        ("groups", "reset", "g", "--to-earliest"),
        ("groups", "reset", "g", "--topic", "t", "--to-earliest", "--to-latest"),
        ("groups", "reset", "g", "--topic", "t", "--to-datetime", "soon"),
        ("groups", "reset", "g", "--topic", "t", "--by-duration", "an hour"),
        ("groups", "reset", "g", "--topic", "t", "--to-earliest", "--dry-run", "--execute"),
        ("groups", "describe"),
        ("configs", "describe"),
        ("configs", "describe", "brokers", "x"),
        ("configs", "alter", "topics", "t"),
        ("configs", "alter", "topics", "--set", "a=1"),
        ("configs", "alter", "topics", "t", "--set", "a"),
        ("quotas", "alter", "--set", "producer_byte_rate=1"),
        ("quotas", "alter", "--client", "c", "--set", "producer_byte_rate=many"),
        ("log-dirs", "--broker", "99"),
    ],
)
def test_wrong_usage_is_one_line_and_changes_nothing(odradek: Run, wrong: tuple[str, ...]) -> None:
    result = odradek(*wrong)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_settings_of_a_topic(odradek: Run, topic: str) -> None:
    def settings() -> dict[str, str]:
        rows = told(odradek("configs", "describe", "topics", topic, "--format", "json"))
        return {row["name"]: row["value"] for row in rows}

    assert settings() == {}
    given = ("--set", "retention.ms=1000", "--set", "cleanup.policy=compact,delete")
    change = ("configs", "alter", "topics", topic, *given)
    assert odradek(*change, "--dry-run").returncode == 0
    assert settings() == {}
    assert odradek(*change).returncode == 0
    assert settings() == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    kafkas_way = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "segment.ms=[5000]")
    assert odradek("configs", *kafkas_way, "--delete-config", "retention.ms,cleanup.policy").returncode == 0
    assert settings() == {"segment.ms": "5000"}
    half_wrong = odradek("configs", "alter", "topics", topic, "--set", "retention.ms=7", "--set", "no.such=1")
    assert (half_wrong.returncode, half_wrong.stderr.count("\n")) == (1, 1)
    assert settings() == {"segment.ms": "5000"}
    everything = told(odradek("configs", "describe", "topics", topic, "--all", "--format", "json"))
    assert {"retention.ms", "min.insync.replicas"} <= {row["name"] for row in everything}


def test_disks_and_health(odradek: Run, topic: str) -> None:
    (log_dir,) = told(odradek("log-dirs", "--format", "json"))
    assert (log_dir["broker"], log_dir["state"]) == (0, "online")
    replicas = told(odradek("log-dirs", "--topic", topic, "--format", "json"))
    assert {row["partition"] for row in replicas} == {0, 1}
    assert all(row["bytes"] > 0 for row in replicas)
    health = told(odradek("cluster", "--check", "--format", "json"))
    assert (health["controller"], health["live_brokers"], health["offline"]) == (0, [0], [])
    page = odradek("cluster").stdout
    assert "healthy" in page
    assert len(page.splitlines()) <= 24


def test_json_is_json(odradek: Run) -> None:
    for command in (("groups", "list"), ("brokers",), ("offsets",), ("topics", "list")):
        result = odradek(*command, "--format", "json")
        assert isinstance(json.loads(result.stdout), list)


def test_consuming_as_a_member_beside_another_client(odradek: Run, bootstrap: str, topic: str, group: str) -> None:
    other = consumer_of(bootstrap, group, **{"enable.auto.commit": False, "heartbeat.interval.ms": 500})

    def await_partitions(count: int) -> None:
        while len(other.assignment()) != count:
            other.poll(0.1)

    other.subscribe([topic])
    await_partitions(2)
    command = [sys.executable, "-m", "odradek", "consume", "--topic", topic, "--group", group, "-b", bootstrap]
    with subprocess.Popen(
        [*command, "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ours:
        try:
            await_partitions(1)
            assert ours.stdout is not None
            read = [int(ours.stdout.readline())]
            while read[-1] != 4:  # the last of its partition
                read.append(int(ours.stdout.readline()))
            ours.send_signal(signal.SIGINT)
            assert ours.wait(60) == 0
        finally:
            ours.kill()
    await_partitions(2)  # it left, so nobody waits for its session to end
    other.close()
    committed = {partition: offset for partition, (offset, _) in offsets_of(odradek, group).items()}
    assert read in ([3, 4], [0, 1, 2, 3, 4])  # from where the group stood, or from the beginning
    # interrupted while it wrote its last line, it may stand before it: at least once
    assert committed[0 if read == [3, 4] else 1] in (4, 5)
