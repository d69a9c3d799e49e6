"""Offset to which a follower truncates its log, case by case."""

import pytest

from odradek.broker.replication.core.truncation import Cut, StartOver, after_out_of_range, cut_by_epoch


@pytest.mark.parametrize(
    ("leader", "own", "end", "expected"),
    [
        pytest.param((3, 50), (3, 70), 70, Cut(50), id="the leader's epoch ended earlier"),
        pytest.param((3, 70), (3, 50), 60, Cut(50), id="our epoch ended earlier"),
        pytest.param((3, 50), (3, 50), 40, Cut(40), id="our log ends before both"),
        pytest.param((3, 50), (2, 30), 60, Cut(30, is_final=False), id="an epoch that we don't have: ask again"),
        pytest.param((-1, 50), (2, 30), 60, Cut(50), id="a leader too old to name the epoch"),
        pytest.param((3, 50), (-1, -1), 60, Cut(50), id="we know no epochs"),
        pytest.param((-1, -1), (-1, -1), 60, Cut(60), id="the leader knows nothing: the fetch will tell"),
    ],
)
def test_the_logs_part_where_their_last_common_epoch_ended(
    leader: tuple[int, int], own: tuple[int, int], end: int, expected: Cut
) -> None:
    assert cut_by_epoch(leader, own, end) == expected


@pytest.mark.parametrize(
    ("end", "leader_start", "leader_end", "expected"),
    [
        pytest.param(100, 0, 60, Cut(60), id="the leader is shorter: it was elected uncleanly"),
        pytest.param(100, 150, 200, StartOver(150), id="the leader deleted what we miss"),
        pytest.param(100, 0, 120, None, id="the leader has grown past us meanwhile"),
        pytest.param(100, 100, 100, None, id="the leader is empty and begins where we end"),
    ],
)
def test_out_of_range_has_two_causes(
    end: int, leader_start: int, leader_end: int, expected: Cut | StartOver | None
) -> None:
    assert after_out_of_range(end, leader_start, leader_end) == expected
