"""`odradek sim`: simulated clusters with faults, one per seed, and checks of their guarantees."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import note
from odradek.apps.cli.usage import Exit, WrongUsage
from odradek.apps.cli.watch import CLEAR
from odradek.apps.html_page import heading, html_table, page, paragraph, verdict_line
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.cluster_view import view_of
from odradek.sim.shrinking import kind_of, numbers_as_text, numbers_of, shrink
from odradek.sim.simulation import Outcome, simulate
from odradek.sim.story import Step

_SECONDS_A_STEP = 0.15
_LINES = 12


def show_step(cluster: SimulatedCluster, number: int, step: Step) -> None:
    """Print a picture. On a terminal it replaces the one before; elsewhere they follow each other."""
    on_terminal = sys.stdout.isatty()
    lines = [f"step {number}: {step.name.replace('_', ' ')}", "", *picture(cluster), "", *cluster.trace[-_LINES:]]
    sys.stdout.write((CLEAR if on_terminal else "") + "\n".join(lines) + "\n")
    sys.stdout.flush()
    if on_terminal:
        time.sleep(_SECONDS_A_STEP)


def picture(cluster: SimulatedCluster) -> list[str]:
    """Draw a line per broker: its state, and role, epoch, high watermark and end of each replica."""
    view = view_of(cluster)
    lines = []
    for broker in view.brokers:
        session = "session" if broker.has_session else "no session"
        controls = "controller" if broker.is_controller else ""
        lines.append(f"broker {broker.broker_id}  {'up' if broker.is_alive else 'down':5}{session:12}{controls}")
        for replica in broker.replicas:
            role = "leader" if replica.is_leader else "follower"
            offsets = f"hw {replica.high_watermark:4}  end {replica.log_end_offset:4}"
            lines.append(f"    {replica.partition:24}{role:9}epoch {replica.leader_epoch:3}  {offsets}")
    lines += [f"{p.name:28}leader {p.leader:2}  epoch {p.leader_epoch}  isr {p.isr}" for p in view.partitions]
    lines.append(f"messages in flight: {view.messages}")
    return lines


def report_page(outcomes: Sequence[Outcome], seconds: float) -> str:
    failed = [outcome for outcome in outcomes if outcome.fault is not None]
    hours = sum(outcome.broker_hours for outcome in outcomes)
    verdict = f"{len(failed)} of {len(outcomes)} stories failed" if failed else f"{len(outcomes)} stories held"
    figures = [
        ("seeds", f"{len(outcomes):,}"),
        ("simulated broker-hours", f"{hours:,.1f}"),
        ("records acknowledged", f"{sum(outcome.acknowledged for outcome in outcomes):,}"),
        ("seconds", f"{seconds:,.0f}"),
        ("seeds an hour", f"{len(outcomes) / seconds * 3600:,.0f}"),
    ]
    sections = [heading("Simulated clusters", 1), verdict_line(verdict, is_good=not failed)]
    sections.append(html_table(("figure", "value"), figures, words=1))
    for outcome in failed:
        sections.append(heading(f"Seed {outcome.seed}"))
        sections.append(paragraph(f"{outcome.fault}"))
        sections.append(paragraph(f"odradek sim --seed {outcome.seed}"))
        sections.append(html_table(("settings", ""), [(k, str(v)) for k, v in outcome.options.items()], words=2))
        last = [(line,) for line in outcome.trace[-_TOLD_AT_THE_END:]]
        sections.append(html_table(("the end of its story",), last, words=1))
    counts: dict[str, int] = {}
    for outcome in outcomes:
        for step, number in outcome.step_counts.items():
            counts[step] = counts.get(step, 0) + number
    sections.append(heading("Steps"))
    sections.append(html_table(("step", "times"), [(s.replace("_", " "), f"{n:,}") for s, n in counts.items()], 1))
    return page("Odradek: simulated clusters", sections)


_SEEDS_UNLESS_TOLD = 100
_TOLD_AT_THE_END = 40
_NOTE_EVERY_S = 10.0


@command(
    examples=[
        "odradek sim --seeds 1000",
        "odradek sim --minutes 10 --workers 2 --report report.html",
        "odradek sim --seed 17",
        "odradek sim --seed 17 --shrink",
    ]
)
def sim(
    seeds: Annotated[int | None, Option("--seeds", min=1, help="Number of seeds to run.", show_default=False)] = None,
    first: Annotated[int, Option("--first", min=0, help="The first seed.")] = 0,
    minutes: Annotated[
        float | None, Option("--minutes", min=0, help="Run seeds for this time.", show_default=False)
    ] = None,
    workers: Annotated[int, Option("--workers", min=1, help="Processes that run seeds.")] = 1,
    seed: Annotated[
        int | None, Option("--seed", min=0, help="Run this seed alone and print its story.", show_default=False)
    ] = None,
    steps: Annotated[
        str, Option("--steps", metavar="0-3,7", help="With --seed: only these steps of its story.", show_default=False)
    ] = "",
    watch: Annotated[bool, Option("--watch", help="With --seed: show the cluster after each step.")] = False,
    shrink_: Annotated[bool, Option("--shrink", help="With --seed: find the shortest story that fails.")] = False,
    report: Annotated[
        Path | None, Option("--report", help="Write the results as one HTML page.", show_default=False)
    ] = None,
) -> None:
    """Simulate clusters with faults and check their guarantees.

    A seed determines everything: the same seed is the same story. Exit code 0: all guarantees held.
    """
    _use_fixed_hashes()
    if seed is None:
        if steps or watch or shrink_:
            raise WrongUsage("--steps, --watch and --shrink need --seed")
        _run_seeds(seeds, first, minutes, workers, report)
        return
    if seeds is not None or minutes is not None or report is not None:
        raise WrongUsage("--seed excludes --seeds, --minutes and --report")
    kept = _numbers(steps) if steps else None
    outcome = simulate(seed, kept, show_step if watch else None)
    if shrink_ and outcome.fault is not None:
        kept = _shrunk(outcome, kept)
        outcome = simulate(seed, kept)
    _tell_story(outcome, kept)
    if outcome.fault is not None:
        raise Exit(1)


def _use_fixed_hashes() -> None:
    """The order of sets depends on the hashes of strings, which Python draws anew for each process by default."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})


