"""`dataclass` with methods that are compiled on first use: a drop-in for `dataclasses.dataclass`.

The standard one compiles up to six functions per class at import, half a millisecond or more; a broker imports two
hundred slotted classes, makes objects of a few dozen of them, and compares or prints objects of fewer. Only slotted
classes without a dataclass among their bases are different here: the constructor comes with the first object, the
other methods with the first one that is called. docs/decisions/0034-cost-of-a-broker-start.md has the figures.
"""

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(declared=None, /, *, frozen=False, slots=False, **options):
        """Make a dataclass, as `dataclasses.dataclass` does."""
        if declared is not None or not slots or not options.keys() <= _DEFERRED_OPTIONS:
            return dataclasses.dataclass(declared, frozen=frozen, slots=slots, **options)
        return lambda declared: _deferred(declared, frozen=frozen, options=options)


_DEFERRED_OPTIONS = {"eq", "repr"}
_completing = threading.RLock()
_COMPARING = ("__repr__", "__eq__", "__hash__")
_ALWAYS = ("__dataclass_params__", "__dataclass_fields__")


class _Member(NamedTuple):
    """A field, as far as the constructor needs to know it."""

    name: str
    kind: Any
    default: Any
    factory: Any
    is_argument: bool


def _members(declared: Any) -> list[_Member] | None:
    """Fields in their order; None for a class that is left to the standard decorator."""
    if any("__dataclass_fields__" in base.__dict__ for base in declared.__mro__[1:]):
        return None
    found: list[_Member] = []
    # Of the class, not its dictionary: from Python 3.14 on they are made when they are asked for.
    for name, kind in declared.__annotations__.items():
        if get_origin(kind) is ClassVar:
            continue
        if kind is dataclasses.KW_ONLY or isinstance(kind, dataclasses.InitVar):
            return None
        given = declared.__dict__.get(name, dataclasses.MISSING)
        if not isinstance(given, dataclasses.Field):
            found.append(_Member(name, kind, given, dataclasses.MISSING, True))
        elif given.kw_only is True:
            return None
        else:
            found.append(_Member(name, kind, given.default, given.default_factory, given.init))
    return found


def _deferred(declared: Any, *, frozen: bool, options: dict[str, Any]) -> Any:
    """The class with slots, without the compiled methods. `declared` is kept to compile them from."""
    fields = _members(declared)
    if fields is None:
        return dataclasses.dataclass(frozen=frozen, slots=True, **options)(declared)
    members = dict(declared.__dict__)
    assert "__init__" not in members, f"{declared.__name__} has a constructor of its own"
    names = tuple(field.name for field in fields)
    for name in (*names, "__dict__", "__weakref__"):
        members.pop(name, None)
    members |= {"__slots__": names, "__match_args__": tuple(field.name for field in fields if field.is_argument)}
    if frozen:
        members |= _FROZEN
    made = type(declared)(declared.__name__, declared.__bases__, members)
    made.__qualname__ = declared.__qualname__

    def first_init(self: Any, *args: Any, **values: Any) -> None:
        with _completing:
            if made.__init__ is first_init:
                made.__init__ = _constructor(made, fields, frozen=frozen)
        made.__init__(self, *args, **values)

    made.__init__ = first_init
    _defer_comparing(made, declared, frozen=frozen, options=options)
    return made


