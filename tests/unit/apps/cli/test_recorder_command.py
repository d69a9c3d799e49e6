"""`odradek recorder` over journals in files: what it tells, and what wrong questions get."""

import json
from pathlib import Path

import pytest

from odradek.apps.cli.main import run
from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.journals import file_name

START_MS = 1_794_881_832_000  # 2026-11-17T02:17:12


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Broker 1 rules and sees broker 0 die; broker 2 has only started."""
    state = {"topic": "orders", "partition": 2}
    ruled = [
        Entry(START_MS, 1, 1, Kind.TERM, "Elected", controller_epoch=1),
        Entry(START_MS, 1, 2, Kind.EVENT, "ControllerElected", controller_epoch=1),
        Entry(START_MS, 1, 3, Kind.READ, "PartitionState", 2, 1, **state, leader=0, leader_epoch=0, isr=(0, 2)),
        Entry(START_MS + 5_000, 1, 4, Kind.EVENT, "BrokersChanged", controller_epoch=1),
        Entry(START_MS + 5_000, 1, 5, Kind.REPORT, "info", 4, 1, text="brokers went: [0]"),
        Entry(START_MS + 5_001, 1, 6, Kind.WRITE, "PartitionState", 4, 1, **state, leader=2, leader_epoch=1, isr=(2,)),
        Entry(START_MS + 5_002, 1, 7, Kind.SEND, "LeaderAndIsr", 4, 1, peer=2, partitions=("orders-2",), count=1),
    ]
    for broker, entries in ((1, ruled), (2, [Entry(START_MS + 1, 2, 1, Kind.LIFE, "Started")])):
        place = tmp_path / f"broker-{broker}" / "logs"
        place.mkdir(parents=True)
        (place / file_name(broker, 1)).write_text("".join(entry.as_line() for entry in entries) + '{"torn')
    return str(tmp_path)


def test_why_tells_the_chain(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "why", "orders-2", "--data", data]) == 0
    told = capsys.readouterr().out
    assert "leader 0 → 2  epoch 0 → 1  isr 0,2 → 2" in told
    assert "cause     BrokersChanged  (controller 1, epoch 1, entry 4)" in told
    assert "report    brokers went: [0]" in told
    assert "sent      broker 2: LeaderAndIsr of orders-2" in told
    assert told.rstrip().endswith("orders-2: broker 2 leads it, leader epoch 1, in sync 2")


@pytest.mark.parametrize("at", ["2026-11-17T02:17:15", "2026-11-17T03:17:15+01:00", str(START_MS + 3_000)])
def test_who_led_at_that_moment(data: str, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "replay", "--at", at, "--data", data, "--format", "json"]) == 0
    picture = json.loads(capsys.readouterr().out)
    assert (picture["controller"], [partition["leader"] for partition in picture["partitions"]]) == (1, [0])


def test_show_tells_one_story_without_its_small_talk(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "show", "--data", data, "--format", "csv", "--broker", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["recorder", "show", "--data", data]) == 0
    shown = capsys.readouterr().out
    assert "Started" in shown
    assert shown.count("PartitionState") == 1  # the write; reads are shown with --all
    assert run(["recorder", "show", "--data", data, "--format", "json"]) == 0
    assert [entry["broker"] for entry in json.loads(capsys.readouterr().out)] == [1, 1, 1, 2, 1, 1, 1, 1]


@pytest.fixture
def torn(tmp_path: Path) -> str:
    """Controller 1 could not write for a while; meanwhile broker 0 died. Controller 2 finds who leads."""
    state = {"topic": "orders", "partition": 2}
    both, left = ({"id": 0}, {"id": 2}), ({"id": 2},)
    first = [
        Entry(START_MS, 1, 1, Kind.TERM, "Elected", controller_epoch=1),
        Entry(START_MS, 1, 2, Kind.EVENT, "ControllerElected", controller_epoch=1),
        Entry(START_MS, 1, 3, Kind.READ, "Brokers", 2, 1, members=both),
        Entry(START_MS, 1, 4, Kind.READ, "PartitionState", 2, 1, **state, leader=0, leader_epoch=0, isr=(0, 2)),
        Entry(START_MS + 9_000, 1, 50, Kind.LIFE, "Stopped"),
    ]
    second = [
        Entry(START_MS + 9_001, 2, 1, Kind.TERM, "Elected", controller_epoch=2),
        Entry(START_MS + 9_001, 2, 2, Kind.EVENT, "ControllerElected", controller_epoch=2),
        Entry(START_MS + 9_002, 2, 3, Kind.READ, "Brokers", 2, 2, members=left),
        Entry(START_MS + 9_002, 2, 4, Kind.READ, "PartitionState", 2, 2, **state, leader=2, leader_epoch=1, isr=(2,)),
        Entry(START_MS + 9_003, 2, 5, Kind.TERM, "TookOver", 2, 2),
    ]
    for entries in (first, second):
        (tmp_path / file_name(entries[0].broker, 1)).write_text("".join(entry.as_line() for entry in entries))
    return str(tmp_path)


MISSING = "journal of broker 1: 45 entries are missing from 2026-11-17T02:17:12.000 until 2026-11-17T02:17:21.000"


def test_why_blames_no_election_for_a_change_in_a_gap(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "why", "orders-2", "--data", torn]) == 0
    told = capsys.readouterr().out
    assert "cause     not recorded: controller 2 read this state when it was elected" in told
    assert f"gap       {MISSING}" in told
    assert "meanwhile 2026-11-17T02:17:21.000  broker 1: stopped" in told
    assert run(["recorder", "why", "orders-2", "--data", torn, "--format", "json"]) == 0
    _, found = json.loads(capsys.readouterr().out)
    assert (found["cause"], found["leader"], [gap["count"] for gap in found["gaps"]]) == (None, 2, [45])


def test_who_led_is_uncertain_in_a_gap(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    inside = ["recorder", "replay", "--data", torn, "--at", str(START_MS + 5_000)]
    assert run(inside) == 0
    assert f"warning: this may be out of date: {MISSING}" in capsys.readouterr().err
    assert run([*inside, "--format", "json"]) == 0
    assert [gap["count"] for gap in json.loads(capsys.readouterr().out)["gaps"]] == [45]
    assert run(["recorder", "replay", "--data", torn]) == 0  # everything was read anew since
    assert "out of date" not in capsys.readouterr().err


def test_a_gap_after_the_last_change_is_told(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "why", "orders-2", "--data", torn, "--at", str(START_MS + 5_000)]) == 0
    *_, gap, end = capsys.readouterr().out.splitlines()
    assert gap == f"gap       {MISSING}"
    assert end == "orders-2: broker 0 leads it, leader epoch 0, in sync 0,2"


def test_show_has_gaps_in_their_place(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "show", "--data", torn]) == 0
    rows = capsys.readouterr().out.splitlines()
    (row,) = [place for place, line in enumerate(rows) if MISSING in line]
    assert "Stopped" in rows[row + 1]
    assert run(["recorder", "show", "--data", torn, "--kind", "gap", "--format", "json"]) == 0
    assert [(e["kind"], e["count"]) for e in json.loads(capsys.readouterr().out)] == [("gap", 45)]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["why", "orders"], 2, "'orders' is not TOPIC-PARTITION"),
        (["why", "orders-9"], 1, "nothing of partition orders-9"),
        (["replay", "--at", "yesterday"], 2, "'yesterday' is not a time"),
        (["replay", "--at", "5"], 1, "begin after that time; they begin at"),
    ],
)
def test_wrong_questions_get_one_line(
    data: str, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["recorder", *arguments, "--data", data]) == code
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_a_place_without_journals_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "show", "--data", str(tmp_path)]) == 1
    assert "no journal in" in capsys.readouterr().err


@pytest.fixture
def transacted(tmp_path: Path) -> str:
    """A transaction of `pay`, whose beginning was recorded when it timed out, and one of another id."""
    of = {"transactional_id": "pay", "producer_id": 1000}
    entries = [
        Entry(START_MS, 1, 1, Kind.TRANSACTION, "Initialized", **of, producer_epoch=0, text="InitProducerId"),
        Entry(START_MS + 9, 1, 2, Kind.TRANSACTION, "Begun", transactional_id="other"),
        Entry(START_MS + 60_002, 1, 3, Kind.LIFE, "Stopped"),
        Entry(
            START_MS + 5,
            1,
            4,
            Kind.TRANSACTION,
            "Begun",
            **of,
            producer_epoch=0,
            partitions=("orders-0",),
            count=1,
            left_out=3,
        ),
        Entry(START_MS + 60_006, 1, 5, Kind.TRANSACTION, "PrepareAbort", **of, producer_epoch=1, text="timed out"),
    ]
    (tmp_path / file_name(1, 1)).write_text("".join(entry.as_line() for entry in entries))
    return str(tmp_path)


def test_why_tells_the_story_of_a_transactional_id(transacted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "why", "txn", "pay", "--data", transacted]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [word for line in told for word in line.split() if word in ("Initialized", "Begun", "PrepareAbort")] == [
        "Initialized",
        "Begun",
        "PrepareAbort",
        "PrepareAbort",
    ]
    assert "3 transactions or events before this were not recorded" in told[1]
    assert "orders-0" in told[2]
    assert told[-1] == "pay: PrepareAbort by coordinator 1, producer 1000, epoch 1"
    assert run(["recorder", "why", "txn", "pay", "--data", transacted, "--format", "json"]) == 0
    assert [row["event"] for row in json.loads(capsys.readouterr().out)] == ["Initialized", "Begun", "PrepareAbort"]


def test_wrong_questions_about_transactions(transacted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recorder", "why", "txn", "nobody", "--data", transacted]) != 0
    assert "nothing of transactional id 'nobody'" in capsys.readouterr().err
    assert run(["recorder", "why", "orders-2", "pay", "--data", transacted]) != 0
    assert "takes no second word" in capsys.readouterr().err
