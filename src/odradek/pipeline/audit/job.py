"""The audit as a Spark job over `format("odradek-log")`: five questions about batches, one about records.

What is compared lies below the high watermark, which is the largest that any replica of the partition has checkpointed:
what is above may still be cut off, and differ. Below the offset that a broker's cleaner has reached, compaction explains
missing offsets, and replicas clean at their own pace; there the records that both still have are compared, one by one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from odradek.pipeline.audit.findings import AuditReport, Finding, Kind, TopicCount
from odradek.pipeline.cold.log_directories import ReplicaDirectory, log_directories, replicas
from odradek.pipeline.source.errors import OptionError

LISTED_FINDINGS: Final = 1000
_REPLICA: Final = ("topic", "partition", "broker")
_PARTITION: Final = ("topic", "partition")
_REPLICA_SCHEMA: Final = "topic string, partition int, broker int, committed long, own_committed long, start long, cleaned long, any_cleaned long"
# Sequences wrap after 2^31 records of one producer in one partition; the same number so far apart is no duplicate.
_SEQUENCES: Final = 2**31


def audit(spark: SparkSession, paths: Sequence[str], topics: frozenset[str] = frozenset()) -> AuditReport:
    found = replicas(paths, topics)
    if not found:
        raise OptionError(f"there is no partition of {', '.join(sorted(topics)) or 'any topic'} in {', '.join(paths)}")
    options = {"path": ",".join(paths), "topics": ",".join(sorted(topics))}
    known = spark.createDataFrame(_replica_rows(found), _REPLICA_SCHEMA)
    batches = spark.read.format("odradek-log").options(**options, rows="batches").load()
    # A batch whose header can't be believed has a place in its file, but none among the offsets.
    all_batches = batches.join(f.broadcast(known), [*_REPLICA]).cache()
    try:
        whole = all_batches.where("problem is null")
        questions = [
            _broken(all_batches),
            _different(whole),
            _missing(whole, known),
            _not_contiguous(whole),
            _short(all_batches, known),
            _duplicates(whole),
        ]
        if any(replica.cleaned_to for replica in found):
            records = (
                spark.read.format("odradek-log").options(**options, mode="DROPMALFORMED", includeHeaders="true").load()
            )
            questions.append(_different_records(records, known))
        findings = reduce(DataFrame.unionByName, questions).cache()
        listed = findings.orderBy("topic", "partition", "offset", "kind").limit(LISTED_FINDINGS).collect()
        return AuditReport(
            directories=tuple(str(path) for path in log_directories(paths)),
            brokers=tuple(sorted({replica.broker for replica in found})),
            topics=_counts(whole),
            findings=tuple(
                Finding(r.topic, r.partition, r.offset, Kind(r.kind), tuple(sorted(r.brokers)), r.detail)
                for r in listed
            ),
            findings_in_all=findings.count() if len(listed) == LISTED_FINDINGS else len(listed),
        )
    finally:
        all_batches.unpersist()


def _replica_rows(found: Iterable[ReplicaDirectory]) -> list[tuple[str, int, int, int, int, int, int, int]]:
    """Each replica with what is known of it, and of its partition through the others."""
    found = list(found)
    committed: dict[object, int] = {}
    cleaned: dict[object, int] = {}
    for replica in found:
        committed[replica.partition] = max(committed.get(replica.partition, 0), replica.high_watermark or 0)
        cleaned[replica.partition] = max(cleaned.get(replica.partition, 0), replica.cleaned_to or 0)
    return [
        (
            *replica.partition,
            replica.broker,
            committed[replica.partition],
            replica.high_watermark or 0,
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


def _broken(batches: DataFrame) -> DataFrame:
    """Bytes that aren't those that were written. A torn tail above the high watermark is a crash's, and will be cut."""
    detail = f.concat_ws(
        "", f.lit("byte "), f.col("position"), f.lit(" of "), f.col("segment"), f.lit(": "), f.col("problem")
    )
    broken = batches.where("problem is not null and (baseOffset < committed or baseOffset < 0)")
    return broken.select(*_finding(Kind.BROKEN, "baseOffset", f.array("broker"), detail))


def _different(whole: DataFrame) -> DataFrame:
    """One batch, other bytes. Where any replica was cleaned, batches are rewritten, and records are compared instead."""
    versions = (
        whole.where("lastOffset < committed and baseOffset >= any_cleaned")
        .groupBy(*_PARTITION, "baseOffset")
        .agg(f.count_distinct("digest").alias("versions"), f.collect_set("broker").alias("brokers"))
    )
    detail = f.concat_ws("", f.lit("the batch has "), f.col("versions"), f.lit(" contents"))
    return versions.where("versions > 1").select(*_finding(Kind.DIFFERENT, "baseOffset", f.col("brokers"), detail))


def _missing(whole: DataFrame, known: DataFrame) -> DataFrame:
    """A batch that one replica has, and another doesn't though its log goes on after it."""
    ends = whole.groupBy(*_REPLICA).agg(f.max("lastOffset").alias("end"), f.min("baseOffset").alias("begin"))
    places = (
        whole.where("lastOffset < committed and baseOffset >= any_cleaned").select(*_PARTITION, "baseOffset").distinct()
    )
    there = whole.select(*_REPLICA, "baseOffset")
    expected = places.join(ends, [*_PARTITION]).where("baseOffset >= begin and baseOffset <= end")
    absent = expected.join(there, [*_REPLICA, "baseOffset"], "left_anti")
    # what can't be read is found by its checksum already, and what is a gap on its own replica as a gap
    detail = f.lit("no batch begins here, though one does on another replica")
    grouped = absent.groupBy(*_PARTITION, "baseOffset").agg(f.collect_set("broker").alias("brokers"))
    return grouped.select(*_finding(Kind.MISSING, "baseOffset", f.col("brokers"), detail))


