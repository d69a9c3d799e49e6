"""Execution of a plan: throttled, at most so many partitions at a time, journalled, with throttles removed in every
case.

    begun → throttles set → moves, a few at a time → throttles taken back → ended

However it ends (done, stopped, an error, Ctrl-C), moves in progress are cancelled or completed, and throttles are
restored. Only a killed process leaves moves or throttles, and its journal lists them: see `leftovers`.

A partition can't move if its target broker is dead, or all brokers that have it. The run waits `dead_broker_ms` for
them, then cancels the move of this partition and continues with the others.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from odradek.apps.reassign.admin import Admin, Unreachable
from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.throttles import Entity, Settings, throttles_for
from odradek.apps.reassign.journal import RunJournal, RunJournals, RunRecord
from odradek.apps.reassign.moves import Move
from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.model.topology import TopicPartition

POLL_SECONDS = 1.0
SETTLING_SECONDS = 1.0
"""Time until brokers apply settings, of which a notice in ZooKeeper informs them; earlier moves would be
unthrottled."""
CLEARING_MS_MAX = 30_000
UNREACHABLE_MS_MAX = 120_000
"""Time without an answer after which a run is given up."""
_LOST_POLLS = 5
"""Number of checks that find a move neither done nor in progress before it counts as cancelled from outside: the
brokers' metadata lags behind the controller."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    throttle_bytes: int | None = None
    """A second, for each broker. None: unthrottled."""
    at_once: int = 10
    """Most partitions that move at the same time."""
    dead_broker_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Progress:
    waiting: int
    moving: tuple[TopicPartition, ...]
    done: int
    given_up: int
    copied_bytes: int
    total_bytes: int
    bytes_per_second: float
    eta_seconds: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    how: str
    """`completed`, `completed in part`, `stopped`, `failed: …`"""
    done: frozenset[TopicPartition]
    given_up: dict[TopicPartition, str]
    uncleared: frozenset[Entity]
    """Throttles of dead brokers: cleared by the next command after their return."""


@dataclass(slots=True)
class _Moving:
    move: Move
    seen: bool = False
    lost_polls: int = 0
    stuck_since_ms: int | None = None
    copied_bytes: int = 0


@dataclass(slots=True)
class _Rate:
    """Bytes a second, over the last half minute."""

    samples: list[tuple[int, int]] = field(default_factory=list)

    def add(self, now_ms: int, copied: int) -> float:
        self.samples = [sample for sample in self.samples if now_ms - sample[0] <= 30_000] + [(now_ms, copied)]
        (first_ms, first), (last_ms, last) = self.samples[0], self.samples[-1]
        return max(0.0, (last - first) * 1000 / (last_ms - first_ms)) if last_ms > first_ms else 0.0


