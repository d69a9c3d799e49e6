"""`dataclass` whose methods are compiled when its first object is made: a drop-in for `dataclasses.dataclass`.

The standard one compiles six functions per class at import, half a millisecond or more; a broker imports two hundred
frozen, slotted classes and makes objects of a few dozen of them. Only those classes are different here, and only until
their first object: docs/decisions/0034-what-a-start-costs.md.
"""

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(declared=None, /, *, frozen=False, slots=False, **options):
        """Make a dataclass, as `dataclasses.dataclass` does."""
        if declared is not None or not (frozen and slots and options.keys() <= _DEFERRED_OPTIONS):
            return dataclasses.dataclass(declared, frozen=frozen, slots=slots, **options)
        return lambda declared: _frozen(declared, options)


_DEFERRED_OPTIONS = {"eq", "repr"}
_completing = threading.RLock()
_COMPILED = ("__repr__", "__eq__", "__hash__", "__dataclass_params__", "__dataclass_fields__", "__init__")
"""Attributes that the standard dataclass has and a new one here lacks. The constructor comes last: whoever calls it
finds the others."""


def _frozen(declared: Any, options: dict[str, Any]) -> Any:
    """The class with slots, without the compiled methods. `declared` is kept to compile them from."""
    if any("__dataclass_fields__" in base.__dict__ for base in declared.__mro__[1:]):
        return dataclasses.dataclass(frozen=True, slots=True, **options)(declared)
    members = dict(declared.__dict__)
    # Of the class, not its dictionary: from Python 3.14 on they are made when they are asked for.
    names = [name for name, kind in declared.__annotations__.items() if get_origin(kind) is not ClassVar]
    assert "__init__" not in members, f"{declared.__name__} has a constructor of its own"
    arguments = [name for name in names if getattr(members.get(name), "init", True)]
    for name in (*names, "__dict__", "__weakref__"):
        members.pop(name, None)
    members |= {
        "__slots__": tuple(names),
        "__match_args__": tuple(arguments),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _get_state,
        "__setstate__": _set_state,
    }
    made = type(declared)(declared.__name__, declared.__bases__, members)
    made.__qualname__ = declared.__qualname__

    def complete() -> None:
        with _completing:
            if made.__init__ is not first_init:
                return
            declared.__doc__ = declared.__name__  # else it would be made from the signature, which takes long
            standard = dataclasses.dataclass(frozen=True, **options)(declared)
            for name in _COMPILED:
                if name in standard.__dict__:
                    setattr(made, name, standard.__dict__[name])

    def first_init(self: Any, *args: Any, **values: Any) -> None:
        complete()
        made.__init__(self, *args, **values)

    made.__init__ = first_init
    made.__dataclass_fields__ = _FieldsOnDemand(complete)
    return made


class _FieldsOnDemand:
    """`__dataclass_fields__` of a class that has no objects yet."""

    def __init__(self, complete: Any) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: Any) -> Any:
        self._complete()
        return owner.__dataclass_fields__


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
