"""`value_classes.dataclass` beside the standard one, which it has to equal."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from odradek.base.value_classes import dataclass

T = TypeVar("T")


def declare(decorate: Any) -> Any:
    @decorate(frozen=True, slots=True)
    class Point:
        """A place."""

        x: int
        y: int = 2
        tags: list[str] = dataclasses.field(default_factory=list, compare=False, repr=False)
        length: int = dataclasses.field(init=False, default=0)
        ORIGIN: ClassVar[str] = "zero"

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", self.x + self.y)

        @property
        def double(self) -> int:
            return self.x * 2

    return Point


OURS, STANDARD = declare(dataclass), declare(dataclasses.dataclass)


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    left: T
    right: T


@dataclass(frozen=True, slots=True)
class Named(Pair[int]):
    name: str = "pair"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alone:
    x: int


@pytest.mark.parametrize(
    "question",
    [
        lambda point: repr(point(1)),
        lambda point: point(1) == point(1, 2, ["not compared"]),
        lambda point: point(1) == point(2),
        lambda point: point(1) == "another type",
        lambda point: hash(point(1)),
        lambda point: hash(point(x=3, y=4)),
        lambda point: point(1).tags,
        lambda point: (point(1).length, point(1).double, point.ORIGIN),
        lambda point: repr(dataclasses.replace(point(1), y=7)),
        lambda point: dataclasses.asdict(point(1)),
        lambda point: [(f.name, f.default, f.init) for f in dataclasses.fields(point)],
        lambda point: dataclasses.is_dataclass(point),
        lambda point: point.__match_args__,
        lambda point: point.__slots__,
        lambda point: (point.__doc__, point.__qualname__, point.__module__),
        lambda point: copy.copy(point(5)).length,
        lambda point: hasattr(point(1), "__dict__"),
    ],
)
def test_it_equals_the_standard_one(question: Callable[[Any], object]) -> None:
    assert question(declare(dataclass)) == question(declare(dataclasses.dataclass))


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5)])
def test_wrong_arguments_are_refused_in_the_same_words(arguments: tuple[int, ...]) -> None:
    with pytest.raises(TypeError) as ours:
        declare(dataclass)(*arguments)
    with pytest.raises(TypeError) as standard:
        STANDARD(*arguments)
    assert str(ours.value) == str(standard.value)


def test_its_fields_can_be_asked_for_before_there_is_an_object() -> None:
    assert [field.name for field in dataclasses.fields(declare(dataclass))] == ["x", "y", "tags", "length"]


def test_it_does_not_change() -> None:
    point = OURS(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert point.x == 1


def test_it_is_pickled_also_into_a_process_that_has_made_none() -> None:
    assert pickle.loads(pickle.dumps(Pair("a", "b"))) == Pair("a", "b")
    fresh = declare(dataclass)
    made = fresh.__new__(fresh)
    made.__setstate__([1, 2, [], 3])
    assert (made, repr(made)) == (fresh(1), repr(fresh(1)))


def test_a_class_that_inherits_from_one() -> None:
    assert Named(1, 2) == Named(1, 2, "pair")
    assert [field.name for field in dataclasses.fields(Named)] == ["left", "right", "name"]


def declare_changing(decorate: Any) -> Any:
    @decorate(slots=True)
    class Counter:
        name: str
        counts: dict[str, int] = dataclasses.field(default_factory=dict)
        total: int = dataclasses.field(default=0, init=False)
        places: list[int] = dataclasses.field(init=False, default_factory=lambda: [1])
        later: int = dataclasses.field(init=False, compare=False)

        def __post_init__(self) -> None:
            self.total += 1

    return Counter


@pytest.mark.parametrize(
    "question",
    [
        lambda counter: counter("a", {"b": 1}).counts,
        lambda counter: (counter("a") == counter("a"), counter("a") == counter("b"), counter("a") != "a"),
        lambda counter: counter.__hash__,
        lambda counter: (counter("a").total, counter("a").places, hasattr(counter("a"), "later")),
        lambda counter: (counter.__slots__, counter.__match_args__),
        lambda counter: (counter("a").name, str(inspect.signature(counter))),
        lambda counter: copy.copy(counter("a")).counts,
    ],
)
def test_one_that_changes_equals_the_standard_one(question: Callable[[Any], object]) -> None:
    assert question(declare_changing(dataclass)) == question(declare_changing(dataclasses.dataclass))


def test_it_changes_and_has_no_default_in_common() -> None:
    counter = declare_changing(dataclass)
    first, second = counter("a"), counter("b")
    first.later, first.counts["x"] = 7, 1
    second.later = 8
    assert repr(first).endswith("Counter(name='a', counts={'x': 1}, total=1, places=[1], later=7)")
    assert second.counts == {}


@pytest.mark.parametrize("decorate", [dataclass, dataclasses.dataclass])
def test_methods_of_its_own_stay(decorate: Any) -> None:
    @decorate(frozen=True, slots=True)
    class Folded:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Folded) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert {Folded("A"), Folded("a")} == {Folded("a")}
    assert repr(Folded("A")) == "<A>"
    assert [field.name for field in dataclasses.fields(Folded)] == ["name"]


def test_a_default_that_all_objects_would_share_is_refused() -> None:
    @dataclass(slots=True)
    class Shared:
        names: list[str] = []  # noqa: RUF012

    with pytest.raises(ValueError, match="default_factory"):
        Shared()


def test_only_what_is_used_is_compiled() -> None:
    fresh = declare(dataclass)
    assert fresh(1).x == 1
    is_compiled = {name: "first" not in fresh.__dict__[name].__name__ for name in ("__init__", "__eq__", "__hash__")}
    assert is_compiled == {"__init__": True, "__eq__": False, "__hash__": False}
    assert fresh(1) == fresh(1)
    assert fresh.__eq__.__name__ == "__eq__"


def test_first_comparisons_on_many_threads() -> None:
    for _ in range(20):
        fresh = declare(dataclass)
        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(lambda x, kind=fresh: hash(kind(x)), range(8)))) == 8


def test_options_of_the_methods() -> None:
    assert Alone(1) != Alone(1)
    assert "object at" in repr(Alone(1))


def test_a_match_by_position() -> None:
    match OURS(1, 5):
        case OURS(x, y):
            assert (x, y) == (1, 5)


def test_first_objects_on_many_threads() -> None:
    for _ in range(20):
        fresh = declare(dataclass)
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(fresh, range(8)))
        assert [point.x for point in made] == list(range(8))
        assert made[3] == fresh(3)
        assert made[3].tags == []
