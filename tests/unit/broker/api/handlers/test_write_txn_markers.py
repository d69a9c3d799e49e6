"""Markers are not written once nobody waits for the answer: the coordinator has sent them again."""

from types import SimpleNamespace
from typing import Any

from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.write_txn_markers import write_txn_markers
from odradek.broker.api.registry import LATER
from odradek.broker.replication.leader.marker_writer import MarkersDone, MarkerToWrite
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class Markers:
    def __init__(self) -> None:
        self.written: list[MarkerToWrite] = []

    def write(self, markers: list[MarkerToWrite], done: MarkersDone) -> None:
        self.written += markers
        done([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])


def asked(*, peer_closed: bool) -> tuple[Any, list[MarkerToWrite], list[WriteTxnMarkersResponse]]:
    topic = WritableTxnMarkerTopic(name="orders", partition_indexes=[3, 4])
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=1, transaction_result=True, coordinator_epoch=2, topics=[topic]
    )
    markers, replies = Markers(), list[WriteTxnMarkersResponse]()
    context: Any = SimpleNamespace(
        broker=SimpleNamespace(authorizer=None, markers=markers),
        connection=SimpleNamespace(peer_closed=peer_closed),
        reply_with=lambda build: lambda codes: replies.append(build(codes)),
        is_from_broker=False,
    )
    outcome = write_txn_markers(WriteTxnMarkersRequest(markers=[marker]), context)
    return outcome, markers.written, replies


def codes(response: WriteTxnMarkersResponse) -> list[int]:
    return [partition.error_code for partition in response.markers[0].topics[0].partitions]


def test_each_partition_has_its_own_answer() -> None:
    outcome, written, (response,) = asked(peer_closed=False)
    assert outcome is LATER
    assert [(each.marker.producer_id, each.partition.partition) for each in written] == [(7, 3), (7, 4)]
    assert codes(response) == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_request_that_lay_unread_until_its_sender_went_writes_nothing() -> None:
    outcome, written, _ = asked(peer_closed=True)
    assert not written
    assert codes(outcome) == [ErrorCode.NETWORK_EXCEPTION] * 2
