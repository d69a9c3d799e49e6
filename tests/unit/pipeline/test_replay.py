"""Where a replay begins: nothing may be twice in a table, and a batch is all or nothing."""

import pytest

from odradek.base.errors import FatalError
from odradek.model.topology import TopicPartition
from odradek.pipeline.replay import Positions, _reaches, _whole_batches, parse_moment, parse_offset
from odradek.pipeline.table_output import WrittenBatch


def batch(number: int, start: dict[str, int] | None, end: dict[str, int]) -> WrittenBatch:
    begun = [] if start is None else [{"t": start}]
    return WrittenBatch(path=None, generation=1, number=number, rows=1, start=begun, end=[{"t": end}])  # type: ignore[arg-type]


BATCHES = [
    batch(0, None, {"0": 10, "1": 10}),
    batch(1, {"0": 10, "1": 10}, {"0": 20, "1": 10}),
    batch(2, {"0": 20, "1": 10}, {"0": 20, "1": 30}),
    batch(3, {"0": 20, "1": 30}, {"0": 40, "1": 40}),
]
FIRST: Positions = {"t": {"0": 3, "1": 0}}


@pytest.mark.parametrize(
    ("wanted", "begins", "retired"),
    [
        ({"0": 40, "1": 40}, {"0": 40, "1": 40}, []),
        ({"0": 39, "1": 40}, {"0": 20, "1": 30}, [3]),
        ({"0": 20, "1": 12}, {"0": 20, "1": 10}, [2, 3]),
        ({"0": 15, "1": 40}, {"0": 10, "1": 10}, [1, 2, 3]),
        ({"0": 5, "1": 40}, {"0": 3, "1": 0}, [0, 1, 2, 3]),
    ],
)
def test_it_begins_where_a_batch_began(wanted: dict[str, int], begins: dict[str, int], retired: list[int]) -> None:
    positions = _whole_batches({"t": wanted}, FIRST, BATCHES)
    assert positions == {"t": begins}
    assert [written.number for written in BATCHES if _reaches(written, positions)] == retired


def test_places_and_times_can_be_written_in_several_ways() -> None:
    assert parse_offset("earliest") == {None: 0}
    assert parse_offset("12") == {None: 12}
    assert parse_offset("a:0:5,a:1:6") == {TopicPartition("a", 0): 5, TopicPartition("a", 1): 6}
    assert parse_moment("1000") == 1000
    assert parse_moment("1970-01-01T00:00:02") == 2000
    assert parse_moment("1970-01-01T01:00:00+01:00") == 0
    for wrong in ("a:0", "a:x:1", ":0:1", "-3"):
        with pytest.raises(FatalError, match="--from-offset"):
            parse_offset(wrong)
    with pytest.raises(FatalError, match="--from-time"):
        parse_moment("yesterday")
