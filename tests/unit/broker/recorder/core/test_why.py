"""The leader at a moment, and the cause of its change: pictures and chains made from entries."""

from typing import Any

import pytest

from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.core.gaps import GapFinder
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.core.why import Change, changes_of, gaps_since
from odradek.broker.recorder.journals import merged
from odradek.model.topology import TopicPartition

ORDERS = TopicPartition("orders", 0)


class Story:
    """Entries of one controller after the other, with seconds between them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.broker = self.epoch = 0

    def tell(self, kind: Kind, what: str, **facts: Any) -> Entry:
        return self._add(kind, what, broker=self.broker, controller_epoch=self.epoch, **facts)

    def of_itself(self, broker: int, kind: Kind, what: str, **facts: Any) -> Entry:
        """Entries of a broker about itself, whichever broker is controller."""
        return self._add(kind, what, broker=broker, **facts)

    def _add(self, kind: Kind, what: str, **facts: Any) -> Entry:
        seq = len(self.entries) + 1
        entry = Entry(time_ms=1_000 * seq, seq=seq, kind=kind, what=what, **facts)
        self.entries.append(entry)
        return entry

    def brokers(self, *ids: int, cause: Entry, **epochs: int) -> None:
        members = tuple({"id": broker, "epoch": epochs.get(f"epoch_of_{broker}", 1)} for broker in ids)
        self.tell(Kind.READ, "Brokers", cause=cause.seq, members=members)

    def elected(self, broker: int) -> Entry:
        self.broker, self.epoch = broker, self.epoch + 1
        self.tell(Kind.TERM, "Elected")
        return self.tell(Kind.EVENT, "ControllerElected")

    def state(self, kind: Kind, leader: int, epoch: int, *isr: int, cause: Entry, topic: str = "orders") -> Entry:
        facts = {"topic": topic, "partition": 0, "leader": leader, "leader_epoch": epoch, "isr": isr}
        return self.tell(kind, "PartitionState", cause=cause.seq, **facts)


def two_tenures() -> tuple[Story, dict[str, Entry]]:
    story = Story()
    first = story.elected(0)
    read = story.state(Kind.READ, 0, 0, 0, 1, 2, cause=first)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=first, topic="gone")
    story.tell(Kind.TERM, "TookOver", cause=first.seq)
    second = story.elected(1)
    story.tell(Kind.READ, "Brokers", cause=second.seq, members=({"id": 1}, {"id": 2}))
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=second)
    story.tell(Kind.MOVE, "Moved", cause=second.seq, topic="orders", partition=0, text="ONLINE → OFFLINE")
    story.tell(Kind.MOVE, "Moved", cause=second.seq, topic="other", partition=0, text="not ours")
    won = story.state(Kind.WRITE, 1, 1, 1, 2, cause=second)
    story.tell(Kind.SEND, "LeaderAndIsr", cause=second.seq, peer=2, partitions=("orders-0",), count=1)
    story.tell(Kind.SEND, "LeaderAndIsr", cause=second.seq, peer=2, partitions=("other-0",), count=1)
    story.tell(Kind.TERM, "TookOver", cause=second.seq)
    return story, {"first": first, "read": read, "second": second, "won": won}


def test_each_change_comes_with_its_cause_and_what_came_of_it() -> None:
    story, told = two_tenures()
    begun, taken_over = changes_of(ORDERS, story.entries)
    assert (begun.before, begun.after.leader, begun.cause) == (None, 0, told["first"])
    assert taken_over.before is not None
    assert (taken_over.before.leader, taken_over.after.leader) == (0, 1)
    assert taken_over.cause == told["second"]
    assert [entry.kind for entry in taken_over.chain] == [Kind.MOVE, Kind.SEND, Kind.TERM]
    assert taken_over.is_of_leader


def test_a_picture_of_any_moment() -> None:
    story, told = two_tenures()
    before = Picture.at(story.entries, told["won"].time_ms - 1)
    after = Picture.at(story.entries, told["won"].time_ms)
    assert (before.controller, before.controller_epoch, before.partitions[ORDERS].leader) == (1, 2, 0)
    assert (after.partitions[ORDERS].leader, after.partitions[ORDERS].since_ms) == (1, told["won"].time_ms)
    assert sorted(after.brokers) == [1, 2]


def test_what_the_next_controller_does_not_find_is_gone() -> None:
    story, _ = two_tenures()
    assert list(Picture.at(story.entries).partitions) == [ORDERS]


def test_a_deleted_topic_is_gone() -> None:
    story, told = two_tenures()
    story.tell(Kind.WRITE, "TopicDeleted", cause=told["second"].seq, topic="orders")
    assert Picture.at(story.entries).partitions == {}


def test_a_cause_that_is_lost_is_said_to_be() -> None:
    story, told = two_tenures()
    remaining = [entry for entry in story.entries if entry is not told["second"]]
    assert changes_of(ORDERS, remaining)[-1].cause is None


# --- reasons -----------------------------------------------------------------------------------------------------


def ruled_by_0(story: Story) -> Entry:
    """Three brokers, and broker 0 controls them and leads."""
    elected = story.elected(0)
    story.brokers(0, 1, 2, cause=elected)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=elected)
    story.tell(Kind.TERM, "TookOver", cause=elected.seq)
    return elected


def ruled_by_1(story: Story, **epochs: int) -> Change:
    """The next controller finds broker 0 gone, or back, and lets another lead."""
    elected = story.elected(1)
    story.brokers(*((0, 1, 2) if epochs else (1, 2)), cause=elected, **epochs)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=elected)
    story.state(Kind.WRITE, 1, 1, 1, 2, cause=elected)
    return changes_of(ORDERS, story.entries)[-1]


def test_a_controller_that_dies_is_named() -> None:
    story = Story()
    story.of_itself(0, Kind.LIFE, "Started")
    ruled_by_0(story)
    change = ruled_by_1(story)
    assert change.reason == "broker 0, the controller of epoch 1, is gone, without a stop in its journal"
    assert (change.cause and change.cause.what, change.was_found, change.gaps) == ("ControllerElected", False, ())


def test_a_controller_without_a_journal_is_named_too() -> None:
    """It may be Apache Kafka's; broker 2 ruled before it, and knows who lived."""
    story = Story()
    elected = story.elected(2)
    story.brokers(0, 1, 2, cause=elected)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=elected)
    story.epoch += 1
    assert ruled_by_1(story).reason == "broker 0 is gone"


