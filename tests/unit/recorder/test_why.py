"""Who led at that moment, and why it changed: pictures and chains made from entries."""

from typing import Any

from odradek.model.topology import TopicPartition
from odradek.recorder.entry import Entry, Kind
from odradek.recorder.picture import Picture
from odradek.recorder.why import changes_of

ORDERS = TopicPartition("orders", 0)


class Story:
    """Entries of one controller after the other, with seconds between them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.broker = self.epoch = 0

    def tell(self, kind: Kind, what: str, **facts: Any) -> Entry:
        seq = len(self.entries) + 1
        entry = Entry(1_000 * seq, self.broker, seq, kind, what, controller_epoch=self.epoch, **facts)
        self.entries.append(entry)
        return entry

    def elected(self, broker: int) -> Entry:
        self.broker, self.epoch = broker, self.epoch + 1
        self.tell(Kind.TENURE, "Elected")
        return self.tell(Kind.EVENT, "ControllerElected")

    def state(self, kind: Kind, leader: int, epoch: int, *isr: int, cause: Entry, topic: str = "orders") -> Entry:
        facts = {"topic": topic, "partition": 0, "leader": leader, "leader_epoch": epoch, "isr": isr}
        return self.tell(kind, "PartitionState", cause=cause.seq, **facts)


def two_tenures() -> tuple[Story, dict[str, Entry]]:
    story = Story()
    first = story.elected(0)
    read = story.state(Kind.READ, 0, 0, 0, 1, 2, cause=first)
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=first, topic="gone")
    story.tell(Kind.TENURE, "TookOver", cause=first.seq)
    second = story.elected(1)
    story.tell(Kind.READ, "Brokers", cause=second.seq, members=({"id": 1}, {"id": 2}))
    story.state(Kind.READ, 0, 0, 0, 1, 2, cause=second)
    story.tell(Kind.MOVE, "Moved", cause=second.seq, topic="orders", partition=0, text="ONLINE → OFFLINE")
    story.tell(Kind.MOVE, "Moved", cause=second.seq, topic="other", partition=0, text="not ours")
    won = story.state(Kind.WRITE, 1, 1, 1, 2, cause=second)
    story.tell(Kind.SEND, "LeaderAndIsr", cause=second.seq, peer=2, partitions=("orders-0",), count=1)
    story.tell(Kind.SEND, "LeaderAndIsr", cause=second.seq, peer=2, partitions=("other-0",), count=1)
    story.tell(Kind.TENURE, "TookOver", cause=second.seq)
    return story, {"first": first, "read": read, "second": second, "won": won}


def test_each_change_comes_with_its_cause_and_what_came_of_it() -> None:
    story, told = two_tenures()
    begun, taken_over = changes_of(ORDERS, story.entries)
    assert (begun.before, begun.after.leader, begun.cause) == (None, 0, told["first"])
    assert taken_over.before is not None
    assert (taken_over.before.leader, taken_over.after.leader) == (0, 1)
    assert taken_over.cause == told["second"]
    assert [entry.kind for entry in taken_over.chain] == [Kind.MOVE, Kind.SEND, Kind.TENURE]
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
