"""Good records and dead letters: one pass judges each record and gives the reason.

A record is either good or a dead letter, never both and never neither: a rule that can't be answered (null) counts as
broken. The decision depends on the record alone, so it is the same whenever the record is read again.
"""

from typing import TYPE_CHECKING

from odradek.apps.pipeline.decoding import UNDECODABLE, columns_of, decoded, is_text
from odradek.apps.pipeline.spark_errors import in_one_sentence
from odradek.apps.pipeline.spec import Decoding, Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD = "_record"
REASON = "_reason"
_VALUE = "_value"
# A dead letter always fits into a topic with the default max.message.bytes.
VALUE_BYTES_MAX = 900_000
KEY_BYTES_MAX = 90_000


def judged(raw: "DataFrame", decoding: Decoding, source: Source | None = None) -> "DataFrame":
    """The decoded columns, `_record` (where it came from), `_value` (its bytes) and `_reason` (null: good)."""
    from pyspark.sql import functions as F

    record = F.struct("topic", "partition", "offset", "timestamp", "key").alias(RECORD)
    fields = F.col("_fields")
    names = [field.name for field in columns_of(decoding).fields]
    columns = [fields[name].alias(name) for name in names]
    staged = raw.select(record, F.col("value").alias(_VALUE), decoded(F.col("value"), decoding).alias("_fields"))
    opened = staged.select(RECORD, _VALUE, fields[UNDECODABLE].alias(UNDECODABLE), *columns)
    reason = F.coalesce(_decoding_error(decoding), _broken_rules(decoding, source))
    return opened.select(RECORD, _VALUE, *(F.col(f"`{name}`") for name in names), reason.alias(REASON))


def exchanged(judgement: "DataFrame", source: Source) -> "DataFrame":
    """Rows of a stream for several branches of one query: Spark reads, decodes and judges them once.

    Spark computes an exchange once where several branches have the same one. So nothing of a branch may be moved below
    it, neither a filter nor a choice of columns: each branch begins with `branch_of`. The watermark stands below it as
    well, and counts good rows only.
    """
    from pyspark.sql import functions as F

    is_bad = F.col(REASON).isNotNull()
    changed = {_VALUE: F.when(is_bad, F.col(_VALUE))}
    if source.watermark:
        column = source.watermark.column
        changed[column] = F.when(~is_bad, F.col(f"`{column}`"))
    rows = judgement.withColumns(changed)
    if source.watermark:
        rows = rows.withWatermark(source.watermark.column, source.watermark.delay)
    by = [F.col(f"`{name}`") for name in source.dedupe] or [F.col(RECORD)["offset"]]
    return rows.repartition(*by)


def branch_of(exchange: "DataFrame", source: Source) -> "DataFrame":
    """The rows of the source behind an expression that the optimizer does not move operations through.

    Keys of the deduplication stay columns of the exchange, so that it needs no other, and so does the watermark's.
    """
    from pyspark.sql import functions as F

    kept = {*source.dedupe, *([source.watermark.column] if source.watermark else [])}
    packed = F.struct(*(F.col(f"`{name}`") for name in exchange.columns))  # all columns, also those that stay beside it
    row = F.when(F.spark_partition_id() >= 0, packed).alias("_row")
    beside = [F.col(f"`{name}`") for name in exchange.columns if name in kept]
    columns = [F.col(f"`{name}`") if name in kept else F.col("_row")[name].alias(name) for name in exchange.columns]
    return exchange.select(*beside, row).select(*columns)


def good(judgement: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    return judgement.where(F.col(REASON).isNull()).drop(REASON, _VALUE)


def header(key: str, value: "Column") -> "Column":
    from pyspark.sql import functions as F

    return F.struct(F.lit(key).alias("key"), value.cast("string").cast("binary").alias("value"))


def fitting(key: "Column", value: "Column") -> tuple["Column", "Column"]:
    """Return key and value for a topic: a long value is truncated; a long key becomes null, because a part would be
    another key."""
    from pyspark.sql import functions as F

    cut = F.when(F.length(value) > VALUE_BYTES_MAX, F.substring(value, 1, VALUE_BYTES_MAX)).otherwise(value)
    return F.when(F.length(key) <= KEY_BYTES_MAX, key).alias("key"), cut.alias("value")


def dead_letters(judgement: "DataFrame", name: str) -> "DataFrame":
    """Original key and value, as far as they fit, and headers with reason and origin."""
    from pyspark.sql import functions as F

    key, value = fitting(F.col(RECORD)["key"], F.col(_VALUE))
    headers = F.array(
        header("odradek.reason", F.col(REASON)),
        header("odradek.source", F.lit(name)),
        *(header(f"odradek.{field}", F.col(RECORD)[field]) for field in ("topic", "partition", "offset")),
        header("odradek.bytes", F.coalesce(F.length(_VALUE), F.lit(0))),
    )
    bad = judgement.where(F.col(REASON).isNotNull())
    return bad.select(key, value, headers.alias("headers"))


def _decoding_error(decoding: Decoding) -> "Column":
    """Column with the reason why the bytes don't match the schema; null if they do."""
    from pyspark.sql import functions as F

    value = F.col(_VALUE)
    reasons = [
        F.when(value.isNull(), "no value"),
        F.when(F.length(value) == 0, "empty value"),
        F.when(F.col(UNDECODABLE).isNotNull(), f"not {decoding.encoding.value} of the declared schema"),
    ]
    if is_text(decoding.encoding):
        reasons.insert(2, F.when(~F.is_valid_utf8(value), "not UTF-8"))
    return F.coalesce(*reasons)


def _broken_rules(decoding: Decoding, source: Source | None) -> "Column":
    """Column with all broken rules, so that all faults of a record are known at once; null without any."""
    from pyspark.sql import functions as F

    required = [field.name for field in columns_of(decoding).fields if not field.nullable]
    broken: list[Column] = []
    if source is not None:
        # a record without event time or identity would get lost in the state of a later step
        required += [source.watermark.column] if source.watermark else []
        required += source.dedupe
        if source.watermark and source.late_after:
            lived = F.col(f"{RECORD}.timestamp") - F.expr(f"INTERVAL {source.late_after}")
            late = f"late: {source.watermark.column} is more than {source.late_after} before the record was written"
            broken.append(F.when(F.col(source.watermark.column) < lived, late))
        for name, check in source.rules.items():
            with in_one_sentence(f"[sources.{source.name}.rules] {name!r}: "):
                holds = F.expr(check).cast("boolean")
            broken.append(F.when(~F.coalesce(holds, F.lit(False)), f"rule broken: {name}"))
    missing = [F.when(F.col(name).isNull(), f"{name} is missing") for name in dict.fromkeys(required)]
    reasons = F.concat_ws("; ", *missing, *broken)
    return F.when(reasons != "", reasons)
