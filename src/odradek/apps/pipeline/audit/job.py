"""The audit as a Spark job over `format("odradek-log")`: questions about batches, and one about records.

Each replica is compared below its own high watermark, as its broker has checkpointed it: records above may still be
truncated there, and differ, even if other replicas have committed them. Below the offset that a broker's cleaner has
reached, compaction explains missing offsets, and replicas clean at their own pace; there the records that both still
have are compared, one by one.
"""

import time
from collections.abc import Iterable
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f

from odradek.apps.pipeline.audit.assignment import AuditScope
from odradek.apps.pipeline.audit.findings import AuditReport, Finding, Kind, OpenTransaction, TopicCount
from odradek.apps.pipeline.segment_source.log_directories import ReplicaDirectory
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import SEQUENCES

LISTED_FINDINGS: Final = 1000
HANGING_AFTER_MS: Final = 15 * 60_000
"""The default of transaction.max.timeout.ms."""
_REPLICA: Final = ("topic", "partition", "broker")
_PARTITION: Final = ("topic", "partition")
# `committed` is the replica's own high watermark, `any_committed` the largest that one of the partition has.
_REPLICA_SCHEMA: Final = (
    "topic string, partition int, broker int, "
    "committed long, any_committed long, flushed long, start long, cleaned long, any_cleaned long"
)


