from typing import Any, cast

from odradek.broker.network.muted_connections import NEVER_NS, MutedConnections


class Connection:
    def __init__(self) -> None:
        self.muted_until_ns = 0
        self.closed = False


def test_each_one_until_its_own_time() -> None:
    muted, early, late = MutedConnections(), cast(Any, Connection()), cast(Any, Connection())
    muted.add(late, 20)
    muted.add(early, 10)
    assert muted.next_end_ns == 10
    assert muted.ended(9) == []
    assert muted.ended(15) == [early]
    assert (early.muted_until_ns, late.muted_until_ns, muted.next_end_ns) == (0, 20, 20)
    assert muted.ended(20) == [late]
    assert muted.next_end_ns == NEVER_NS


def test_the_later_end_holds() -> None:
    muted, connection = MutedConnections(), cast(Any, Connection())
    muted.add(connection, 10)
    muted.add(connection, 30)
    muted.add(connection, 20)
    assert muted.ended(25) == []
    assert muted.ended(30) == [connection]


def test_those_that_are_gone_are_passed_over() -> None:
    muted, connection = MutedConnections(), cast(Any, Connection())
    muted.add(connection, 10)
    connection.closed = True
    assert muted.ended(10) == []
