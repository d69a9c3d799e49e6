"""Spark pipelines: what each query reads, how fast, how far behind. What a document lacks is left out."""

from collections.abc import Mapping
from typing import Any

from odradek.console.markup import Html, link, tag, together
from odradek.console.readings.pipelines import PipelinesState
from odradek.console.views.figures import count, duration, rate, size
from odradek.console.views.parts import Column, chip, table

_TONES = {"running": "ok", "starting": "warn", "stopping": "warn", "failed": "bad", "died": "bad"}
_COLUMNS = [
    Column("Query"),
    Column("To", small=False),
    Column("Rows", numeric=True),
    Column("In", numeric=True),
    Column("Processed", numeric=True, small=False),
    Column("Batch", numeric=True, small=False),
    Column("Batch time", numeric=True),
    Column("Lag", numeric=True),
    Column("State", numeric=True, small=False),
]


def pipelines_html(state: PipelinesState) -> Html:
    if not state:
        return tag("div", "No pipeline has run in these projects yet.", cls="card empty")
    return together([_pipeline_html(document) for document in state])


def _pipeline_html(document: Mapping[str, Any]) -> Html:
    state = str(document.get("state", "?"))
    told = [
        f"Spark {document.get('spark', '?')}",
        f"generation {document.get('generation', '?')}",
        f"since {str(document.get('started_at', '?'))[:19]}",
    ]
    reason = tag("div", tag("span", str(document["reason"])), cls="banner bad") if document.get("reason") else None
    queries = [query for query in document.get("queries", []) if isinstance(query, dict)]
    return together(
        tag("h2", str(document.get("pipeline", "?")), " ", chip(state, _TONES.get(state, ""))),
        tag("p", " · ".join(told), cls="note"),
        reason,
        table(_COLUMNS, [_query_cells(query) for query in queries], empty="It has no query."),
    )


def _query_cells(query: Mapping[str, Any]) -> list[object]:
    group = query.get("group")
    name = tag("b", str(query.get("name", "?")))
    named = tag("a", name, href=link("groups", str(group)), title="as a consumer group") if group else name
    error = tag("div", str(query["error"])[:300], cls="bad note") if query.get("error") else None
    restarts = tag("div", f"{query['restarts']} restarts", cls="warn note") if query.get("restarts") else None
    kept = (
        f"{count(_number(query.get('state_rows')))} rows, {size(_number(query.get('state_bytes')))}"
        if query.get("state_rows")
        else "–"
    )
    return [
        together(named, error, restarts),
        str(query.get("target", "–")),
        count(_number(query.get("input_rows_total"))),
        rate(_number(query.get("input_rows_per_second"))),
        rate(_number(query.get("processed_rows_per_second"))),
        count(_number(query.get("batch"))),
        duration(_number(query.get("batch_ms"))),
        count(_number(query.get("lag"))),
        kept,
    ]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
