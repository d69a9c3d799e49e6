"""The judge judged: a sound history has no anomaly, and each kind of fault is found."""

import pytest

from chaos.history import UNKNOWN_OFFSET, Acknowledged, History, Polled, Sent
from chaos.judge import Kind, judge
from odradek.model.topology import TopicPartition

TP = TopicPartition("orders", 0)


def sound(count: int = 5) -> History:
    history = History()
    for number in range(count):
        sent = Sent("p", number, TP)
        history.record_sent(sent)
        history.record_acknowledged(sent, number)
    for consumer in ("a", "b"):
        for number in range(count):
            history.record_polled(Polled(consumer, TP, number, f"p-{number}"))
    return history


def kinds(history: History, **terms: bool) -> set[Kind]:
    return {anomaly.kind for anomaly in judge(history, **terms)}


def test_a_sound_history() -> None:
    assert judge(sound()) == []


def test_gaps_between_offsets_are_allowed() -> None:
    history = History()
    for offset in (0, 7, 9):
        sent = Sent("p", offset, TP)
        history.record_sent(sent)
        history.record_acknowledged(sent, offset)
        history.record_polled(Polled("a", TP, offset, sent.value))
    assert judge(history) == []


def test_a_lost_record() -> None:
    history = sound()
    history.polled = [polled for polled in history.polled if polled.offset != 2]
    assert kinds(history) == {Kind.LOST}


def test_an_unread_tail() -> None:
    history = sound()
    history.polled = [polled for polled in history.polled if polled.offset != 4]
    assert kinds(history) == {Kind.UNSEEN}


def without_offset(history: History, number: int) -> History:
    """The client was told that this record is delivered, and not where."""
    ack = history.acknowledged[number]
    history.acknowledged[number] = Acknowledged(ack.sent, UNKNOWN_OFFSET, ack.at_s)
    return history


def test_an_acknowledgement_without_an_offset() -> None:
    assert judge(without_offset(sound(), 2)) == []


def test_a_lost_record_whose_offset_was_not_told() -> None:
    history = without_offset(sound(), 2)
    history.polled = [polled for polled in history.polled if polled.value != "p-2"]
    assert kinds(history) == {Kind.LOST}


def test_a_record_out_of_order_whose_offset_was_not_told() -> None:
    history = History()
    for number, offset in ((0, 1), (1, 0)):
        sent = Sent("p", number, TP)
        history.record_sent(sent)
        history.record_acknowledged(sent, UNKNOWN_OFFSET)
        history.record_polled(Polled("a", TP, offset, sent.value))
    history.polled.reverse()
    assert kinds(history) == {Kind.SENDS_OUT_OF_ORDER}


def test_two_values_at_one_offset() -> None:
    history = sound()
    history.record_polled(Polled("late", TP, 1, "p-3"))
    assert Kind.INCONSISTENT_OFFSET in kinds(history)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_duplicate_is_a_fault_of_idempotent_producers_only(idempotent: bool) -> None:
    history = sound()
    history.record_polled(Polled("a", TP, 5, "p-4"))
    history.record_polled(Polled("b", TP, 5, "p-4"))
    assert kinds(history, idempotent=idempotent) == ({Kind.DUPLICATE} if idempotent else set())


def test_what_was_refused_must_not_be_read() -> None:
    history = sound()
    refused = Sent("p", 5, TP)
    history.record_sent(refused)
    history.record_failed(refused, "too large", definite=True)
    history.record_polled(Polled("a", TP, 5, refused.value))
    assert kinds(history) == {Kind.FAILED_BUT_READ}


def test_what_timed_out_may_be_read_or_not() -> None:
    history = sound()
    for number in (5, 6):
        uncertain = Sent("p", number, TP)
        history.record_sent(uncertain)
        history.record_failed(uncertain, "timed out", definite=False)
    history.record_polled(Polled("a", TP, 5, "p-5"))
    assert judge(history) == []


def test_what_nobody_sent() -> None:
    history = sound()
    history.record_polled(Polled("a", TP, 5, "ghost"))
    assert kinds(history) == {Kind.INVENTED}


def test_a_producers_order() -> None:
    history = History()
    for number, offset in ((0, 1), (1, 0)):
        sent = Sent("p", number, TP)
        history.record_sent(sent)
        history.record_acknowledged(sent, offset)
    for offset, number in ((0, 1), (1, 0)):
        history.record_polled(Polled("a", TP, offset, f"p-{number}"))
    assert kinds(history) == {Kind.SENDS_OUT_OF_ORDER}


def test_a_consumer_that_goes_back_and_one_that_skips() -> None:
    history = sound()
    history.record_polled(Polled("a", TP, 3, "p-3"))
    assert kinds(history) == {Kind.POLLS_OUT_OF_ORDER}
    history = sound()
    history.polled = [polled for polled in history.polled if (polled.consumer, polled.offset) != ("b", 2)]
    assert kinds(history) == {Kind.SKIPPED}
