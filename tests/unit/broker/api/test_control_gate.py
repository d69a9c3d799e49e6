"""The control gate obeys the newest controller, by this registration of the broker, in the order in which it spoke."""

from collections.abc import Iterator

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.control_gate import ControlGate
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest


@pytest.fixture
def gate() -> Iterator[ControlGate]:
    gate = ControlGate()
    gate.broker_epoch = 100
    yield gate
    gate.stop()


def answer(gate: ControlGate, controller_epoch: int, broker_epoch: int, correlation_id: int) -> ErrorCode:
    answers: list[ErrorCode] = []
    request = UpdateMetadataRequest(controller_id=1, controller_epoch=controller_epoch, broker_epoch=broker_epoch)
    gate.submit(request, correlation_id, answers.append)
    gate._thread.submit(lambda: None).result(60)
    return answers[0]


def test_what_was_held_back_is_not_obeyed_after_what_was_said_since(gate: ControlGate) -> None:
    assert answer(gate, 5, 100, 7) is ErrorCode.NONE
    assert answer(gate, 5, 100, 9) is ErrorCode.NONE
    assert answer(gate, 5, 100, 8) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert answer(gate, 5, 100, 10) is ErrorCode.NONE


def test_every_channel_counts_anew(gate: ControlGate) -> None:
    """A channel to another registration of the broker, and one of another controller."""
    assert answer(gate, 5, 100, 70) is ErrorCode.NONE
    assert answer(gate, 5, 101, 0) is ErrorCode.NONE, "it speaks to a registration that we are about to hear of"
    assert answer(gate, 5, 100, 71) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert answer(gate, 6, 101, 0) is ErrorCode.NONE


def test_who_names_no_registration_is_believed_in_any_order(gate: ControlGate) -> None:
    """Controllers from before broker epochs: where one of their channels ends and the next begins can't be told."""
    assert answer(gate, 5, -1, 70) is ErrorCode.NONE
    assert answer(gate, 5, -1, 0) is ErrorCode.NONE


def test_those_who_were_replaced_are_refused(gate: ControlGate) -> None:
    assert answer(gate, 5, 99, 1) is ErrorCode.STALE_BROKER_EPOCH
    assert answer(gate, 5, 100, 1) is ErrorCode.NONE
    assert answer(gate, 4, 100, 2) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert answer(gate, 4, -1, 2) is ErrorCode.STALE_CONTROLLER_EPOCH
