"""Decoders of `consume`: keys and values as JSON, hex or base64, by Avro schemas, and of the two internal topics.

Without --decode, bytes stay as they are; only the internal topics, and topics with a schema, are decoded.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from odradek.apps.cli.output import bytes_as_text
from odradek.apps.cli.record_text import ConsumedRecord, Decode
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.records.avro import AvroError, AvroSchema
from odradek.apps.records.decoders import AUTO, AVRO, NOTHING, Decoded, Decoder, decoder_named
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.protocol.records import Record

_EVERY_TOPIC = "*"


class RecordDecoding:
    """Decoder of keys and values of one topic."""

    def __init__(self, how: Decode, topic: str, schemas: Mapping[str, AvroSchema]) -> None:
        if _EVERY_TOPIC in schemas:
            schemas = {topic: schemas[_EVERY_TOPIC], **schemas}
        if how is Decode.AVRO and topic not in schemas:
            raise WrongUsage(
                f"there is no schema of topic {topic}: --schema FILE, or --schema {topic}=FILE", "--decode"
            )
        self._how = how
        self.problem = ""
        """Reason that a record could not be decoded, of the first one; empty without any."""
        # JSON, hex and base64 show what the automatic decoder, which knows internal topics, leaves as bytes
        name = {Decode.AVRO: f"{AVRO}{topic}", Decode.TEXT: "text"}.get(how, how.value)
        shown_here = how in (Decode.JSON, Decode.HEX, Decode.BASE64)
        self.decoder: Decoder = decoder_named(AUTO if shown_here else name, topic, schemas)
        is_internal = topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
        self._is_plain = how is Decode.TEXT or (how is Decode.AUTO and not is_internal and topic not in schemas)

    def as_text(self, record: ConsumedRecord) -> ConsumedRecord:
        """Return the record with decoded parts as JSON texts."""
        if self._is_plain:
            return record
        key, value = self._parts(record)
        return replace(record, key=_as_bytes(key), value=_as_bytes(value))

    def as_documents(self, record: ConsumedRecord) -> tuple[Any, Any]:
        """Return key and value for a JSON document."""
        if self._is_plain:
            return bytes_as_text(record.key), bytes_as_text(record.value)
        return self._parts(record)

    def _parts(self, record: ConsumedRecord) -> tuple[Any, Any]:
        if self._how in (Decode.HEX, Decode.BASE64):
            encode = _hex if self._how is Decode.HEX else _base64
            return encode(record.key), encode(record.value)
        bare = Record(record.offset, record.timestamp_ms, record.key, record.value, list(record.headers))
        return self._document(self.decoder.key(bare)), self._document(self.decoder.value(bare))

    def _document(self, decoded: Decoded) -> Any:
        if decoded.document is not NOTHING:
            return decoded.document
        self.problem = self.problem or decoded.problem
        return bytes_as_text(decoded.data)


def read_schemas(given: Iterable[str], option: str = "--schema") -> dict[str, AvroSchema]:
    """Read the schemas of TOPIC=FILE, or of FILE alone for all topics that are read."""
    found: dict[str, AvroSchema] = {}
    for text in given:
        topic, equals, file = text.rpartition("=")
        try:
            found[topic if equals else _EVERY_TOPIC] = AvroSchema(Path(file).read_text("utf-8"))
        except OSError as error:
            raise WrongUsage(f"{file} can't be read: {error.strerror}", option) from None
        except (AvroError, UnicodeDecodeError) as error:
            raise WrongUsage(f"{file}: {error}", option) from None
    return found


def decodings(how: Decode, schemas: Mapping[str, AvroSchema], topics: Iterable[str]) -> dict[str, RecordDecoding]:
    if schemas and how not in (Decode.AUTO, Decode.AVRO):
        raise WrongUsage(f"--decode {how} takes no schema", "--schema")
    return {topic: RecordDecoding(how, topic, schemas) for topic in topics}


def _as_bytes(part: Any) -> bytes | None:
    if part is None:
        return None
    text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace")


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")
