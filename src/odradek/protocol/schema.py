"""Messages as classes: the body lists the fields, one per line, in the order of the wire.

    class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
        group_id: str = string()
        group_instance_id: str | None = string("3+", nullable="3+", default=None)

Objects are plain, slotted, mutable and free of versions: a version enters only when they are written or read.
Fields that a version lacks have their defaults after reading. The modules in `messages` import everything that
they need from here; how values become bytes is `codec`'s business.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar, dataclass_transform

from odradek.protocol import codec
from odradek.protocol.fields import (
    FRESH,
    Field,
    array,
    bool_,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    parse_versions,
    records,
    string,
    struct,
    uuid,
)
from odradek.protocol.primitives import ZERO_UUID, Records, Splices

__all__ = [
    "ZERO_UUID",
    "Message",
    "Records",
    "Request",
    "Response",
    "Struct",
    "array",
    "bool_",
    "bytes_",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "string",
    "struct",
    "uuid",
]

T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """A function of buffer and position, that answers the object and the position after it.

    It takes no more than so many steps (`decoding_steps`), or raises OverBudget.
    """

    def __call__(self, buf: memoryview, pos: int, steps: int = ..., /) -> tuple[T_co, int]: ...


Encoder: TypeAlias = Callable[[Any, bytearray, Splices], None]


class _StructType(type):
    """Turns the declared fields into slots and a constructor."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key in fields:
            del namespace[key]
        namespace["FIELDS"] = fields
        namespace["__slots__"] = tuple(fields)
        made: Any = super().__new__(mcls, name, bases, namespace, **options)
        if fields:
            made.__init__ = _first_init(made)
        return made


def _first_init(made: Any) -> Any:
    """`__init__` that compiles the real one: three hundred classes are declared, most processes use a few."""

    def __init__(self: Any, **values: Any) -> None:
        made.__init__ = _make_init(made.FIELDS)
        made.__init__(self, **values)

    return __init__


def _make_init(fields: dict[str, Field]) -> Any:
    """`__init__` with a keyword and Kafka's default for each field."""
    names: dict[str, Any] = {"FRESH": FRESH}
    lines = []
    for name, field in fields.items():
        names[f"default_{name}"] = field.default
        value = name
        if field.default is FRESH:
            names[f"new_{name}"] = list if field.kind == "array" else field.struct
            value = f"new_{name}() if {name} is FRESH else {name}"
        lines.append(f"    self.{name} = {value}")
    keywords = ", ".join(f"{name}=default_{name}" for name in fields)
    source = "\n".join([f"def __init__(self, *, {keywords}):", *lines])
    exec(source, names)
    return names["__init__"]


@dataclass_transform(kw_only_default=True)
class Struct(metaclass=_StructType):
    """A group of fields inside a message."""

    FIELDS: ClassVar[dict[str, Field]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A request, a response or a header: encoded and decoded as a whole, at one of its versions."""

    VERSIONS: ClassVar[range] = range(0)
    FLEXIBLE: ClassVar[range] = range(0)
    DROPS_ABSENT: ClassVar[bool] = False
    """True if a value for which a version has no field is left out. Otherwise it may not be written at that version."""
    _decoders: ClassVar[dict[int, Decoder[Any]]]
    _encoders: ClassVar[dict[int, Encoder]]

    def __init_subclass__(cls, *, versions: str = "", flexible: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.VERSIONS = parse_versions(versions)
        cls.FLEXIBLE = parse_versions(flexible)
        cls._decoders = {}
        cls._encoders = {}

    @classmethod
    def decoder(cls, version: int) -> Decoder[Self]:
        found = cls._decoders.get(version)
        if found is None:
            found = cls._decoders[version] = codec.make_decoder(cls, cls._checked(version), version in cls.FLEXIBLE)
        return found

    @classmethod
    def encoder(cls, version: int) -> Callable[[Self, bytearray, Splices], None]:
        """A function that appends an object to the bytes, and to the splices what stays in files."""
        found = cls._encoders.get(version)
        if found is None:
            found = cls._encoders[version] = codec.make_encoder(cls, cls._checked(version), version in cls.FLEXIBLE)
        return found

    @classmethod
    def decode(cls, buf: memoryview, pos: int, version: int) -> tuple[Self, int]:
        return cls.decoder(version)(buf, pos)

    def encode(self, version: int) -> bytes:
        """Return all the bytes, including records that are read from files."""
        out = bytearray()
        splices: Splices = []
        self.encoder(version)(self, out, splices)
        for position, file_slice in reversed(splices):
            out[position:position] = file_slice.read()
        return bytes(out)

    @classmethod
    def _checked(cls, version: int) -> int:
        if version not in cls.VERSIONS:
            raise ValueError(f"{cls.__name__} has no version {version}")
        return version


class Request(Message):
    KEY: ClassVar[int] = -1

    def __init_subclass__(cls, *, key: int = -1, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.KEY = key


class Response(Message):
    """A handler says all it knows; a client hears what its version has words for."""

    KEY: ClassVar[int] = -1
    DROPS_ABSENT: ClassVar[bool] = True

    def __init_subclass__(cls, *, key: int = -1, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.KEY = key
