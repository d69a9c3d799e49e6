"""Actions of a commit in Delta's log, as the Delta protocol writes them: one JSON object a line."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from odradek.base.errors import FatalError

Action = dict[str, Any]
SchemaFields = list[dict[str, Any]]

_NTZ = "timestampNtz"
_CONFIGURATION = {"delta.deletedFileRetentionDuration": "interval 1 hours", "delta.checkpointInterval": "50"}
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_FORBIDDEN_IN_NAMES = " ,;{}()\n\t="
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_PRIMITIVES = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
     "timestamp_ntz"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table; its path is relative to the table."""

    path: str
    size: int
    rows: int
    modified_ms: int

    @property
    def directory(self) -> str:
        return self.path.partition("/")[0]

    @property
    def partition_values(self) -> dict[str, str | None]:
        """Values of the partition columns, read from the path as Spark writes it."""
        pairs = [part.partition("=") for part in self.path.split("/")[1:-1]]
        return {unquote(name): None if value == NULL_PARTITION else unquote(value) for name, _, value in pairs}


def commit_info(operation: str, now_ms: int, **facts: Any) -> Action:
    return {"commitInfo": {"timestamp": now_ms, "operation": operation, "engineInfo": "odradek", **facts}}


def transaction(writer: str, batch: int, now_ms: int) -> Action:
    return {"txn": {"appId": writer, "version": batch, "lastUpdated": now_ms}}


def add(file: DataFile, *, is_new_data: bool) -> Action:
    return {
        "add": {
            "path": quote(file.path, safe="/=-_.~"),
            "partitionValues": file.partition_values,
            "size": file.size,
            "modificationTime": file.modified_ms,
            "dataChange": is_new_data,
            "stats": json.dumps({"numRecords": file.rows}),
        }
    }


def remove(file: DataFile, now_ms: int, *, is_data_lost: bool) -> Action:
    return {
        "remove": {
            "path": quote(file.path, safe="/=-_.~"),
            "deletionTimestamp": now_ms,
            "dataChange": is_data_lost,
            "extendedFileMetadata": True,
            "partitionValues": file.partition_values,
            "size": file.size,
        }
    }


def protocol(fields: SchemaFields) -> Action:
    """The lowest protocol that the columns allow, so that most readers open the table."""
    if _has_ntz(fields):
        features = {"readerFeatures": [_NTZ], "writerFeatures": [_NTZ, "appendOnly", "invariants"]}
        return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(table_id: str, fields: SchemaFields, partition_by: Sequence[str], created_ms: int) -> Action:
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partition_by),
            "configuration": _CONFIGURATION,
            "createdTime": created_ms,
        }
    }


def as_lines(actions: Iterable[Action]) -> str:
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def from_lines(text: str) -> list[Action]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def table_fields(schema: Mapping[str, Any], sink: str) -> SchemaFields:
    """Return the fields of Spark's schema as a Delta table has them: all nullable. FatalError names a column that
    Delta can't have.
    """
    for field in schema["fields"]:
        name = field["name"]
        if any(character in name for character in _FORBIDDEN_IN_NAMES):
            raise FatalError(
                f"[sinks.{sink}]: a Delta table can't have a column named {name!r} (none of {_FORBIDDEN_IN_NAMES!r}): "
                'give it another name, or set format = "parquet"'
            )
        if kind := _unknown_type(field["type"]):
            raise FatalError(
                f'[sinks.{sink}]: {name} is {kind}, which Delta tables don\'t have: cast it, or set format = "parquet"'
            )
    return [{**_plain(field), "metadata": {}} for field in schema["fields"]]


def grown(before: SchemaFields, now: SchemaFields, sink: str, table: str) -> SchemaFields:
    """Return the fields of the table with the new ones. FatalError for a field with another type."""
    known = {field["name"].lower(): field for field in before}
    for field in now:
        kept = known.get(field["name"].lower())
        if kept is not None and _plain(kept)["type"] != field["type"]:
            raise FatalError(
                f"[sinks.{sink}]: {field['name']} is {_type_text(kept['type'])} in the table {table}, and would be "
                f"{_type_text(field['type'])} now: cast it, give it another name, or choose another table"
            )
    return [*before, *(field for field in now if field["name"].lower() not in known)]


def _plain(node: Any) -> Any:
    """The type with all fields nullable, at every depth: an absent column is written as null."""
    if isinstance(node, dict):
        plain = {key: _plain(value) for key, value in node.items() if key != "metadata"}
        plain |= {key: True for key in ("nullable", "containsNull", "valueContainsNull") if key in plain}
        return plain | ({"metadata": {}} if "name" in plain else {})
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return "string" if isinstance(node, str) and node.startswith(("varchar(", "char(")) else node


def _unknown_type(kind: Any) -> str | None:
    """Return the name of a type, at any depth, that Delta tables don't have."""
    if isinstance(kind, str):
        known = kind in _PRIMITIVES or kind.startswith(("decimal(", "varchar(", "char("))
        return None if known else kind
    parts = [field["type"] for field in kind.get("fields", [])]
    parts += [kind[key] for key in ("elementType", "keyType", "valueType") if key in kind]
    if kind.get("type") not in ("struct", "array", "map"):
        return str(kind.get("type"))
    return next((found for part in parts if (found := _unknown_type(part))), None)


def _has_ntz(node: Any) -> bool:
    if isinstance(node, dict):
        return any(_has_ntz(value) for key, value in node.items() if key != "name")
    return any(map(_has_ntz, node)) if isinstance(node, list) else node == "timestamp_ntz"


def _type_text(kind: Any) -> str:
    """The type as Spark's SQL writes it."""
    if isinstance(kind, str):
        return _SQL_NAMES.get(kind, kind)
    if kind["type"] == "struct":
        parts = [f"{field['name']}:{_type_text(field['type'])}" for field in kind["fields"]]
        return f"struct<{','.join(parts)}>"
    if kind["type"] == "map":
        return f"map<{_type_text(kind['keyType'])},{_type_text(kind['valueType'])}>"
    return f"array<{_type_text(kind['elementType'])}>"