@pytest.mark.parametrize(
    ("what", "text", "reason"),
    [
        ("Resigned", "its session with ZooKeeper expired", "is gone: its session with ZooKeeper expired"),
        ("Resigned", "the broker stops", "is gone: the broker stops"),
        ("Stopped", None, "stopped"),
        ("SESSION_LOST", "the session expired", "lost its session with ZooKeeper"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_how_it_ended_is_its_own_account(what: str, text: str | None, reason: str, is_late: bool) -> None:
    """A record may be written only after another controller has acted."""
    story = Story()
    ruled_by_0(story)
    end = {"text": text, "controller_epoch": 1 if what == "Resigned" else None}
    if not is_late:
        story.of_itself(0, Kind.LIFE, what, **end)
    ruled_by_1(story)
    if is_late:
        story.of_itself(0, Kind.LIFE, what, **end)
    assert changes_of(ORDERS, story.entries)[-1].reason == f"broker 0, the controller of epoch 1, {reason}"


def test_a_controller_that_resigned_long_ago_did_not_die_of_it() -> None:
    story = Story()
    ruled_by_0(story)
    story.tell(Kind.TERM, "Resigned", text="broker 1 is controller")
    elected = story.elected(1)
    story.brokers(0, 1, 2, cause=elected)
    event = story.tell(Kind.EVENT, "BrokersChanged")
    story.brokers(1, 2, cause=event)
    story.state(Kind.WRITE, 1, 1, 1, 2, cause=event)
    assert changes_of(ORDERS, story.entries)[-1].reason == "broker 0 is gone"
    story.of_itself(0, Kind.LIFE, "Started")
    assert changes_of(ORDERS, story.entries)[-1].reason == "broker 0 is gone, without a stop in its journal"


def test_a_controller_that_is_back_at_once_is_named() -> None:
    story = Story()
    ruled_by_0(story)
    change = ruled_by_1(story, epoch_of_0=7)
    assert change.reason == "broker 0, the controller of epoch 1, is back with another session"


def test_a_broker_that_is_no_controller_is_named() -> None:
    story = Story()
    elected = story.elected(1)
    story.brokers(0, 1, 2, cause=elected)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=elected)
    event = story.tell(Kind.EVENT, "BrokersChanged")
    story.brokers(1, 2, cause=event)
    story.state(Kind.WRITE, 1, 1, 1, 2, cause=event)
    came = story.tell(Kind.EVENT, "BrokersChanged")
    story.brokers(1, cause=came)
    story.state(Kind.WRITE, 1, 1, 1, cause=came)
    assert [change.reason for change in changes_of(ORDERS, story.entries)] == [
        "the journals begin with it: controller 1 read this state when it was elected",
        "broker 0 is gone",
        "broker 2 is gone",
    ]


def answered(story: Story, broker: int) -> None:
    event = story.tell(Kind.EVENT, "LeaderAndIsrAnswered", peer=broker, text="orders-0 KAFKA_STORAGE_ERROR")
    story.state(Kind.WRITE, 1, 1, 1, 2, cause=event)


def test_a_failed_log_directory_is_named() -> None:
    story = Story()
    ruled_by_0(story)
    failure = {"directory": "/disk-a", "text": "Input/output error", "count": 1}
    story.of_itself(0, Kind.LOG_DIR, "LogDirFailed", partitions=("orders-0",), **failure)
    story.of_itself(0, Kind.LOG_DIR, "LogDirFailed", partitions=("other-0",), **failure | {"directory": "/disk-b"})
    answered(story, 0)
    assert (
        changes_of(ORDERS, story.entries)[-1].reason == "log directory /disk-a of broker 0 failed: Input/output error"
    )


def test_a_failed_log_directory_is_named_by_a_clock_that_is_ahead() -> None:
    story = Story()
    ruled_by_0(story)
    answered(story, 0)
    story.of_itself(0, Kind.LOG_DIR, "LogDirFailed", directory="/disk-a", text="no disk", partitions=("orders-0",))
    assert changes_of(ORDERS, story.entries)[-1].reason == "log directory /disk-a of broker 0 failed: no disk"


def test_a_broker_that_goes_with_its_directory_is_named_with_it() -> None:
    story = Story()
    ruled_by_0(story)
    story.of_itself(0, Kind.LOG_DIR, "LogDirFailed", directory="/disk-a", text="no disk", partitions=("orders-0",))
    story.of_itself(0, Kind.LIFE, "Stopped")
    gone = "broker 0, the controller of epoch 1, is gone"
    assert ruled_by_1(story).reason == f"{gone}: its log directory /disk-a failed: no disk"


def test_a_log_directory_that_nobody_named_has_failed_all_the_same() -> None:
    story = Story()
    ruled_by_0(story)
    answered(story, 0)
    assert changes_of(ORDERS, story.entries)[-1].reason == "a log directory of broker 0 failed"


def test_a_change_that_a_controller_only_finds_is_not_its_own() -> None:
    """Epoch 2 is missing: its controller moved the leader, and nobody has its journal."""
    story = Story()
    ruled_by_0(story)
    story.of_itself(0, Kind.LOG_DIR, "LogDirFailed", directory="/disk-a", partitions=("orders-0",), count=1)
    story.epoch += 1
    elected = story.elected(1)
    story.brokers(0, 1, 2, cause=elected)
    story.state(Kind.READ, 1, 1, 1, 2, cause=elected)
    finder = GapFinder()
    for entry in story.entries:
        finder.note(entry)
    entries = merged([*story.entries, *finder.gaps()])
    found = changes_of(ORDERS, entries)[-1]
    assert (found.was_found, found.cause) == (True, None)
    assert found.reason == "not recorded: controller 1 read this state when it was elected"
    assert [entry.what for entry in found.chain] == ["LogDirFailed"]
    assert "no journal of the controller of epoch 2 is given" in [gap.text for gap in found.gaps]


def test_gaps_after_the_last_change_are_known() -> None:
    story = Story()
    ruled_by_0(story)
    assert gaps_since(ORDERS, story.entries) == []
    gap = story.of_itself(0, Kind.GAP, "NotWritten", count=3)
    story.of_itself(5, Kind.GAP, "NotWritten", count=3)  # never was controller
    assert gaps_since(ORDERS, story.entries) == [gap]
