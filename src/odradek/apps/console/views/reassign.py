"""A reassignment before, while and after it runs."""

from collections.abc import Sequence

from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.reassigner import Draft, RunsState
from odradek.apps.console.views.parts import Column, button, chip, figure, meter, paged, pager, table
from odradek.apps.figures import count, duration_text, moment, plural, size_text
from odradek.apps.reassign.journal import RunRecord
from odradek.apps.reassign.moves import BrokerForecast, Move
from odradek.apps.reassign.risks import Severity
from odradek.apps.reassign.run import Progress


def draft_html(draft: Draft, page_number: int, *, read_only: bool) -> Html:
    forecast = draft.forecast
    if not draft.plan.targets:
        return tag("div", "Nothing has to be moved: the goal is reached already.", cls="card empty")
    page = paged(len(forecast.moves), page_number)
    pace = (
        f"at {size_text(draft.throttle_bytes, '/s')} for each broker"
        if draft.throttle_bytes
        else "unknown without a throttle"
    )
    risks = [
        tag("div", tag("b", risk.severity), tag("span", risk.text), cls=f"banner {_tone(risk.severity)}")
        for risk in forecast.risks
    ]
    problems = [tag("div", tag("b", "impossible"), tag("span", text), cls="banner bad") for text in draft.problems]
    run = None if read_only else button("Run this plan", "run", cls="btn primary", disabled=bool(draft.problems))
    return together(
        tag(
            "div",
            figure("Partitions", count(len(forecast.moves)), "change their replicas"),
            figure("To copy", size_text(forecast.copied_bytes), plural(forecast.copied_replicas, "replica")),
            figure("To remove", size_text(forecast.freed_bytes), plural(forecast.removed_replicas, "replica")),
            figure("Time", duration_text(forecast.seconds * 1000 if forecast.seconds is not None else None), pace),
            figure(
                "Risks",
                count(len(forecast.risks)),
                "see below" if forecast.risks else "none foreseen",
                "warn" if forecast.risks else "",
            ),
            cls="grid",
        ),
        tag("div", problems, risks, style="margin-top:12px"),
        tag("h2", "Brokers, before and after"),
        tag("div", [_broker_html(broker, forecast.brokers) for broker in forecast.brokers], cls="brokers"),
        tag("h2", "Moves"),
        moves_table(forecast.moves[page.window]),
        pager(page),
        tag("div", run, button("Discard", "discard"), cls="row-of", style="margin-top:16px"),
    )


def _tone(severity: Severity) -> str:
    return "bad" if severity == list(Severity)[-1] else "warn"


def _broker_html(broker: BrokerForecast, all_: Sequence[BrokerForecast]) -> Html:
    top = max(max(b.held_before, b.held_after) for b in all_) or 1
    return tag(
        "div",
        tag("div", f"Broker {broker.broker}", chip(broker.rack) if broker.rack else None, cls="name"),
        tag("div", f"before: {_held(broker.replicas_before, broker.held_before, broker.preferred_before)}", cls="note"),
        meter(broker.held_before / top),
        tag("div", f"after: {_held(broker.replicas_after, broker.held_after, broker.preferred_after)}", cls="note"),
        meter(broker.held_after / top),
        cls="card brokerbox live",
    )


def _held(replicas: int, bytes_: int, preferred: int) -> str:
    return f"{plural(replicas, 'replica')}, {size_text(bytes_)}, preferred leader of {preferred}"


def moves_table(moves: Sequence[Move]) -> Html:
    rows = [
        (
            str(move.partition),
            _marks(move.before, gone=move.removing),
            "→",
            _marks(move.after, new=move.adding),
            size_text(move.copied_bytes),
            size_text(move.freed_bytes),
        )
        for move in moves
    ]
    columns = [
        Column("Partition"),
        Column("From"),
        Column(""),
        Column("To"),
        Column("To copy", numeric=True),
        Column("To remove", numeric=True, small=False),
    ]
    return table(columns, rows)


def _marks(replicas: Sequence[int], *, gone: Sequence[int] = (), new: Sequence[int] = ()) -> Html:
    def role(broker: int) -> str:
        return "out" if broker in gone else "adding" if broker in new else "isr"

    return tag("span", [tag("span", broker, cls=f"b {role(broker)}") for broker in replicas], cls="bs")


def runs_html(state: RunsState, *, read_only: bool) -> Html:
    parts: list[object] = []
    if state.fault:
        parts.append(tag("div", tag("b", "The last run failed."), tag("span", state.fault), cls="banner bad"))
    if state.progress is not None:
        parts.append(progress_html(state.progress))
    if state.ongoing:
        rows = [
            (str(tp), _marks(move.replicas, gone=move.removing, new=move.adding))
            for tp, move in sorted(state.ongoing.items())[:50]
        ]
        parts += [
            tag("h2", f"Being moved now: {plural(len(state.ongoing), 'partition')}"),
            table([Column("Partition"), Column("Replicas")], rows),
        ]
    runs = [_run_cells(record, is_running, read_only=read_only) for record, is_running in state.runs]
    columns = [
        Column("Begun"),
        Column("Partitions", numeric=True),
        Column("Throttle", numeric=True, small=False),
        Column("State"),
        Column("", numeric=True),
    ]
    parts += [tag("h2", "Runs"), table(columns, runs, empty="No reassignment was run here yet.")]
    return together(parts)


def progress_html(progress: Progress) -> Html:
    share = progress.copied_bytes / progress.total_bytes if progress.total_bytes else 0.0
    left = f", {duration_text(progress.eta_seconds * 1000)} to go" if progress.eta_seconds is not None else ""
    text = (
        f"{progress.done} done, {len(progress.moving)} moving, {progress.waiting} waiting, "
        f"{progress.given_up} cancelled"
    )
    copied = f"{size_text(progress.copied_bytes)} of {size_text(progress.total_bytes)}"
    speed = f"{copied} at {size_text(progress.bytes_per_second, '/s')}{left}"
    note = tag("div", progress.note, cls="note warn") if progress.note else None
    return tag(
        "div",
        tag("b", text),
        meter(share),
        tag("div", speed, cls="note"),
        note,
        cls="card",
        style="display:grid;gap:8px",
    )


def _run_cells(record: RunRecord, is_running: bool, *, read_only: bool) -> list[object]:
    if is_running:
        state, act = chip("running", "accent"), button("Cancel", "cancel", cls="btn small danger", id=record.id)
    elif record.ended is None:
        state, act = chip("interrupted", "bad"), button("Undo", "undo", cls="btn small", id=record.id)
    else:
        tone = "ok" if record.ended == "completed" else "warn"
        state, act = chip(record.ended, tone), button("Undo", "undo", cls="btn small", id=record.id)
    return [
        tag("span", moment(record.begun_ms)[:19], cls="mono"),
        f"{len(record.done)} / {len(record.plan.targets)}",
        size_text(record.throttle_bytes, "/s") if record.throttle_bytes else "none",
        state,
        None if read_only else act,
    ]


def run_sentence(draft: Draft) -> str:
    forecast = draft.forecast
    moves = plural(len(forecast.moves), "partition")
    pace = (
        f"no broker copies faster than {size_text(draft.throttle_bytes, '/s')}"
        if draft.throttle_bytes
        else "at full speed"
    )
    removed = f"{plural(forecast.removed_replicas, 'replica')}, {size_text(forecast.freed_bytes)}"
    return (
        f"Moves replicas of {moves}: copies {size_text(forecast.copied_bytes)}, {pace}; removes {removed}. "
        "The throttle clears itself at the end; you can cancel any time, and undo afterwards."
    )
