"""The story of a broker's death, from entries as brokers record them."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.readings import history
from odradek.apps.console.readings.group_changes import changed
from odradek.apps.console.readings.history import HistoryReader, HistoryState, Story, moment_at
from odradek.apps.console.readings.scrape import Counters, parse
from odradek.apps.console.views.history import brokers_html, partitions_html
from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.journals import file_name
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import Group, Member
from odradek.model.topology import TopicPartition

BOTH = ({"id": 0}, {"id": 1})


def _state(seq: int, cause: int, leader: int, epoch: int, isr: tuple[int, ...]) -> Entry:
    return Entry(seq, 0, seq, Kind.WRITE, "PartitionState", cause, 1, topic="orders", partition=0, leader=leader,
                 leader_epoch=epoch, isr=isr, version=epoch)  # fmt: skip


STORY = [
    Entry(1, 0, 1, Kind.TERM, "Elected", None, 1),
    Entry(2, 0, 2, Kind.EVENT, "ControllerElected", None, 1),
    Entry(3, 0, 3, Kind.READ, "Brokers", 2, 1, members=BOTH),
    Entry(4, 0, 4, Kind.READ, "Assignment", 2, 1, topic="orders", partition=0, replicas=(1, 0)),
    _state(5, 2, 1, 0, (1, 0)),
    Entry(6, 0, 6, Kind.EVENT, "BrokersChanged", None, 1),
    Entry(7, 0, 7, Kind.READ, "Brokers", 6, 1, members=BOTH[:1]),
    Entry(8, 0, 8, Kind.MOVE, "Moved", 6, 1, text="partition orders-0  ONLINE → OFFLINE", topic="orders", partition=0),
    _state(9, 6, 0, 1, (0,)),
    Entry(10, 0, 10, Kind.SEND, "LeaderAndIsr", 6, 1, peer=0, partitions=("orders-0",), count=1),
]


def _told(entries: list[Entry]) -> HistoryState:
    story = Story()
    story.take(entries)
    return story.state()


@pytest.mark.parametrize(("time_ms", "place"), [(0, 0), (1, 0), (5, 1), (6, 2), (99, 2)])
def test_a_time_in_an_address_is_the_last_moment_until_then(time_ms: int, place: int) -> None:
    moments = _told(STORY).moments
    assert [item.time_ms for item in moments] == [1, 2, 6]
    assert moment_at(moments, time_ms) == place


def test_each_event_with_what_came_of_it_and_what_was_done() -> None:
    told = _told(STORY).moments
    assert told[-1].title == "Broker 1 left"
    assert told[-1].effects == (
        "broker 1 left",
        "orders-0: leader 1 → broker 0, epoch 1",
        "orders-0: ISR shrank [1, 0] → [0]",
    )
    assert told[-1].tone == "bad"
    assert told[-1].touched == {"orders-0"}
    assert told[-1].chain == (
        "partition orders-0  ONLINE → OFFLINE",
        "wrote PartitionState of orders-0 if version is 0",
        "sent to broker 0: LeaderAndIsr about orders-0",
    )


def test_the_cluster_is_drawn_as_it_was() -> None:
    state = _told(STORY)
    before, after = state.moments[-2:]
    for item, leads, gone in ((before, 1, 0), (after, 0, 1)):
        picture = state.picture_after(item.place)
        assert picture == Picture.at(STORY[: item.place + 1])
        html = brokers_html(picture, [0, 1])
        assert f'data-broker="1" data-leads="{leads}"' in html
        assert html.count("down") == gone
    assert "changed just now" in partitions_html(Picture.at(STORY), [0, 1], after, "", 1)


def test_a_story_that_grows_is_read_from_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_BETWEEN_PICTURES", 3)
    journal, other = tmp_path / file_name(0, 1), tmp_path / file_name(1, 1)
    journal.write_text("".join(entry.as_line() for entry in STORY[:5]))
    reader = HistoryReader([tmp_path])
    client = ClusterClient("127.0.0.1:1")
    state = reader.read(client, None)
    assert reader.read(client, state) is state
    torn = STORY[5].as_line()
    with journal.open("a") as lines:
        lines.write(torn[:20])
    assert reader.read(client, state) is state
    with journal.open("a") as lines:
        lines.write(torn[20:] + "".join(entry.as_line() for entry in STORY[6:]))
    state = reader.read(client, state)
    assert state == _told(STORY)
    for place in range(len(STORY)):
        assert state.picture_after(place) == Picture.at(STORY[: place + 1])
    other.write_text(Entry(4, 1, 1, Kind.LIFE, "Started").as_line())  # late, by its clock
    assert [entry.broker for entry in reader.read(client, state).entries][2:5] == [0, 1, 0]


def test_what_is_missing_is_a_moment(tmp_path: Path) -> None:
    (tmp_path / file_name(0, 1)).write_text("".join(entry.as_line() for entry in (*STORY[:5], *STORY[8:])))
    state = HistoryReader([tmp_path]).read(ClusterClient("127.0.0.1:1"), None)
    (gap,) = [item for item in state.moments if item.title == "Entries are missing"]
    assert gap.effects == ("journal of broker 0: 3 entries are missing (0.0 s until here)",)
    assert gap.tone == "bad"


def test_gaps_that_are_filled_go(tmp_path: Path) -> None:
    """The last file of a journal is read first, those before it with the next look."""
    parts = (STORY[:4], STORY[4:7], STORY[7:])
    for entries in parts:
        (tmp_path / file_name(0, entries[0].seq)).write_text("".join(entry.as_line() for entry in entries))
    reader = HistoryReader([tmp_path])
    client = ClusterClient("127.0.0.1:1")
    state = reader.read(client, reader.read(client, None))
    assert state == _told(STORY[4:])


def test_a_failed_log_directory_and_a_controllers_death_are_moments() -> None:
    failed = Entry(11, 1, 1, Kind.LOG_DIR, "LogDirFailed", directory="/disk-a", text="Input/output error")
    elected = [
        Entry(12, 1, 2, Kind.TERM, "Elected", None, 2),
        Entry(13, 1, 3, Kind.EVENT, "ControllerElected", None, 2),
        Entry(14, 1, 4, Kind.READ, "Brokers", 3, 2, members=BOTH[1:]),
    ]
    told = _told([*STORY[:5], failed, *elected]).moments
    assert told[-1].effects == ("broker 0 left: it was the controller",)
    (directory,) = [item for item in told if item.title == "A log directory failed"]
    assert directory.effects == ("broker 1: log directory /disk-a failed: Input/output error",)
    assert directory.tone == "bad"


def test_a_group_is_told_of_by_what_changed_between_two_looks() -> None:
    tp = TopicPartition("orders", 0)
    karl, ottla = Member("m1", None, "karl", "/10.0.0.1", (tp,)), Member("m2", None, "ottla", "/10.0.0.2", (tp,))
    before = Group("g", "Stable", "range", 0, ("h", 1), (karl,))
    now = Group("g", "Stable", "range", 2, ("h", 1), (ottla,))
    assert [seen.what for seen in changed(before, now, 5)] == [
        "karl/10.0.0.1 left",
        "ottla/10.0.0.2 joined",
        "its coordinator moved from broker 0 to 2",
        "1 partitions changed hands, 0 are newly read",
    ]
    assert changed(None, now, 5) == []
    crowd = tuple(Member(f"m{number}", None, "c", "/h", ()) for number in range(1_000))
    assert [seen.what for seen in changed(replace(now, members=()), replace(now, members=crowd), 5)] == [
        "1,000 members joined"
    ]


def test_only_the_brokers_own_counters_are_taken_from_its_metrics() -> None:
    name = "kafka_server_brokertopicmetrics_"
    text = f'{name}bytesin_total 7.0\n{name}bytesin_total{{topic="a"}} 3.0\n{name}bytesout_total 9.0\n'
    assert parse(text) == Counters(7.0, 9.0)
    assert parse("nothing of ours 1\n") is None