def audit(spark: SparkSession, scope: AuditScope) -> AuditReport:
    files = spark.read.format("odradek-log").option("path", ",".join(scope.paths))
    files = files.option("topics", ",".join(sorted(scope.topics)))
    known = spark.createDataFrame(_replica_rows(scope.replicas), _REPLICA_SCHEMA)
    # options stay with a reader, so records are asked for before batches
    records = files.option("mode", "DROPMALFORMED").option("includeHeaders", "true").load()
    batches = files.option("rows", "batches").load().join(f.broadcast(known), [*_REPLICA]).cache()
    try:
        whole = batches.where("problem is null")
        questions = [
            _broken(batches),
            _different(whole),
            _missing(batches, known),
            _not_contiguous(batches),
            _short(batches, known),
            _duplicates(whole),
        ]
        if any(replica.cleaned_to for replica in scope.replicas):
            questions.append(_different_records(records, known))
        findings = reduce(DataFrame.unionByName, questions)
        listed = findings.orderBy("topic", "partition", "offset", "kind").limit(LISTED_FINDINGS).collect()
        in_all = findings.count() if len(listed) == LISTED_FINDINGS else len(listed)
        return AuditReport(
            directories=tuple(scope.paths),
            brokers=scope.brokers,
            topics=_counts(whole, known),
            findings=tuple(sorted([*scope.absent, *map(_as_finding, listed)])[:LISTED_FINDINGS]),
            findings_in_all=in_all + len(scope.absent),
            assignment=scope.assignment,
            open_transactions=_open_transactions(whole, time.time_ns() // 1_000_000),
            left_overs=scope.left_overs,
            not_compared=scope.not_compared,
        )
    finally:
        batches.unpersist()


def _as_finding(row: Row) -> Finding:
    return Finding(row.topic, row.partition, row.offset, Kind(row.kind), tuple(sorted(row.brokers)), row.detail)


def _replica_rows(found: Iterable[ReplicaDirectory]) -> list[tuple[str | int, ...]]:
    """Return each replica with its own facts, and the facts of its partition from the others."""
    found = list(found)
    committed: dict[TopicPartition, int] = {}
    cleaned: dict[TopicPartition, int] = {}
    for replica in found:
        committed[replica.partition] = max(committed.get(replica.partition, 0), replica.high_watermark or 0)
        cleaned[replica.partition] = max(cleaned.get(replica.partition, 0), replica.cleaned_to or 0)
    return [
        (
            *replica.partition,
            replica.broker,
            replica.high_watermark or 0,
            committed[replica.partition],
            replica.flushed_to or 0,
            replica.log_start or 0,
            replica.cleaned_to or 0,
            cleaned[replica.partition],
        )
        for replica in found
    ]


def _finding(kind: Kind, offset: str, brokers: Column, detail: Column) -> list[Column]:
    return [
        f.col("topic"),
        f.col("partition"),
        f.col(offset).alias("offset"),
        f.lit(kind.value).alias("kind"),
        brokers.alias("brokers"),
        detail.alias("detail"),
    ]


def _detail(*parts: str | Column) -> Column:
    return f.concat_ws("", *(f.lit(part) if isinstance(part, str) else part for part in parts))


def _broken(batches: DataFrame) -> DataFrame:
    """Find batches whose bytes are not the written ones. A torn tail after a crash is no finding, because recovery
    truncates it: above the high watermark and above the recovery point, below which everything was flushed to disk.
    """
    detail = _detail("byte ", f.col("position"), " of ", f.col("segment"), ": ", f.col("problem"))
    broken = batches.where("problem is not null and (baseOffset < greatest(committed, flushed) or baseOffset < 0)")
    return broken.select(*_finding(Kind.BROKEN, "baseOffset", f.array("broker"), detail))


def _different(whole: DataFrame) -> DataFrame:
    """Find batches with different bytes. Compaction rewrites batches: below the cleaned offset of any replica, records
    are compared."""
    versions = (
        whole.where("lastOffset < committed and baseOffset >= any_cleaned")
        .groupBy(*_PARTITION, "baseOffset")
        .agg(f.count_distinct("digest").alias("versions"), f.collect_set("broker").alias("brokers"))
    )
    detail = _detail("the batch has ", f.col("versions"), " contents")
    return versions.where("versions > 1").select(*_finding(Kind.DIFFERENT, "baseOffset", f.col("brokers"), detail))


def _missing(batches: DataFrame, known: DataFrame) -> DataFrame:
    """Find batches that one replica has and another lacks, although its log continues after them."""
    ends = batches.groupBy(*_REPLICA).agg(f.max("lastOffset").alias("end"), f.min("baseOffset").alias("begin"))
    compared = batches.where("problem is null and lastOffset < committed and baseOffset >= any_cleaned")
    places = compared.select(*_PARTITION, "baseOffset").distinct()
    there = batches.select(*_REPLICA, "baseOffset")  # a broken one is there, and found by its checksum
    reached = ends.join(f.broadcast(known.select(*_REPLICA, "committed")), [*_REPLICA])
    expected = places.join(reached, [*_PARTITION]).where(
        "baseOffset >= begin and baseOffset <= end and baseOffset < committed"
    )
    absent = expected.join(there, [*_REPLICA, "baseOffset"], "left_anti")
    grouped = absent.groupBy(*_PARTITION, "baseOffset").agg(f.collect_set("broker").alias("brokers"))
    detail = f.lit("no batch begins here, though one does on another replica")
    return grouped.select(*_finding(Kind.MISSING, "baseOffset", f.col("brokers"), detail))


def _not_contiguous(batches: DataFrame) -> DataFrame:
    """Find gaps between batches, but not beside a broken batch, whose header may be wrong."""
    in_order = Window.partitionBy(*_REPLICA).orderBy("baseOffset", "position")
    before = f.lag(f.expr("if(problem is null, lastOffset, null)")).over(in_order)
    steps = batches.withColumn("next", before + 1).where("problem is null and lastOffset < committed")
    kind = (
        f.when(f.expr("baseOffset < next"), Kind.OVERLAP.value)
        .when(f.expr("baseOffset > next and baseOffset > cleaned"), Kind.GAP.value)
        .when(f.expr("records <> lastOffset - baseOffset + 1 and baseOffset >= cleaned"), Kind.GAP.value)
    )
    detail = f.when(
        f.expr("baseOffset <> next"), _detail("a batch begins here, and the one before ends at ", f.col("next") - 1)
    ).otherwise(_detail("the batch has ", f.col("records"), " records up to ", f.col("lastOffset")))
    found = steps.withColumn("kind", kind).withColumn("detail", detail).withColumn("brokers", f.array("broker"))
    columns = ("topic", "partition", "baseOffset as offset", "kind", "brokers", "detail")
    return found.where("kind is not null").selectExpr(*columns)


def _short(batches: DataFrame, known: DataFrame) -> DataFrame:
    """Find replicas whose log ends below their own checkpointed high watermark."""
    ends = batches.groupBy(*_REPLICA).agg((f.max("lastOffset") + 1).alias("end"))
    replicas_with_ends = known.join(ends, [*_REPLICA], "left").withColumn("end", f.coalesce("end", "start"))
    detail = _detail("its log ends here, its high watermark is ", f.col("committed"))
    short = replicas_with_ends.where("end < committed")
    return short.select(*_finding(Kind.SHORT, "end", f.array("broker"), detail))


def _duplicates(whole: DataFrame) -> DataFrame:
    """Find repeated sequences of idempotent producers: the same sequence twice is a record twice."""
    by_producers = whole.where("producerId >= 0 and baseSequence >= 0 and not isControl and lastOffset < committed")
    numbered = by_producers.where(f.col("topic") != OFFSETS_TOPIC)
    twice = (
        numbered.groupBy(*_PARTITION, "producerId", "producerEpoch", "baseSequence")
        .agg(
            f.min("baseOffset").alias("first"),
            f.max("baseOffset").alias("last"),
            f.collect_set("broker").alias("brokers"),
        )
        .where(f"last > first and last - first < {SEQUENCES}")
    )
    number = ("producer ", f.col("producerId"), " wrote sequence ", f.col("baseSequence"))
    detail = _detail(*number, " at ", f.col("first"), " too")
    return twice.select(*_finding(Kind.DUPLICATE, "last", f.col("brokers"), detail))


def _different_records(records: DataFrame, known: DataFrame) -> DataFrame:
    """Compare records after compaction: an offset that several replicas have is the same record on all of them."""
    content = f.xxhash64("key", "value", "timestamp", f.to_json("headers"))
    versions = (
        records.join(f.broadcast(known.where("any_cleaned > 0")), [*_REPLICA])
        .where("offset < any_cleaned and offset < committed")
        .groupBy(*_PARTITION, "offset")
        .agg(f.count_distinct(content).alias("versions"), f.collect_set("broker").alias("brokers"))
    )
    detail = _detail("the record has ", f.col("versions"), " contents")
    return versions.where("versions > 1").select(*_finding(Kind.DIFFERENT, "offset", f.col("brokers"), detail))


def _open_transactions(whole: DataFrame, now_ms: int) -> tuple[OpenTransaction, ...]:
    """Find transactions without a marker on any replica: one that is behind may not have it yet."""
    in_transactions = whole.where("isTransactional and lastOffset < any_committed")
    ended = (
        in_transactions.where("isControl").groupBy(*_PARTITION, "producerId").agg(f.max("baseOffset").alias("ended"))
    )
    records = in_transactions.where("not isControl").join(ended, [*_PARTITION, "producerId"], "left")
    first = f.min(f.struct("baseOffset", "producerEpoch", "maxTimestamp")).alias("first")
    rows = (
        records.where("ended is null or baseOffset > ended")
        .groupBy(*_PARTITION, "producerId")
        .agg(first, f.max("any_committed").alias("end"))
        .orderBy(*_PARTITION, "first.baseOffset")
        .limit(LISTED_FINDINGS)
        .collect()
    )
    return tuple(
        OpenTransaction(
            row.topic,
            row.partition,
            row.first.baseOffset,
            row.producerId,
            row.first.producerEpoch,
            since_ms=row.first.maxTimestamp,
            held_back=row.end - row.first.baseOffset,
            is_hanging=now_ms - row.first.maxTimestamp > HANGING_AFTER_MS,
        )
        for row in rows
    )


def _counts(whole: DataFrame, known: DataFrame) -> tuple[TopicCount, ...]:
    """Count records; replicas without records count as replicas."""
    per_replica = whole.groupBy(*_REPLICA).agg(
        f.sum(f.expr("if(lastOffset < any_committed and not isControl, records, 0)")).alias("records"),
        f.count("*").alias("batches"),
        f.sum("bytes").alias("bytes"),
        f.sum(f.expr("if(lastOffset >= any_committed, records, 0)")).alias("uncommitted"),
    )
    counted = ("records", "batches", "bytes", "uncommitted")
    fullest = [f.max(name).alias(name) for name in counted]
    replicas = known.select(*_REPLICA).join(per_replica, [*_REPLICA], "left").na.fill(0)
    per_partition = replicas.groupBy(*_PARTITION).agg(f.count("*").alias("replicas"), *fullest)
    summed = [f.sum(name).alias(name) for name in ("replicas", *counted)]
    rows = per_partition.groupBy("topic").agg(f.count("*").alias("partitions"), *summed)
    return tuple(sorted(TopicCount(**row.asDict()) for row in rows.collect()))