def _not_contiguous(whole: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*_REPLICA).orderBy("baseOffset", "position")
    steps = whole.where("lastOffset < committed").withColumn("next", f.lag("lastOffset").over(in_order) + 1)
    kind = (
        f.when(f.expr("baseOffset < next"), Kind.OVERLAP.value)
        .when(f.expr("baseOffset > next and baseOffset > cleaned"), Kind.GAP.value)
        .when(f.expr("records <> lastOffset - baseOffset + 1 and baseOffset >= cleaned"), Kind.GAP.value)
    )
    detail = f.when(
        f.expr("baseOffset <> next"),
        f.concat_ws("", f.lit("a batch begins here, and the one before ends at "), f.col("next") - 1),
    ).otherwise(
        f.concat_ws("", f.lit("the batch has "), f.col("records"), f.lit(" records up to "), f.col("lastOffset"))
    )
    return (
        steps.withColumn("kind", kind)
        .withColumn("detail", detail)
        .where("kind is not null")
        .select(
            "topic",
            "partition",
            f.col("baseOffset").alias("offset"),
            "kind",
            f.array("broker").alias("brokers"),
            "detail",
        )
    )


def _short(batches: DataFrame, known: DataFrame) -> DataFrame:
    """A replica that once had everything up to its own checkpointed high watermark, and no longer does."""
    ends = batches.groupBy(*_REPLICA).agg((f.max("lastOffset") + 1).alias("end"))
    short = (
        known.join(ends, [*_REPLICA], "left").withColumn("end", f.coalesce("end", "start")).where("end < own_committed")
    )
    detail = f.concat_ws("", f.lit("its log ends here, its high watermark is "), f.col("own_committed"))
    return short.select(*_finding(Kind.SHORT, "end", f.array("broker"), detail))


def _duplicates(whole: DataFrame) -> DataFrame:
    """An idempotent producer numbers its records: the same number twice is a record twice."""
    numbered = whole.where("baseSequence >= 0 and not isControl and lastOffset < committed")
    twice = (
        numbered.groupBy(*_PARTITION, "producerId", "producerEpoch", "baseSequence")
        .agg(
            f.min("baseOffset").alias("first"),
            f.max("baseOffset").alias("last"),
            f.collect_set("broker").alias("brokers"),
        )
        .where(f"last > first and last - first < {_SEQUENCES}")
    )
    who = [f.lit("producer "), f.col("producerId"), f.lit(" wrote sequence "), f.col("baseSequence"), f.lit(" at ")]
    detail = f.concat_ws("", *who, f.col("first"), f.lit(" too"))
    return twice.select(*_finding(Kind.DUPLICATE, "last", f.col("brokers"), detail))


def _different_records(records: DataFrame, known: DataFrame) -> DataFrame:
    """Where a cleaner has been: an offset that several replicas have is the same record on all of them."""
    content = f.xxhash64("key", "value", "timestamp", f.to_json("headers"))
    versions = (
        records.join(f.broadcast(known.where("any_cleaned > 0")), [*_REPLICA])
        .where("offset < any_cleaned and offset < committed")
        .groupBy(*_PARTITION, "offset")
        .agg(f.count_distinct(content).alias("versions"), f.collect_set("broker").alias("brokers"))
    )
    detail = f.concat_ws("", f.lit("the record has "), f.col("versions"), f.lit(" contents"))
    return versions.where("versions > 1").select(*_finding(Kind.DIFFERENT, "offset", f.col("brokers"), detail))


def _counts(whole: DataFrame) -> tuple[TopicCount, ...]:
    per_replica = whole.groupBy(*_REPLICA).agg(
        f.sum(f.expr("if(lastOffset < committed and not isControl, records, 0)")).alias("records"),
        f.count("*").alias("batches"),
        f.sum("bytes").alias("bytes"),
        f.sum(f.expr("if(lastOffset >= committed, records, 0)")).alias("uncommitted"),
    )
    per_partition = per_replica.groupBy(*_PARTITION).agg(
        f.count("*").alias("replicas"),
        *(f.max(name).alias(name) for name in ("records", "batches", "bytes", "uncommitted")),
    )
    rows = per_partition.groupBy("topic").agg(
        f.count("*").alias("partitions"),
        *(f.sum(name).alias(name) for name in ("replicas", "records", "batches", "bytes", "uncommitted")),
    )
    return tuple(sorted(TopicCount(**row.asDict()) for row in rows.collect()))


def as_json(report: AuditReport) -> dict[str, object]:
    return asdict(report)
