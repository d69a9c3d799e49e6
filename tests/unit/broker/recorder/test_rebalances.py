"""The groups' part of the journals, read on from the last look."""

from pathlib import Path

from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.journals import file_name
from odradek.broker.recorder.rebalances import Rebalances


def _line(broker: int, seq: int, group: str, generation: int, why: str) -> str:
    return Entry(
        seq, broker, seq, Kind.GROUP, "Rebalanced", group=group, generation=generation, count=1, text=why
    ).as_line()


def test_what_was_written_since_the_last_look_is_added(tmp_path: Path) -> None:
    first, second = tmp_path / file_name(0, 1), tmp_path / file_name(1, 1)
    first.write_text(_line(0, 1, "shop", 1, "a joined") + Entry(2, 0, 2, Kind.LIFE, "Started").as_line())
    known = Rebalances(tmp_path)
    known.read()
    assert [entry.text for entry in known.of("shop")] == ["a joined"]
    assert known.of("other") == ()

    second.write_text(_line(1, 4, "shop", 3, "its coordinator is another") + '{"time_ms":5,"kind":"group"')
    with first.open("a") as file:
        file.write(_line(0, 3, "shop", 2, "b joined"))
    known.read()
    assert [(entry.generation, entry.broker) for entry in known.of("shop")] == [(1, 0), (2, 0), (3, 1)]
    known.read()
    assert len(known.of("shop")) == 3


def test_only_the_last_ones_of_a_group_are_kept(tmp_path: Path) -> None:
    (tmp_path / file_name(0, 1)).write_text("".join(_line(0, seq, "shop", seq, "again") for seq in range(1, 200)))
    known = Rebalances(tmp_path)
    known.read()
    assert [entry.generation for entry in known.of("shop")] == list(range(150, 200))


def test_places_that_are_not_there_tell_nothing(tmp_path: Path) -> None:
    known = Rebalances(tmp_path / "nowhere")
    known.read()
    assert known.of("shop") == ()
