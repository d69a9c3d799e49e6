"""Rules of conversations, and recordings of real clients that they accept."""

import json
from pathlib import Path

import pytest

from odradek.base.errors import ErrorCode
from odradek.model.topology import TopicPartition
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.conversation import BatchSent, ClientKind, Conversation, closed_at_once, replay

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
RECORDINGS = Path(__file__).with_name("recordings")
GRACE_MS = 100


class Talk:
    """One partition, batches of one record."""

    def __init__(self, kind: ClientKind) -> None:
        self.conversation = Conversation(kind)

    def send(self, sequence: int, connection: int = 1, *, count: int = 1, epoch: int = 0) -> None:
        batch = {TP: BatchSent(9, epoch, sequence, count)}
        self.conversation.sent(connection, connection, sequence, batch)

    def answer(self, sequence: int, error: ErrorCode = ErrorCode.NONE, connection: int = 1) -> None:
        self.conversation.answered(connection, sequence, {TP: error})


@pytest.fixture(params=list(ClientKind), ids=lambda kind: kind.value)
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(request.param)


REFUSED = ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_five_requests_are_in_flight(talk: Talk) -> None:
    for sequence in range(5):
        talk.send(sequence)
    with pytest.raises(Violation, match="more than 5"):
        talk.send(5)


def test_a_new_batch_follows_the_one_before(talk: Talk) -> None:
    talk.send(0)
    with pytest.raises(Violation, match="1 was to be next"):
        talk.send(2)


def test_a_batch_is_cut_as_before(talk: Talk) -> None:
    talk.send(0, count=2)
    talk.answer(0, REFUSED)
    with pytest.raises(Violation, match="has 1 records"):
        talk.send(0, count=1)


def test_an_acknowledged_batch_is_sent_again_only_if_the_answer_may_be_lost(talk: Talk) -> None:
    talk.send(0)
    talk.answer(0)
    with pytest.raises(Violation, match="after it was acknowledged"):
        talk.send(0)
    talk.conversation.closed(1)
    talk.send(0, connection=2)


def test_a_new_batch_waits_for_refused_ones(talk: Talk) -> None:
    talk.send(0)
    talk.answer(0, REFUSED)
    with pytest.raises(Violation, match=r"\[0\]"):
        talk.send(1)


def test_java_sends_again_what_is_first() -> None:
    talk = Talk(ClientKind.JAVA)
    for sequence in (0, 1):
        talk.send(sequence)
    talk.answer(1, REFUSED)
    with pytest.raises(Violation, match=r"\[0\] before it are not acknowledged"):
        talk.send(1)
    talk.answer(0)
    talk.send(1)


def test_librdkafka_waits_for_all_in_flight_and_acknowledges_implicitly() -> None:
    talk = Talk(ClientKind.LIBRDKAFKA)
    for sequence in (0, 1, 2):
        talk.send(sequence)
    talk.answer(0, REFUSED)
    with pytest.raises(Violation, match="while \\[1, 2\\] are in flight"):
        talk.send(0)
    talk.answer(2)
    with pytest.raises(Violation, match="after it was acknowledged"):
        talk.send(0)


def test_librdkafka_has_one_partition_in_a_request() -> None:
    conversation = Conversation(ClientKind.LIBRDKAFKA)
    with pytest.raises(Violation, match="one request has batches of"):
        conversation.sent(1, 1, 1, {TP: BatchSent(9, 0, 0, 1), OTHER: BatchSent(9, 0, 0, 1)})


def test_librdkafka_may_overtake_one_batch_when_the_leader_moves() -> None:
    talk = Talk(ClientKind.LIBRDKAFKA)
    for sequence in (0, 1, 2):
        talk.send(sequence)
    talk.conversation.closed(1)
    with pytest.raises(Violation, match=r"\[0, 1\] are to be sent before"):
        talk.send(2, connection=2)
    talk.send(1, connection=2)
    talk.send(0, connection=2)


def test_an_error_is_not_known_at_once_where_it_is_recorded() -> None:
    conversation = Conversation(ClientKind.JAVA, grace_ms=100)
    conversation.sent(1, 1, 0, {TP: BatchSent(9, 0, 0, 1)}, now_ms=0)
    conversation.answered(1, 0, {TP: REFUSED}, now_ms=10)
    conversation.sent(1, 1, 1, {TP: BatchSent(9, 0, 1, 1)}, now_ms=20)
    with pytest.raises(Violation, match="are to be sent again"):
        conversation.sent(1, 1, 2, {TP: BatchSent(9, 0, 2, 1)}, now_ms=200)


def test_a_connection_is_closed_behind_its_last_event() -> None:
    events = [
        {"event": "sent", "connection": 1},
        {"event": "sent", "connection": 2},
        {"event": "closed", "connection": 1},
    ]
    assert [(e["event"], e["connection"]) for e in closed_at_once(events)] == [("sent", 1), ("closed", 1), ("sent", 2)]


@pytest.mark.parametrize("kind", list(ClientKind), ids=lambda kind: kind.value)
def test_a_recorded_conversation_of_the_real_client_is_accepted(kind: ClientKind) -> None:
    lines = (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines()
    conversation = replay(kind, [json.loads(line) for line in lines], GRACE_MS)
    assert conversation.requests > 50
    assert conversation.sent_again > 0


@pytest.mark.parametrize("kind", list(ClientKind), ids=lambda kind: kind.value)
def test_a_recording_is_not_accepted_when_a_batch_is_left_out(kind: ClientKind) -> None:
    lines = (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    left_out = next(e for e in events if e["event"] == "sent" and any(n[2] for n in e["batches"].values()))
    same = [e for e in events if (e["connection"], e.get("request")) != (left_out["connection"], left_out["request"])]
    with pytest.raises(Violation, match="was to be next"):
        replay(kind, same, GRACE_MS)
