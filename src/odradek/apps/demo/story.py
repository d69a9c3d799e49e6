"""The demo from beginning to end: its events, its observations, and the verdict."""

import select
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from odradek.apps.cli.output import Format, print_rows
from odradek.apps.demo.observer import Observer, Sample
from odradek.apps.demo.proof import Proof, prove
from odradek.apps.demo.quick import activation, stopped_at_the_end
from odradek.apps.demo.report import html_report
from odradek.apps.demo.stage import BROKERS, DEAD_LETTERS, REVENUE, Stage
from odradek.apps.demo.traffic import Traffic
from odradek.apps.demo.view import DemoView
from odradek.apps.pipeline.rich_console import data_console, note_console
from odradek.apps.pipeline.sample_orders import Sent
from odradek.base.errors import FatalError

_LOOK_SECONDS = 0.5
_PATIENCE_S = 300.0
_KILL_AT, _RETURN_AT = 0.3, 0.65
_SETTLED_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: int
    rate: int
    kills: bool
    asks: bool
    report: Path


@dataclass(frozen=True, slots=True)
class Telling:
    """Data of the report."""

    plan: Plan
    samples: list[Sample]  # from the moment when the shop opens, which is second 0
    marks: list[tuple[float, str]]
    sent: Sent
    proof: Proof


@dataclass(slots=True)
class _Crash:
    """Crash of a broker and its return; at most one broker is down at a time."""

    stage: Stage
    tell: Callable[[str], None]
    victim: int | None = None
    done: bool = False

    def kill(self) -> None:
        leads = self.stage.leaders()
        self.victim = max(leads, key=lambda broker: leads[broker])
        self.stage.cluster.broker(self.victim).kill()
        self.tell(f"broker {self.victim} is dead (kill -9); it led {leads[self.victim]} partitions of the orders")

    def bring_back(self) -> None:
        if self.victim is not None:
            self.stage.cluster.start_broker(self.victim)
            self.tell(f"broker {self.victim} is back, and catches up")
        self.victim, self.done = None, True


@dataclass(slots=True)
class _Show:
    plan: Plan
    stage: Stage
    view: DemoView
    observer: Observer
    marks: list[tuple[float, str]] = field(default_factory=list)
    opened_s: float = 0.0

    def mark(self, text: str) -> None:
        at_s = time.monotonic() - self.observer.began
        self.marks.append((at_s, text))
        self.view.tell(at_s, text)

    def play(self) -> Sent:
        self.stage.start_cluster()
        ports = [address.rpartition(":")[2] for address in self.stage.bootstrap.split(",")]
        self.mark(f"ZooKeeper and {BROKERS} brokers serve, at ports {ports[0]} to {ports[-1]}")
        self.stage.start_pipeline()
        traffic = Traffic(self.stage.bootstrap, self.plan.rate)
        traffic.start()
        self._until(lambda sample: sample.processed > 0, traffic, "the first batch")
        self.mark("the pipeline runs: the first batch is in the table")
        self.opened_s = time.monotonic() - self.observer.began
        traffic.open()
        self.mark(f"the shop opens: {self.plan.rate} orders a second")
        self._sell(traffic)
        sent = traffic.stop()
        self.mark(f"the shop closes: {sent.total:,} records were acknowledged")
        self._until_settled(traffic)
        self.mark("everything that was sent has been read")
        self.stage.stop_pipeline()
        return sent

    def _sell(self, traffic: Traffic) -> None:
        crash = _Crash(self.stage, self.mark)
        began = time.monotonic()
        while (share := (time.monotonic() - began) / self.plan.seconds) < 1:
            wants_kill = (self.plan.kills and share >= _KILL_AT) or (self.plan.asks and _enter_was_pressed())
            if wants_kill and crash.victim is None and not crash.done:
                crash.kill()
            if crash.victim is not None and share >= _RETURN_AT:
                crash.bring_back()
            hint = "press Enter to kill a broker" if self.plan.asks and not crash.done and not crash.victim else ""
            self._look(traffic, hint)
        if crash.victim is not None:
            crash.bring_back()

    def _until(self, reached: Callable[[Sample], bool], traffic: Traffic, what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not reached(self._look(traffic, "")):
            if time.monotonic() > deadline:
                raise FatalError(f"{what} did not come within {_PATIENCE_S:.0f} s")

    def _until_settled(self, traffic: Traffic) -> None:
        """Wait until no query has anything to read, and the last batch has ended."""
        calm = 0

        def settled(sample: Sample) -> bool:
            nonlocal calm
            calm = calm + 1 if sample.lag == 0 and sample.processed >= traffic.sent.total else 0
            return calm >= _SETTLED_LOOKS

        self._until(settled, traffic, "the end of the input")

    def _look(self, traffic: Traffic, hint: str) -> Sample:
        time.sleep(_LOOK_SECONDS)
        traffic.check()
        status = self.stage.status()
        sample = self.observer.look(traffic.sent.total, status)
        self.view.show(sample, status, hint)
        return sample


def tell(plan: Plan) -> bool:
    """Run the demo; return whether nothing was lost and nothing counted twice."""
    console = data_console()
    with tempfile.TemporaryDirectory(prefix="odradek-demo-") as directory:
        stage = Stage(Path(directory))
        with stopped_at_the_end(stage.cluster):
            observer = Observer(stage)
            try:
                with _without_echo(plan.asks), DemoView(note_console()) as view:
                    show = _Show(plan, stage, view, observer)
                    sent = show.play()
                proof = prove(sent, stage.project / "data" / "orders", stage.bootstrap, DEAD_LETTERS, REVENUE)
            finally:
                observer.close()
                stage.stop_pipeline()
    plan.report.write_text(html_report(_telling(show, sent, proof)))
    _show_verdict(console, sent, proof, plan)
    return proof.ok


def _telling(show: _Show, sent: Sent, proof: Proof) -> Telling:
    opened_s = show.opened_s
    samples = [replace(s, at_s=s.at_s - opened_s) for s in show.observer.samples if s.at_s >= opened_s]
    marks = [(at_s - opened_s, text) for at_s, text in show.marks if at_s >= opened_s]
    return Telling(show.plan, samples, marks, sent, proof)


def _show_verdict(console: Console, sent: Sent, proof: Proof, plan: Plan) -> None:
    console.print(
        f"\n{sent.total:,} records were acknowledged: {sent.good:,} orders, {sent.twice:,} of them sent twice on "
        f"purpose, and {sent.bad:,} that are no orders.\n"
    )
    rows: list[dict[str, object]] = [
        {"what": c.what, "expected": c.expected, "found": c.found, "lost": c.lost, "twice": c.twice, "wrong": c.wrong}
        for c in proof.checks
    ]
    print_rows(rows, ("what", "expected", "found", "lost", "twice", "wrong"), Format.TABLE)
    verdict = (
        "Nothing is lost, nothing is counted twice." if proof.ok else "RECORDS ARE LOST OR DOUBLED: see the table."
    )
    console.print(verdict, style="bold green" if proof.ok else "bold red")
    console.print(f"The report, with plots: {plan.report.absolute()}\n")
    console.print("A pipeline of your own:\n")
    for command in (
        *activation(),
        "odradek up --data my-cluster --detach",
        "odradek pipeline init shop",
        "less shop/README.md",
    ):
        console.print(f"  {command}", style="cyan")


@contextmanager
def _without_echo(is_terminal: bool) -> Iterator[None]:
    """Switch the terminal's echo off: typed characters would move the cursor, and the picture with it."""
    if not is_terminal:
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _enter_was_pressed() -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready and sys.stdin.readline())
