"""JSON as the JVM writes it: compact, UTF-8, and keyed in the order of its hash tables.

Readers don't care about the order, but a node that is equal to the byte can be compared, diffed and copied between
the two systems without noise. Only the znode codecs use this module.

Both tables start with 16 buckets and double when three quarters full. Within a bucket Scala's keeps its entries by
hash, `java.util.Properties` in the order in which they came.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any


def to_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def scala_map_order(keys: Collection[str]) -> list[str]:
    return properties_order(sorted(keys, key=_spread_hash))


def properties_order(keys: Collection[str]) -> list[str]:
    buckets = 16
    while len(keys) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(keys, key=lambda key: _spread_hash(key) & (buckets - 1))


def _spread_hash(text: str) -> int:
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value ^ (value >> 16)
