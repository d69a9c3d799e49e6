"""Every message at every version, written by Apache Kafka's own classes: the same bytes as ours.

Each message is filled twice, once with something in every field and once with as little as its version allows.
Kafka's classes take the values as JSON.
"""

import base64
import json
import re
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio_oracle import every_message_and_version, newer_messages

from class_archive import class_path
from java_program import SHORT_LIVED, compiled
from odradek.protocol.fields import Field, Kind
from odradek.protocol.schema import Message, Request, Response, Struct

KAFKA_NAMES = {"is_kraft_controller": "isKRaftController"}


class Filler:
    """Makes objects whose values differ from the defaults and from each other."""

    def __init__(self, version: int, *, sparse: bool) -> None:
        self.version = version
        self.sparse = sparse
        self.numbers = count(1)

    def struct(self, of: type[Struct]) -> Any:
        present = {name: field for name, field in of.FIELDS.items() if self.version in field.versions}
        return of(**{name: self.value(field) for name, field in present.items()})

    def value(self, field: Field) -> Any:
        if self.sparse and self.version in field.nullable:
            return None
        if field.kind == "struct":
            return None if self.sparse and field.tag is not None else self.struct(field.struct)
        if field.kind == "array":
            return [] if self.sparse else [self.item(field) for _ in range(2)]
        return self.plain(field.kind)

    def item(self, field: Field) -> Any:
        assert field.element is not None
        return self.struct(field.struct) if field.element == "struct" else self.plain(field.element)

    def plain(self, kind: Kind) -> Any:
        number = next(self.numbers)
        match kind:
            case "bool":
                return True
            case "int8":
                return number % 100 + 1
            case "int16" | "int32" | "int64":
                return number + 1000
            case "float64":
                return number + 0.5
            case "uuid":
                return UUID(int=number << 70 | number)
            case "string":
                return f"ß{number}" * 20
        return b"\x00\xff" * 90 + bytes([number % 256])


def to_json(value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return {
            KAFKA_NAMES.get(name, re.sub(r"_(.)", lambda match: match[1].upper(), name)): to_json(
                getattr(value, name), version
            )
            for name, field in value.FIELDS.items()
            if version in field.versions
            and not (field.kind == "struct" and getattr(value, name) is None and field.tag is not None)
        }
    if isinstance(value, list):
        return [to_json(item, version) for item in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def kafka_class(message: type[Message]) -> str:
    is_header = message.__name__.endswith("Header")
    return message.__name__ + ("Data" if is_header or issubclass(message, Request | Response) else "")


def test_same_bytes_as_kafka(kafka_lib: Path, tmp_path: Path) -> None:
    messages = [(message, version) for message, version, _ in every_message_and_version()]
    compare(messages, class_path(kafka_lib, program(kafka_lib)), tmp_path)


def test_same_bytes_as_kafka_4(kafka_lib: Path, kafka4_lib: Path, tmp_path: Path) -> None:
    compare(list(newer_messages()), ["-cp", f"{kafka4_lib}/*:{kafka_lib}/*:{program(kafka_lib)}"], tmp_path)


def program(jars: Path) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("this Java has no compiler")
    return compiled(Path(__file__).with_name("KafkaWire.java"), jars)


def compare(messages: list[tuple[type[Message], int]], classes: list[str], tmp_path: Path) -> None:
    samples = [
        (Filler(version, sparse=sparse).struct(message), version)
        for message, version in messages
        for sparse in (False, True)
    ]
    lines = [
        f"{kafka_class(type(value))} {version} {json.dumps(to_json(value, version))}" for value, version in samples
    ]
    (tmp_path / "samples").write_text("\n".join(lines))
    command = ["java", *SHORT_LIVED, *classes, "KafkaWire", str(tmp_path / "samples")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    written = run.stdout.split("\n")[:-1]
    for (value, version), theirs in zip(samples, written, strict=True):
        assert value.encode(version).hex() == theirs, f"{type(value).__name__} v{version}"