def _numbers(text: str) -> list[int]:
    try:
        return numbers_of(text)
    except ValueError:
        raise WrongUsage(f"{text!r} is not a list of step numbers such as 0-3,7", "--steps") from None


def _tell_story(outcome: Outcome, kept: list[int] | None) -> None:
    for line in outcome.trace:
        print(line)
    print()
    for name, value in outcome.options.items():
        print(f"{name}={value}")
    print(_verdict(outcome, kept))


def _verdict(outcome: Outcome, kept: list[int] | None = None) -> str:
    if outcome.fault is None:
        return f"seed {outcome.seed}: held ({outcome.acknowledged} records acknowledged)"
    chosen = "" if kept is None else f" --steps {numbers_as_text(kept)}"
    return f"seed {outcome.seed}: {outcome.fault}\nrepeat: odradek sim --seed {outcome.seed}{chosen}"


def _shrunk(outcome: Outcome, kept: list[int] | None) -> list[int]:
    assert outcome.fault is not None
    kind = kind_of(outcome.fault)

    def fails(numbers: Sequence[int]) -> bool:
        fault = simulate(outcome.seed, numbers).fault
        return fault is not None and kind_of(fault) == kind

    numbers = kept if kept is not None else list(range(len(outcome.steps)))
    found = shrink(numbers, fails)
    note(f"{len(numbers)} steps shrunk to {len(found)}")
    return found


# ---- many seeds


def _run_seeds(seeds: int | None, first: int, minutes: float | None, workers: int, report: Path | None) -> None:
    started = time.monotonic()
    is_bounded = seeds is not None or minutes is None
    numbers = islice(count(first), (seeds or _SEEDS_UNLESS_TOLD) if is_bounded else None)
    outcomes: list[Outcome] = []
    noted = started
    for outcome in _outcomes(numbers, workers, started + minutes * 60 if minutes is not None else None):
        outcomes.append(outcome)
        if outcome.fault is not None:
            print("\n".join(outcome.trace[-_TOLD_AT_THE_END:]))
            print(_verdict(outcome))
        if time.monotonic() - noted > _NOTE_EVERY_S:
            noted = time.monotonic()
            note(f"{len(outcomes)} seeds, {sum(o.fault is not None for o in outcomes)} failed")
    seconds = time.monotonic() - started
    print(summary(outcomes, seconds))
    if report is not None:
        report.write_text(report_page(outcomes, seconds))
    if any(outcome.fault is not None for outcome in outcomes):
        raise Exit(1)


def summary(outcomes: list[Outcome], seconds: float) -> str:
    failed = [outcome.seed for outcome in outcomes if outcome.fault is not None]
    hours = sum(outcome.broker_hours for outcome in outcomes)
    return (
        f"{len(outcomes)} seeds, {len(failed)} failed{f' ({failed})' if failed else ''}, "
        f"{hours:.1f} simulated broker-hours, {sum(o.acknowledged for o in outcomes)} records acknowledged, "
        f"{seconds:.0f} s, {len(outcomes) / seconds * 3600:.0f} seeds an hour"
    )


def _outcomes(seeds: Iterator[int], workers: int, until: float | None) -> Iterator[Outcome]:
    """Outcomes in the order of the seeds. Stories that held come without trace: a night has many."""
    if workers == 1:
        for seed in seeds:
            if until is not None and time.monotonic() > until:
                return
            yield _outcome(seed)
        return
    with ProcessPoolExecutor(workers) as pool:
        while (until is None or time.monotonic() < until) and (chunk := list(islice(seeds, workers * 16))):
            yield from pool.map(_outcome, chunk, chunksize=4)


def _outcome(seed: int) -> Outcome:
    return simulate(seed).brief()
