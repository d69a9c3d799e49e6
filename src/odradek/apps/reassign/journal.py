"""The journal of runs: the intentions, actions and remaining cleanup of each run, in a directory of its own.

    DIR/20261117T021005-4711.jsonl       one run; a line for each event, the first has the whole plan

A line is durable before its action begins, so the journal of a killed run has the throttles to clear and the plan to
undo it. The file of a running run is locked.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.throttles import Entity, Settings
from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import FatalError
from odradek.model.topology import TopicPartition


def state_directory(cluster_id: str) -> Path:
    """Return the directory of this user's runs on that cluster: below $ODRADEK_STATE_DIR, or in the usual place for
    state.
    """
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    root = os.environ.get("ODRADEK_STATE_DIR") or Path(home) / "odradek"
    return Path(root) / "reassignments" / cluster_id


@dataclass(slots=True)
class RunRecord:
    """One run, read from its file."""

    path: Path
    begun_ms: int = 0
    plan: Plan = field(default_factory=lambda: Plan({}))
    before: Plan = field(default_factory=lambda: Plan({}))
    """Plan that restores the former assignment."""
    throttle_bytes: int | None = None
    at_once: int = 1
    settings_before: dict[Entity, dict[str, str | None]] = field(default_factory=dict)
    """Values that the throttles replace; their entities are to be cleared."""
    uncleared: set[Entity] = field(default_factory=set)
    done: set[TopicPartition] = field(default_factory=set)
    given_up: dict[TopicPartition, str] = field(default_factory=dict)
    ended: str | None = None
    """Result of the run; None while it runs, or if it was killed."""

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def cancel_mark(self) -> Path:
        """File whose existence asks the run to stop."""
        return self.path.with_suffix(".cancel")

    def is_running(self) -> bool:
        """True if a process holds its lock."""
        try:
            with self.path.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def apply(self, line: Mapping[str, Any]) -> None:
        match line["what"]:
            case "begun":
                self.begun_ms = line["time_ms"]
                self.plan = Plan.from_text(json.dumps(line["plan"]))
                self.before = Plan.from_text(json.dumps(line["before"]))
                self.throttle_bytes = line["throttle"]
                self.at_once = line["at_once"]
                self.settings_before = {Entity(*name): values for name, values in line["settings_before"]}
                self.uncleared = set(self.settings_before)
            case "done":
                self.done.update(_partitions(line))
            case "given up":
                self.given_up.update(dict.fromkeys(_partitions(line), line["why"]))
            case "cleared":
                self.uncleared.difference_update(Entity(*name) for name in line["entities"])
            case "ended":
                self.ended = line["how"]


class RunJournal:
    """The file of one run, open for adding."""

    def __init__(self, record: RunRecord, file: TextIO, clock: Clock = SYSTEM_CLOCK) -> None:
        self.record = record
        self._file = file
        self._clock = clock

    def add(self, what: str, **facts: Any) -> None:
        line = {"time_ms": self._clock.now_ms(), "what": what, **facts}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.record.apply(line)

    def done(self, tps: set[TopicPartition]) -> None:
        self.add("done", partitions=sorted(tps))

    def given_up(self, tps: set[TopicPartition], why: str) -> None:
        self.add("given up", partitions=sorted(tps), why=why)

    def cleared(self, entities: set[Entity]) -> None:
        self.add("cleared", entities=[[entity.kind, entity.name] for entity in sorted(entities)])

    def close(self) -> None:
        self._file.close()
        self.record.cancel_mark.unlink(missing_ok=True)


class RunJournals:
    def __init__(self, directory: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._directory = directory
        self._clock = clock

    def all(self) -> list[RunRecord]:
        """Return all runs, oldest first; empty files are left out."""
        records = (read_record(path) for path in sorted(self._directory.glob("*.jsonl")))
        return [record for record in records if record is not None]

    def latest(self) -> RunRecord | None:
        return next(reversed(self.all()), None)

    def begin(
        self, plan: Plan, before: Plan, throttle_bytes: int | None, at_once: int, settings_before: Settings
    ) -> RunJournal:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FatalError(f"no journal can be kept, nothing was changed: {error}; set ODRADEK_STATE_DIR") from None
        now_ms = self._clock.now_ms()
        name = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S") + f"{now_ms % 1000:03d}"
        journal = self._open(RunRecord(self._directory / f"{name}-{os.getpid()}.jsonl"))
        journal.add(
            "begun",
            plan=plan.as_json(),
            before=before.as_json(),
            throttle=throttle_bytes,
            at_once=at_once,
            settings_before=[[[e.kind, e.name], dict(values)] for e, values in settings_before.items()],
        )
        return journal

    def go_on(self, record: RunRecord) -> RunJournal:
        """Open the journal of an interrupted run, to finish it or to clear its settings."""
        return self._open(record)

    def _open(self, record: RunRecord) -> RunJournal:
        file = record.path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise RunIsGoingOn(record) from None
        if file.tell() and not record.path.read_bytes().endswith(b"\n"):
            file.write("\n")  # after a line that a crash has torn
        return RunJournal(record, file, self._clock)


class RunIsGoingOn(Exception):
    def __init__(self, record: RunRecord) -> None:
        super().__init__(f"run {record.id} is going on; see it with: odradek reassign status")
        self.record = record


def read_record(path: Path) -> RunRecord | None:
    record = RunRecord(path)
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record.apply(json.loads(text))
        except (ValueError, KeyError, TypeError):
            continue  # a torn line
    return record if record.begun_ms else None


def _partitions(line: Mapping[str, Any]) -> set[TopicPartition]:
    return {TopicPartition(topic, partition) for topic, partition in line["partitions"]}