class Run:
    def __init__(
        self,
        moves: Iterable[Move],
        admin: Admin,
        journals: RunJournals,
        options: RunOptions,
        *,
        stop_asked: Callable[[], bool] = lambda: False,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._all = {move.partition: move for move in moves}
        self._admin = admin
        self._journals = journals
        self._options = options
        self._stop_asked = stop_asked
        self._clock = clock
        self._sleep = sleep
        self._waiting = list(self._all.values())
        self._moving: dict[TopicPartition, _Moving] = {}
        self._rate = _Rate()
        self._note = ""

    def execute(self, on_progress: Callable[[Progress], None] = lambda progress: None) -> Outcome:
        """Run to the end. An exception, KeyboardInterrupt too, is raised after all settings of the run are cleared."""
        throttles: Settings = {}
        if self._options.throttle_bytes is not None:
            throttles = throttles_for(self._waiting, self._options.throttle_bytes)
        journal = self._journals.begin(
            Plan({move.partition: move.after for move in self._waiting}),
            Plan({move.partition: move.before for move in self._waiting}),
            self._options.throttle_bytes,
            self._options.at_once,
            self._settings_before(throttles),
        )
        return self._carry_out(journal, throttles, on_progress)

    def go_on(self, journal: RunJournal, on_progress: Callable[[Progress], None] = lambda progress: None) -> Outcome:
        """Finish a run that was killed: with its remaining moves, and perhaps another throttle."""
        throttles: Settings = {}
        if self._options.throttle_bytes is None:
            self._clear(journal)
        else:
            throttles = throttles_for(self._waiting, self._options.throttle_bytes)
        return self._carry_out(
            journal, {e: v for e, v in throttles.items() if e in journal.record.uncleared}, on_progress
        )

    def _settings_before(self, throttles: Settings) -> Settings:
        before = self._admin.settings(throttles)
        return {entity: before.get(entity, dict.fromkeys(entity.throttle_keys)) for entity in throttles}

    def _carry_out(self, journal: RunJournal, throttles: Settings, on_progress: Callable[[Progress], None]) -> Outcome:
        how = "failed"
        try:
            refused = self._admin.set(throttles)
            if refused:
                entity, why = next(iter(refused.items()))
                raise ThrottleRefused(f"{entity} could not be throttled: {why}")
            if throttles:
                self._sleep(SETTLING_SECONDS)
            how = self._move_all(journal, on_progress)
        except KeyboardInterrupt:
            how = "stopped"
            raise
        except Exception as error:
            how = f"failed: {error}"
            raise
        finally:
            self._cancel(journal, set(self._moving), "the run was stopped")
            self._clear(journal)
            journal.add("ended", how=how)
            journal.close()
        record = journal.record
        return Outcome(how, frozenset(record.done), dict(record.given_up), frozenset(record.uncleared))

    # --- moving --------------------------------------------------------------------------------------------------

    def _move_all(self, journal: RunJournal, on_progress: Callable[[Progress], None]) -> str:
        answered_ms = self._clock.monotonic_ms()
        while self._waiting or self._moving:
            if self._stop_asked() or journal.record.cancel_mark.exists():
                return "stopped"
            try:
                self._poll(journal)
                self._begin_some(journal)
                answered_ms = self._clock.monotonic_ms()
                self._note = ""
            except Unreachable as error:
                self._note = f"waiting for the cluster: {error}"
                if self._clock.monotonic_ms() - answered_ms > UNREACHABLE_MS_MAX:
                    raise
            on_progress(self._progress(journal.record))
            if self._waiting or self._moving:
                self._sleep(POLL_SECONDS)
        return "completed in part" if journal.record.given_up else "completed"

    def _begin_some(self, journal: RunJournal) -> None:
        room = self._options.at_once - len(self._moving)
        batch = self._waiting[: max(0, room)]
        if not batch:
            return
        journal.add("begins", partitions=[move.partition for move in batch])
        del self._waiting[: len(batch)]
        for move in batch:
            self._moving[move.partition] = _Moving(move)  # also after a lost answer: the move may have begun
        refused = self._admin.alter({move.partition: move.after for move in batch})
        for tp, why in refused.items():
            del self._moving[tp]
            journal.given_up({tp}, why)

    def _poll(self, journal: RunJournal) -> None:
        if not self._moving:
            return
        live = self._admin.live_brokers()
        ongoing = self._admin.ongoing()
        now = self._admin.assignments({tp.topic for tp in self._moving})
        self._measure(live)
        done = set()
        for tp, moving in self._moving.items():
            if tp in ongoing:
                moving.seen, moving.lost_polls = True, 0
            elif now.get(tp) == moving.move.after:
                done.add(tp)
            else:
                moving.lost_polls += 1
        if done:
            journal.done(done)
            for tp in done:
                del self._moving[tp]
        self._give_up_the_stuck(journal, live, set(ongoing))
        self._retry_the_lost(journal, now)

    def _give_up_the_stuck(self, journal: RunJournal, live: frozenset[int], ongoing: set[TopicPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        stuck: dict[TopicPartition, str] = {}
        for tp, moving in self._moving.items():
            obstacle = _obstacle(moving.move, live)
            if tp not in ongoing or obstacle is None:
                moving.stuck_since_ms = None
                continue
            if moving.stuck_since_ms is None:
                moving.stuck_since_ms = now_ms
            if now_ms - moving.stuck_since_ms >= self._options.dead_broker_ms:
                stuck[tp] = obstacle
        for why in sorted(set(stuck.values())):
            self._cancel(journal, {tp for tp, reason in stuck.items() if reason == why}, why)
        if stuck:
            self._drop_waiting_for_dead(journal, live)

    def _drop_waiting_for_dead(self, journal: RunJournal, live: frozenset[int]) -> None:
        """Drop moves that would only wait for a dead broker."""
        unreachable = {move.partition for move in self._waiting if any(broker not in live for broker in move.adding)}
        if unreachable:
            self._waiting = [move for move in self._waiting if move.partition not in unreachable]
            journal.given_up(unreachable, "its new broker is dead")

    def _retry_the_lost(self, journal: RunJournal, now: dict[TopicPartition, tuple[int, ...]]) -> None:
        lost = {tp for tp, moving in self._moving.items() if moving.lost_polls >= _LOST_POLLS}
        for tp in lost:
            moving = self._moving.pop(tp)
            if tp not in now:
                journal.given_up({tp}, "it was deleted")
            elif moving.seen:
                journal.given_up({tp}, "the move was cancelled or changed outside of this run")
            else:
                self._waiting.insert(0, moving.move)  # the request was lost on its way

    def _cancel(self, journal: RunJournal, tps: set[TopicPartition], why: str) -> None:
        """Cancel the moves: partitions get their former replicas, unless they are complete already."""
        if not tps:
            return
        deadline_ms = self._clock.monotonic_ms() + CLEARING_MS_MAX
        done: set[TopicPartition] = set()
        while True:
            try:
                self._admin.live_brokers()  # another controller may have been elected
                under_way = set(self._admin.ongoing()) & tps
                cancel_moves(self._admin, {tp: self._all[tp].before for tp in under_way})
                now = self._admin.assignments({tp.topic for tp in tps})
                done = {tp for tp in tps - under_way if now.get(tp) == self._all[tp].after}
                break
            except Unreachable as error:
                if self._clock.monotonic_ms() > deadline_ms:
                    why = f"{why}; it could not be cancelled: {error}"
                    break
                self._sleep(POLL_SECONDS)
        if done:
            journal.done(done)
        if tps - done:
            journal.given_up(tps - done, why)
        for tp in tps:
            self._moving.pop(tp, None)

    # --- clearing ------------------------------------------------------------------------------------------------

    def _clear(self, journal: RunJournal) -> None:
        clear(journal, self._admin, self._clock, self._sleep)

    # --- progress ------------------------------------------------------------------------------------------------

    def _measure(self, live: frozenset[int]) -> None:
        receiving = {broker for moving in self._moving.values() for broker in moving.move.adding}
        sizes = self._admin.sizes(receiving & live, self._moving)
        for tp, moving in self._moving.items():
            copied = sum(sizes.get((tp, broker), 0) for broker in moving.move.adding)
            moving.copied_bytes = min(copied, moving.move.copied_bytes)

    def _progress(self, record: RunRecord) -> Progress:
        total = sum(move.copied_bytes for tp, move in self._all.items() if tp not in record.given_up)
        copied = sum(self._all[tp].copied_bytes for tp in record.done if tp in self._all)
        copied += sum(moving.copied_bytes for moving in self._moving.values())
        rate = self._rate.add(self._clock.monotonic_ms(), copied)
        remaining = max(0, total - copied)
        return Progress(
            waiting=len(self._waiting),
            moving=tuple(self._moving),
            done=len(record.done),
            given_up=len(record.given_up),
            copied_bytes=copied,
            total_bytes=total,
            bytes_per_second=rate,
            eta_seconds=self._eta_seconds(remaining, rate),
            note=self._note,
        )

    def _eta_seconds(self, remaining: int, rate: float) -> float | None:
        """Estimate the time left by the observed rate; before there is one, by the rate that the throttle allows one
        broker.
        """
        if rate > 0:
            return remaining / rate
        throttle = self._options.throttle_bytes
        return None if throttle is None else remaining / throttle


def _obstacle(move: Move, live: frozenset[int]) -> str | None:
    dead = [broker for broker in move.after if broker not in live]
    if dead:
        return f"broker {', '.join(map(str, dead))} is dead"
    return None if live.intersection(move.before) else "every broker that has it is dead"


class ThrottleRefused(Exception):
    pass


def cancel_moves(admin: Admin, before: Mapping[TopicPartition, tuple[int, ...]]) -> dict[TopicPartition, str]:
    """Cancel the moves; return the refused ones, with the reason.

    Cancelling restores the replicas, but not their order, which may change the preferred leader. The order is requested
    afterwards, without a copy; only for cancelled moves, because the others may be complete.
    """
    if not before:
        return {}
    refused = admin.alter(dict.fromkeys(before))
    back = {tp: replicas for tp, replicas in before.items() if tp not in refused}
    return refused | (admin.alter(back) if back else {})


def clear(
    journal: RunJournal,
    admin: Admin,
    clock: Clock = SYSTEM_CLOCK,
    sleep: Callable[[float], None] = time.sleep,
    patience_ms: int = CLEARING_MS_MAX,
) -> None:
    """Restore the throttles from before the run. Retried for a while; those of a dead broker wait in the journal."""
    record = journal.record
    deadline_ms = clock.monotonic_ms() + patience_ms
    while record.uncleared:
        failed = admin.set({entity: record.settings_before[entity] for entity in record.uncleared})
        cleared = record.uncleared - failed.keys()
        if cleared:
            journal.cleared(cleared)
        if not record.uncleared or clock.monotonic_ms() >= deadline_ms or _only_dead(admin, record.uncleared):
            return
        sleep(POLL_SECONDS)


def _only_dead(admin: Admin, entities: set[Entity]) -> bool:
    try:
        live = {str(broker) for broker in admin.live_brokers()}
    except Unreachable:
        return False
    return all(entity.kind == "broker" and entity.name not in live for entity in entities)
