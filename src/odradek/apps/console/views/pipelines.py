"""Spark pipelines: input, rates and lag of each query. Missing fields of a document are left out."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.pipelines import LIVE, NEVER_RAN, PipelinesState
from odradek.apps.console.views.parts import Column, button, chip, spark, table
from odradek.apps.figures import count, duration_text, moment, plural, rate, size_text

_TONES = {"running": "ok", "starting": "warn", "stopping": "warn", "failed": "bad", "died": "bad"}
_HAS_SPARK = ("starting", "running", "stopping")
_WITHOUT_QUERIES = {
    "starting": "Spark is starting; the first batch compiles its queries, up to a minute.",
    "failed": "It failed before it had a query.",
}
_COLUMNS = [
    Column("Query"),
    Column("Sink", small=False),
    Column("Rows", numeric=True),
    Column("", small=False),
    Column("In", numeric=True),
    Column("Processed", numeric=True, small=False),
    Column("Batch", numeric=True, small=False),
    Column("Batch time", numeric=True),
    Column("Lag", numeric=True),
    Column("State", numeric=True, small=False),
]


def pipelines_html(state: PipelinesState, *, read_only: bool = True) -> Html:
    if not state.documents:
        return tag("div", "No pipeline has run in these projects yet.", cls="card empty")
    return together([_pipeline_html(document, state, read_only) for document in state.documents])


def _pipeline_html(document: Mapping[str, Any], state: PipelinesState, read_only: bool) -> Html:
    doing, project = str(document.get("state", "?")), str(document.get("project"))
    has_run = doing != NEVER_RAN
    facts = [
        f"Spark {document.get('spark', '?')}",
        f"run {document.get('generation', '?')}",
        f"since {_when(document.get('started_at'))}",
        f"updated {_when(document.get('updated_at'))}",
    ]
    if not has_run:
        facts = [project]
    refused = document.get("dead_letters")
    letters = (
        together(" · dead letters in ", tag("a", str(refused), href=link("messages", topic=str(refused))))
        if refused
        else None
    )
    address = str(document.get("spark_ui") or "")
    spark_ui = (
        together(" · ", tag("a", "Spark UI", href=address, target="_blank", rel="noreferrer"))
        if address.startswith(("http://", "https://")) and doing in _HAS_SPARK
        else None
    )
    reason = tag("div", tag("span", str(document["reason"])), cls="banner bad") if document.get("reason") else None
    queries = [query for query in document.get("queries", []) if isinstance(query, dict)]
    rows = [
        _query_cells(query, project, state.rates.get((project, str(query.get("name"))), ()), is_live=doing == "running")
        for query in queries
    ]
    return together(
        tag(
            "div",
            tag("h2", str(document.get("pipeline", "?")), " ", chip(doing, _TONES.get(doing, "")), cls="grow"),
            None if read_only else _acts(doing, str(document.get("directory", ""))),
            cls="top",
        ),
        tag("p", " · ".join(facts), letters, spark_ui, cls="note"),
        reason,
        table(_COLUMNS, rows, empty=_WITHOUT_QUERIES.get(doing, "It has no query.")) if has_run else None,
    )


def _acts(doing: str, directory: str) -> list[Html]:
    if doing in LIVE:
        return [button("Stop", "stop", cls="btn danger", directory=directory)]
    return [
        button("Start", "start", directory=directory),
        *([button("Replay", "replay", cls="btn danger", directory=directory)] if doing != NEVER_RAN else []),
    ]


def _query_cells(query: Mapping[str, Any], project: str, rates: Sequence[float], *, is_live: bool) -> list[object]:
    """Cells of a query; without rates where the pipeline doesn't run, since those of its last batch are of the past."""
    group = query.get("group")
    name = tag("b", str(query.get("name", "?")))
    named = tag("a", name, href=link("groups", str(group)), title="as a consumer group") if group else name
    error = tag("div", str(query["error"])[:300], cls="bad note") if query.get("error") else None
    restarts = tag("div", plural(int(query["restarts"]), "restart"), cls="warn note") if query.get("restarts") else None
    batch = _number(query.get("batch"))
    has_run = batch is not None and batch >= 0
    waits = None if has_run or not is_live else tag("div", "no batch yet", cls="note")
    return [
        together(named, error, restarts, _dropped(query), waits),
        str(query.get("target", "–")).replace(f"{project}/", ""),
        count(_number(query.get("input_rows_total"))),
        spark(rates) if is_live else "",
        rate(_number(query.get("input_rows_per_second"))) if is_live and has_run else "–",
        rate(_number(query.get("processed_rows_per_second"))) if is_live and has_run else "–",
        count(batch) if has_run else "–",
        duration_text(_number(query.get("batch_ms"))) if has_run else "–",
        tag("span", count(lag := _number(query.get("lag"))), cls="warn" if lag else ""),
        _kept(query),
    ]


def _dropped(query: Mapping[str, Any]) -> Html | None:
    dropped = [
        f"{count(number)} {what}"
        for key, what in (("duplicates_total", "duplicates"), ("late_rows_total", "late rows"))
        if (number := _number(query.get(key)))
    ]
    return tag("div", "dropped: ", ", ".join(dropped), cls="note") if dropped else None


def _kept(query: Mapping[str, Any]) -> str:
    if not query.get("state_rows"):
        return "–"
    return f"{count(_number(query.get('state_rows')))} rows, {size_text(_number(query.get('state_bytes')))}"


def _when(value: object) -> str:
    """`2026-11-17 02:13:15` here, of an ISO time."""
    try:
        return moment(int(datetime.fromisoformat(str(value)).timestamp() * 1000))[:19]
    except ValueError:
        return "?"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
