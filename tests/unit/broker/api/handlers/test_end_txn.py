"""A transaction is not ended once nobody waits for the answer: the producer may be in its next one."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.end_txn import end_txn
from odradek.broker.api.registry import LATER
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

REQUEST = EndTxnRequest(transactional_id="t", producer_id=7, producer_epoch=1, committed=True)


def asked(*, peer_closed: bool) -> tuple[Any, list[str]]:
    ended: list[str] = []
    context: Any = SimpleNamespace(
        version=4,
        broker=SimpleNamespace(
            authorizer=None, transactions=SimpleNamespace(end=lambda name, *_, **__: ended.append(name))
        ),
        connection=SimpleNamespace(peer_closed=peer_closed),
        reply_with=lambda build: build,
    )
    return end_txn(REQUEST, context), ended


@pytest.mark.parametrize(("peer_closed", "ends"), [(False, ["t"]), (True, [])])
def test_a_request_that_lay_unread_until_its_sender_went_ends_nothing(peer_closed: bool, ends: list[str]) -> None:
    outcome, ended = asked(peer_closed=peer_closed)
    assert ended == ends
    if peer_closed:
        assert isinstance(outcome, EndTxnResponse)
        assert outcome.error_code == ErrorCode.NETWORK_EXCEPTION
    else:
        assert outcome is LATER