def _defer_comparing(made: Any, declared: Any, *, frozen: bool, options: dict[str, Any]) -> None:
    """Have `__repr__`, `__eq__` and `__hash__` compiled, all at once, when one of them is called."""

    def complete() -> None:
        with _completing:
            if isinstance(made.__dict__["__dataclass_params__"], _OnDemand):
                standard = _compared(declared, frozen=frozen, options=options)
                for name in stubs:
                    setattr(made, name, standard.__dict__[name])
                for name in _ALWAYS:
                    setattr(made, name, standard.__dict__[name])

    def first_repr(self: Any) -> Any:
        complete()
        return made.__repr__(self)

    def first_eq(self: Any, other: object) -> Any:
        complete()
        return made.__eq__(self, other)

    def first_hash(self: Any) -> Any:
        complete()
        return made.__hash__(self)

    stubs: dict[str, Any] = {}
    if options.get("repr", True) and "__repr__" not in declared.__dict__:
        stubs["__repr__"] = first_repr
    if options.get("eq", True):
        has_eq, given_hash = "__eq__" in declared.__dict__, declared.__dict__.get("__hash__")
        if not has_eq:
            stubs["__eq__"] = first_eq
        if given_hash is None:  # not there, or what Python puts beside an __eq__
            if frozen:
                stubs["__hash__"] = first_hash
            else:
                made.__hash__ = None
    for name, stub in stubs.items():
        setattr(made, name, stub)
    for name in _ALWAYS:
        setattr(made, name, _OnDemand(complete, name))


def _compared(declared: Any, *, frozen: bool, options: dict[str, Any]) -> Any:
    """Return the class with all methods of the standard one, except the constructor and the methods that refuse
    assignments."""
    declared.__doc__ = declared.__name__  # otherwise it is made from the signature, which takes long
    does_hash = frozen and options.get("eq", True) and declared.__dict__.get("__hash__") is None
    standard: Any = dataclasses.dataclass(init=False, unsafe_hash=does_hash, **options)(declared)
    parameters = standard.__dataclass_params__
    parameters.init, parameters.unsafe_hash, parameters.frozen = True, False, frozen
    return standard


def _constructor(made: Any, fields: list[_Member], *, frozen: bool) -> Any:
    """Compile `__init__`. Objects that refuse assignments are filled through the descriptors of their slots."""
    names: dict[str, Any] = {"_given_later": _GIVEN_LATER}
    arguments, body = ["self"], []
    has_default = False
    for number, field in enumerate(fields):
        value = field.name
        if field.default is not dataclasses.MISSING:
            if field.default.__class__.__hash__ is None:
                raise ValueError(f"mutable default {type(field.default)} for field {field.name}: use default_factory")
            names[f"_default_{number}"] = field.default
            argument, value = f"{field.name}=_default_{number}", value if field.is_argument else f"_default_{number}"
        elif field.factory is not dataclasses.MISSING:
            names[f"_factory_{number}"] = field.factory
            argument, made_now = f"{field.name}=_given_later", f"_factory_{number}()"
            value = f"{made_now} if {value} is _given_later else {value}" if field.is_argument else made_now
        else:
            if not field.is_argument:
                continue
            if has_default:
                raise TypeError(f"non-default argument {field.name!r} follows default argument")
            argument = field.name
        if field.is_argument:
            has_default = has_default or "=" in argument
            arguments.append(argument)
        names[f"_set_{number}"] = made.__dict__[field.name].__set__
        body.append(f"_set_{number}(self, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    text = "\n  ".join([f"def __init__({', '.join(arguments)}):", *(body or ["pass"])])
    local: dict[str, Any] = {}
    exec(f"def make({', '.join(names)}):\n {text}\n return __init__", local)
    constructor = local["make"](**names)
    constructor.__qualname__ = f"{made.__qualname__}.__init__"
    constructor.__annotations__ = {field.name: field.kind for field in fields if field.is_argument} | {"return": None}
    return constructor


class _GivenLater:
    """Default of an argument whose value a factory makes, as `inspect.signature` shows it."""

    def __repr__(self) -> str:
        return "<factory>"


_GIVEN_LATER = _GivenLater()


class _OnDemand:
    """An attribute of the standard decorator, of a class whose methods are not compiled yet."""

    def __init__(self, complete: Any, name: str) -> None:
        self._complete = complete
        self._name = name

    def __get__(self, instance: object, owner: Any) -> Any:
        self._complete()
        return getattr(owner, self._name)


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
