"""Records of a producer, compared with what was acknowledged."""

import pytest

from odradek.sim.checkers.record_checks import LogKind, check_numbers
from odradek.sim.checkers.violation import Violation

WHOLE = LogKind()


def test_acknowledged_records_are_there_in_order_and_once() -> None:
    check_numbers("p", [0, 1, 2, 3], [0, 1, 2], WHOLE)
    with pytest.raises(Violation, match=r"\[1\] are lost"):
        check_numbers("p", [0, 2], [0, 1, 2], WHOLE)
    with pytest.raises(Violation, match="stored twice"):
        check_numbers("p", [0, 1, 1], [0, 1], WHOLE)
    with pytest.raises(Violation, match="out of order"):
        check_numbers("p", [1, 0], [0, 1], WHOLE)


def test_retention_may_take_the_beginning() -> None:
    short = LogKind(is_whole=False)
    check_numbers("p", [2, 3], [0, 1, 2, 3], short)
    check_numbers("p", [], [0, 1], short)
    with pytest.raises(Violation, match="are lost"):
        check_numbers("p", [2, 4], [2, 3, 4], short)


def test_compaction_keeps_the_last_of_each_key() -> None:
    compacted = LogKind(is_compacted=True)
    check_numbers("p", [3, 4, 5, 6, 7], range(8), compacted)  # five keys
    check_numbers("p", [4, 5, 6, 7, 8], range(8), compacted)  # a newer one, not acknowledged
    with pytest.raises(Violation, match=r"\[7\] are lost"):
        check_numbers("p", [2, 3, 4, 5, 6], range(8), compacted)
