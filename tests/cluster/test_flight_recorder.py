"""The flight recorder of brokers whose disks fail and whose controller dies: nothing is missing, and nobody is blamed
for what another caused."""

import json
from pathlib import Path
from typing import Any

from waiting import eventually

from .own_broker import STEADY, run_odradek_here
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .test_cluster import Writer

CHECKED_OFTEN = {"replica_high_watermark_checkpoint_interval_ms": "200"}  # so that a missing directory is noticed soon


def recorder(verb: str, *arguments: object) -> Any:
    ended = run_odradek_here("recorder", verb, *arguments, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def why(data: Path, *more: Path) -> list[dict[str, Any]]:
    """The changes of the leader of orders-0."""
    found: list[dict[str, Any]] = recorder("why", "orders-0", "--leaders", *_places(data, *more))
    return found


def know_leader(leader: int, data: Path, *more: Path) -> bool:
    """Return whether it is the last that the journals know. They are written a moment after ZooKeeper: until then one
    that was begun in another directory has nothing."""
    ended = run_odradek_here("recorder", "why", "orders-0", "--leaders", *_places(data, *more), "--format", "json")
    if ended.returncode != 0:
        assert "the journals have nothing of partition orders-0" in ended.stderr
        return False
    return bool(json.loads(ended.stdout)[-1]["leader"] == leader)


def _places(*places: Path) -> list[object]:
    return [option for place in places for option in ("--data", place)]


def led_by(cluster: OwnCluster, leader: int, data: Path, *more: Path) -> list[dict[str, Any]]:
    """The same, when the journals know of the leader that ZooKeeper names."""
    assert cluster.leader("orders") == leader
    eventually(lambda: know_leader(leader, data, *more), PATIENCE_S)
    return why(data, *more)


def gaps(*places: Path) -> list[str]:
    """Lines of journals, as they are printed."""
    return [entry.get("text", "") for entry in recorder("show", "--kind", "gap", *_places(*places))]


def test_the_journal_survives_the_directory_that_it_lies_in(tmp_path: Path, zookeeper: str) -> None:
    """The controller leads a partition, which lies in the same directory as its journal. That directory fails."""
    data, away = tmp_path / tmp_path.name, tmp_path / "away"
    with running_cluster(data, zookeeper, brokers=2, disks=2, **STEADY, **CHECKED_OFTEN) as cluster:
        controller = cluster.controller()
        other = 1 - controller
        cluster.create_topic("orders", (controller, other))
        writer = Writer(cluster, "orders")
        writer.write(10)
        cluster.await_isr("orders", (0, 1))
        disk = cluster.brokers[controller].partition_dir("orders").parent
        assert list(disk.glob("recorder-*.jsonl")), "the journal lies in the first log directory"
        eventually(lambda: know_leader(controller, data), PATIENCE_S)

        disk.rename(away)
        writer.write(10)  # the next checkpoint finds no directory
        assert cluster.await_leader_other_than(controller, "orders") == other
        reason = f"log directory {disk} of broker {controller} failed: "
        (failed,) = led_by(cluster, other, data)
        assert failed["reason"].startswith(reason)
        assert (failed["leader_before"], failed["cause"].partition(":")[0]) == (controller, "LeaderAndIsrAnswered")
        assert [gap["text"] for gap in failed["gaps"]] == [f"earlier entries are in {disk}"]
        assert cluster.controller() == controller, "its other directory is well"

        created, failed = led_by(cluster, other, data, away)
        assert created["leader"] == controller
        assert failed["reason"].startswith(reason)
        assert (failed["gaps"], gaps(data, away)) == ([], []), "with both directories nothing is missing"

        away.rename(disk)
        cluster.kill_with_session(controller, other)
        for broker in (other, controller):
            cluster.restart(broker)
        writer.write(10)
        assert led_by(cluster, cluster.leader("orders"), data)[1]["reason"].startswith(reason), (
            "an election at a later restart is not the cause"
        )
        assert gaps(data) == []


def test_a_broker_that_starts_without_a_directory_says_what_may_be_missing(tmp_path: Path, zookeeper: str) -> None:
    data = tmp_path / tmp_path.name
    with running_cluster(data, zookeeper, brokers=1, disks=2, **STEADY) as cluster:
        cluster.create_topic("orders", (0,))
        eventually(lambda: know_leader(0, data), PATIENCE_S)
        broker = cluster.brokers[0]
        disk = broker.log_dirs[0]
        broker.stop()
        disk.rename(tmp_path / "away")
        disk.write_text("no directory")
        cluster.restart(0)
        eventually(lambda: gaps(data) == [f"earlier entries may be in {disk}"], PATIENCE_S)
        entries = recorder("show", "--kind", "logdir", "--data", data)
        assert [(entry["what"], entry["directory"]) for entry in entries] == [("LogDirFailed", str(disk))]


def test_a_dead_controller_is_the_reason_for_what_it_led(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper, **STEADY) as cluster:
        controller = cluster.controller()
        follower = (controller + 1) % 3
        cluster.create_topic("orders", (controller, follower))
        cluster.await_isr("orders", (controller, follower))
        eventually(lambda: know_leader(controller, tmp_path), PATIENCE_S)
        epoch = why(tmp_path)[-1]["controller_epoch"]
        cluster.kill_with_session(controller)
        assert cluster.await_leader_other_than(controller, "orders") == follower
        *_, died = led_by(cluster, follower, tmp_path)
        assert died["cause"] == "ControllerElected"
        assert died["reason"] == (
            f"broker {controller}, the controller of epoch {epoch}, is gone, without a stop in its journal"
        )
        assert died["gaps"] == []


def test_a_stopped_controller_is_no_dead_one(tmp_path: Path, zookeeper: str) -> None:
    """It hands over what it leads before it stops; what it follows shrinks with it."""
    with running_cluster(tmp_path, zookeeper, **STEADY) as cluster:
        controller = cluster.controller()
        follower = (controller + 1) % 3
        cluster.create_topic("orders", (controller, follower))
        cluster.await_isr("orders", (controller, follower))
        cluster.brokers[controller].stop()
        assert cluster.await_leader_other_than(controller, "orders") == follower
        *_, handed_over = led_by(cluster, follower, tmp_path)
        assert handed_over["reason"] == f"ControlledShutdownAsked: broker {controller} wants to leave"
