from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.placement import place_replicas
from odradek.model.topology import Broker


def brokers(count: int, racks: str = "") -> dict[int, Broker]:
    """Brokers 0, 1, …; each letter of `racks` is the rack of one, a dot none."""
    return {n: Broker(n, (), None if racks[n : n + 1] in ("", ".") else racks[n]) for n in range(count)}


def test_the_example_of_the_module() -> None:
    placed = place_replicas(brokers(5), 10, 3, start=0, shift=0)
    assert placed == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


@given(data=st.data(), n=st.integers(1, 12), partitions=st.integers(1, 60))
def test_replicas_differ_and_leaders_are_spread(data: st.DataObject, n: int, partitions: int) -> None:
    factor = data.draw(st.integers(1, n))
    start, shift = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    placed = place_replicas(brokers(n), partitions, factor, start=start, shift=shift)
    assert sorted(placed) == list(range(partitions))
    assert all(len(set(replicas)) == factor for replicas in placed.values())
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders.values()) - min(leaders[b] for b in range(n)) <= 1


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"Replication factor: 4 larger than available brokers: 3\.") as refused:
        place_replicas(brokers(3), 1, 4, start=0, shift=0)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError, match="larger than 0"):
        place_replicas(brokers(1), 0, 1, start=0, shift=0)
    with pytest.raises(KafkaError, match="larger than 0"):
        place_replicas(brokers(1), 1, 0, start=0, shift=0)
    with pytest.raises(KafkaError, match="at most 50000 partitions"):
        place_replicas(brokers(1), 2**31 - 1, 1, start=0, shift=0)
    with pytest.raises(KafkaError, match="at most 50000 partitions"):
        place_replicas(brokers(1), 1, 1, start=0, shift=0, first_partition=50_000)


def test_racks_take_turns() -> None:
    placed = place_replicas(brokers(6, "acbbca"), 7, 3, start=0, shift=0)
    assert placed == {
        0: (0, 2, 1),
        1: (2, 1, 5),
        2: (1, 5, 3),
        3: (5, 3, 4),
        4: (3, 4, 0),
        5: (4, 0, 2),
        6: (0, 3, 4),
    }


@given(data=st.data(), racks=st.text("abcd", min_size=1, max_size=12), partitions=st.integers(1, 40))
def test_no_rack_has_two_replicas_while_another_has_none(data: st.DataObject, racks: str, partitions: int) -> None:
    n = len(racks)
    factor = data.draw(st.integers(1, n))
    start, shift = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    placed = place_replicas(brokers(n, racks), partitions, factor, start=start, shift=shift)
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert len({racks[b] for b in replicas}) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders.values()) - min(leaders[b] for b in range(n)) <= 1


def test_racks_of_some_brokers_only_are_refused() -> None:
    with pytest.raises(KafkaError, match="Not all brokers have rack information") as refused:
        place_replicas(brokers(3, "a.b"), 1, 1, start=0, shift=0)
    assert "[1]" in refused.value.message
