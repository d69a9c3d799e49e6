"""Use of Spark's parser, analyzer and code generator while its context starts, which takes seconds and one core.

Their classes are loaded then, and the methods that every plan uses begin to be compiled. Nothing depends on the result:
without it the first plan takes longer.
"""

from contextlib import suppress
from threading import Thread
from typing import Any

_CATALYST = "org.apache.spark.sql.catalyst"
# What a pipeline usually has: decoding, rules, windows, sums, a join and a choice of columns.
_QUERY = """
SELECT date_format(b.w.start, 'HH:mm') AS at, b.k, count(*) AS n, round(sum(b.a), 2) AS s
FROM (SELECT window(t, '10 seconds') AS w, *,
             concat_ws('; ', CASE WHEN NOT coalesce(CAST(a > 0 AS BOOLEAN), FALSE) THEN 'a' END) AS r
      FROM (SELECT f.* FROM (SELECT from_json(CAST(v AS STRING), 'k STRING, a DOUBLE, t TIMESTAMP') AS f
                             FROM VALUES ('{}') AS rows (v)) AS decoded) AS opened) AS b
     LEFT JOIN (SELECT max_by(struct(k, a), a).k AS k FROM VALUES ('k', 1.0) AS x (k, a) GROUP BY k) AS c ON b.k = c.k
WHERE b.r IS NULL GROUP BY b.w, b.k
"""
_COLUMNS = "k STRING, a DOUBLE, t TIMESTAMP, b BINARY, s STRUCT<n: BIGINT, m: ARRAY<STRING>>"


def warm_planner(jvm: Any) -> None:
    """Begin in a thread. `jvm`: the view that PySpark has of its JVM."""
    Thread(target=_plan, args=(jvm,), name="planner warm-up", daemon=True).start()


def _plan(jvm: Any) -> None:
    with suppress(Exception):  # classes inside Spark, which other releases may have elsewhere
        parser = _object(jvm, f"{_CATALYST}.parser.CatalystSqlParser$")
        columns = parser.parseTableSchema(_COLUMNS)
        _object(jvm, f"{_CATALYST}.expressions.UnsafeProjection$").create(columns)
        _object(jvm, f"{_CATALYST}.analysis.SimpleAnalyzer$").execute(parser.parsePlan(_QUERY))


def _object(jvm: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(jvm, name), "MODULE$")
