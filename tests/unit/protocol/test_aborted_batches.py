"""Batches that a reader of committed records skips, by the aborted list of a fetch."""

from odradek.protocol.aborted_batches import committed_batches
from odradek.protocol.record_batch import batches, build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker


def data(offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
    return build_batch([Record(offset, 0, None, b"v")], base_offset=offset, transactional=transactional, **fields)


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    built = bytearray(build_marker(EndTransactionMarker(producer_id, 0, 0, committed), 0))
    built[:8] = offset.to_bytes(8, "big")
    return bytes(built)


def offsets(fetched: list[bytes], aborted: list[tuple[int, int]]) -> list[int]:
    buf = b"".join(fetched)
    return [h.base_offset for _, h in committed_batches(buf, batches(buf), aborted) if not h.is_control]


def test_from_the_first_offset_to_the_abort_marker() -> None:
    fetched = [data(0, 1), data(1, 1), marker(2, 1, committed=False), data(3, 1), marker(4, 1, committed=True)]
    assert offsets(fetched, [(1, 0)]) == [3]


def test_of_the_producer_alone_and_inside_of_transactions_alone() -> None:
    fetched = [data(0, 1), data(1, 2), data(2, -1, transactional=False), data(3, 1, transactional=False)]
    assert offsets(fetched, [(1, 0)]) == [1, 2, 3]


def test_overlapping_transactions_in_any_order_of_the_list() -> None:
    fetched = [data(0, 1), data(1, 2), marker(2, 2, committed=False), data(3, 2), data(4, 1)]
    assert offsets(fetched, [(2, 1), (1, 0)]) == [3]


def test_a_transaction_that_began_before_the_fetch() -> None:
    fetched = [data(10, 1), marker(11, 1, committed=False), data(12, 1)]
    assert offsets(fetched, [(1, 3)]) == [12]


def test_a_later_transaction_of_the_same_producer() -> None:
    fetched = [
        data(0, 1),
        marker(1, 1, committed=False),
        data(2, 1),
        marker(3, 1, committed=True),
        data(4, 1),
        marker(5, 1, committed=False),
    ]
    assert offsets(fetched, [(1, 0), (1, 4)]) == [2]
