"""The table of keys against a dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.core.key_map import BYTES_PER_SLOT, KeyMap


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**62)), max_size=300))
def test_it_answers_as_a_dictionary_does(puts: list[tuple[bytes, int]]) -> None:
    keys = KeyMap(600 * BYTES_PER_SLOT, 0.9)
    model: dict[bytes, int] = {}
    keys.clear(most_keys=len(puts))
    for key, offset in puts:
        keys.put(key, offset)
        model[key] = offset
    assert keys.size == len(model)
    assert {key: keys.get(key) for key in model} == model
    assert keys.get(b"none of these") == -1


def test_it_is_full_at_its_load_factor_and_empty_after_clearing() -> None:
    keys = KeyMap(100 * BYTES_PER_SLOT, 0.5)
    keys.clear()
    added = 0
    while not keys.is_full:
        keys.put(str(added).encode(), added)
        added += 1
    assert added == 50
    assert keys.utilisation == 0.5
    keys.clear()
    assert keys.get(b"7") == -1


def test_no_more_slots_are_made_than_memory_allows_nor_than_keys_come() -> None:
    keys = KeyMap(10 * BYTES_PER_SLOT, 1.0)
    keys.clear(most_keys=10**9)
    for number in range(9):
        assert not keys.is_full
        keys.put(bytes([number]), number)
    assert keys.is_full  # one slot stays free, so that every search ends
    assert [keys.get(bytes([number])) for number in range(10)] == [*range(9), -1]


def test_memory_for_no_key_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        KeyMap(10, 0.9)
