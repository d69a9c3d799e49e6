"""A run, against a cluster that is played: what it does when brokers die, somebody interferes, or it is stopped."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from odradek.apps.reassign.admin import Unreachable
from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.throttles import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, Entity, Settings
from odradek.apps.reassign.journal import RunIsGoingOn, RunJournals
from odradek.apps.reassign.leftovers import clear_leftovers
from odradek.apps.reassign.moves import Move
from odradek.apps.reassign.run import Outcome, Progress, Run, RunOptions, ThrottleRefused
from odradek.base.clock import ManualClock
from odradek.model.topology import ReplicaAssignment, TopicPartition

MB = 1 << 20


def orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


class PlayedCluster:
    """Copies a megabyte per partition and second; a test changes it between two seconds."""

    def __init__(self, clock: ManualClock, *assignments: tuple[int, ...]) -> None:
        self.clock = clock
        self.live = {0, 1, 2, 3}
        self.replicas = {orders(n): replicas for n, replicas in enumerate(assignments)}
        self.moving: dict[TopicPartition, tuple[int, ...]] = {}
        self.copied: dict[TopicPartition, int] = {}
        self.configs: dict[Entity, dict[str, str | None]] = {}
        self.is_reachable = True
        self.most_at_once = 0
        self.each_second: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.clock.advance(round(seconds * 1000))
        self.each_second()
        for tp, target in list(self.moving.items()):
            if set(target) <= self.live:
                self.copied[tp] = self.copied.get(tp, 0) + MB
            if self.copied.get(tp, 0) >= 3 * MB:
                self.replicas[tp] = target
                del self.moving[tp]

    def live_brokers(self) -> frozenset[int]:
        self._answer()
        return frozenset(self.live)

    def assignments(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        self._answer()
        return {tp: replicas for tp, replicas in self.replicas.items() if tp.topic in topics}

    def ongoing(self) -> dict[TopicPartition, ReplicaAssignment]:
        self._answer()
        return {tp: ReplicaAssignment(target) for tp, target in self.moving.items()}

    def alter(self, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[TopicPartition, str]:
        self._answer()
        refused = {}
        for tp, replicas in wanted.items():
            if replicas is None:
                if self.moving.pop(tp, None) is None:
                    refused[tp] = "nothing to cancel"
            elif set(replicas) != set(self.replicas[tp]):
                self.moving[tp], self.copied[tp] = replicas, 0
            else:
                self.replicas[tp] = replicas
        self.most_at_once = max(self.most_at_once, len(self.moving))
        return refused

    def sizes(self, brokers: Iterable[int], tps: Iterable[TopicPartition]) -> dict[tuple[TopicPartition, int], int]:
        return {(tp, broker): self.copied.get(tp, 0) for broker in brokers for tp in tps}

    def settings(self, entities: Iterable[Entity]) -> dict[Entity, dict[str, str | None]]:
        return {
            entity: {key: self.configs.get(entity, {}).get(key) for key in entity.throttle_keys} for entity in entities
        }

    def set(self, settings: Settings) -> dict[Entity, str]:
        failed = {}
        for entity, values in settings.items():
            if not self.is_reachable or (entity.kind == "broker" and int(entity.name) not in self.live):
                failed[entity] = "no answer"
                continue
            kept = {k: v for k, v in {**self.configs.get(entity, {}), **values}.items() if v is not None}
            self.configs[entity] = kept
        return failed

    @property
    def throttled(self) -> list[str]:
        return sorted(str(entity) for entity, values in self.configs.items() if values)

    def _answer(self) -> None:
        if not self.is_reachable:
            raise Unreachable("nobody answers")


class Stage:
    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(1_000_000)
        self.cluster = PlayedCluster(self.clock, (0, 1), (1, 0), (0, 1), (1, 2))
        self.journals = RunJournals(directory, self.clock)
        self.seen: list[Progress] = []

    def run(self, targets: Mapping[int, tuple[int, ...]], **options: int | None) -> Outcome:
        moves = [
            Move(orders(n), self.cluster.replicas[orders(n)], after, self.cluster.replicas[orders(n)][0], 3 * MB)
            for n, after in targets.items()
        ]
        chosen = RunOptions(**{"throttle_bytes": MB, "at_once": 2, "dead_broker_ms": 10_000, **options})
        run = Run(moves, self.cluster, self.journals, chosen, clock=self.clock, sleep=self.cluster.sleep)
        return run.execute(self.seen.append)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_all_arrive_few_at_a_time_and_throttles_are_gone(stage: Stage) -> None:
    outcome = stage.run({0: (0, 2), 1: (2, 0), 2: (3, 1)})
    assert (outcome.how, len(outcome.done), outcome.given_up) == ("completed", 3, {})
    assert stage.cluster.replicas[orders(1)] == (2, 0)
    assert stage.cluster.most_at_once == 2
    assert stage.cluster.throttled == []
    assert [progress.copied_bytes for progress in stage.seen] == sorted(p.copied_bytes for p in stage.seen)
    assert stage.seen[-1].copied_bytes == stage.seen[-1].total_bytes == 9 * MB
    assert any(progress.eta_seconds for progress in stage.seen)


def test_throttles_name_who_sends_and_who_receives(stage: Stage) -> None:
    seen: dict[Entity, dict[str, str | None]] = {}
    stage.cluster.each_second = lambda: seen.update({e: dict(v) for e, v in stage.cluster.configs.items() if v})
    stage.run({0: (0, 2)})
    topic = seen[Entity("topic", "orders")]
    assert (topic[LEADER_REPLICAS], topic[FOLLOWER_REPLICAS]) == ("0:0,0:1", "0:2")
    assert {entity.name for entity in seen if entity.kind == "broker"} == {"0", "1", "2"}


def test_a_throttle_that_was_there_before_is_there_again(stage: Stage) -> None:
    stage.cluster.configs[Entity("broker", "0")] = {LEADER_RATE: "777"}
    stage.run({0: (0, 2)})
    assert stage.cluster.configs[Entity("broker", "0")] == {LEADER_RATE: "777"}


def test_a_dead_newcomer_is_given_up_and_the_others_go_on(stage: Stage) -> None:
    def die() -> None:
        stage.cluster.live.discard(3)

    stage.cluster.each_second = die
    outcome = stage.run({0: (0, 3), 1: (2, 0), 2: (0, 3)})
    assert outcome.how == "completed in part"
    assert outcome.done == {orders(1)}
    assert set(outcome.given_up) == {orders(0), orders(2)}
    assert "broker 3 is dead" in outcome.given_up[orders(0)]
    assert stage.cluster.moving == {}
    assert stage.cluster.throttled == ["broker 3"]  # it can't be reached; its journal knows
    stage.cluster.live.add(3)
    (left,) = clear_leftovers(stage.journals, stage.cluster)
    assert left.cleared == {Entity("broker", "3")}
    assert stage.cluster.throttled == []
    assert clear_leftovers(stage.journals, stage.cluster) == []


def test_what_nobody_alive_has_is_given_up(stage: Stage) -> None:
    def die() -> None:
        stage.cluster.live.difference_update({0, 1})
        stage.cluster.copied.clear()

    stage.cluster.each_second = die
    outcome = stage.run({0: (2, 3)}, throttle_bytes=None)
    assert outcome.given_up == {orders(0): "every broker that has it is dead"}


def test_a_broker_that_is_back_in_time_is_waited_for(stage: Stage) -> None:
    def away_for_a_while() -> None:
        (stage.cluster.live.discard if 1_003_000 < stage.clock.now_ms() < 1_010_000 else stage.cluster.live.add)(2)

    stage.cluster.each_second = away_for_a_while
    assert stage.run({0: (0, 2)}).how == "completed"


def test_ctrl_c_cancels_what_is_under_way_and_clears(stage: Stage) -> None:
    def interrupt() -> None:
        if stage.clock.now_ms() >= 1_003_000:
            stage.cluster.each_second = lambda: None
            raise KeyboardInterrupt

    stage.cluster.each_second = interrupt
    with pytest.raises(KeyboardInterrupt):
        stage.run({0: (2, 0), 1: (2, 0), 2: (2, 0)})
    assert stage.cluster.moving == {}
    assert stage.cluster.replicas[orders(0)] == (0, 1)
    assert stage.cluster.throttled == []
    record = stage.journals.latest()
    assert record is not None
    assert (record.ended, record.uncleared) == ("stopped", set())


def test_what_was_killed_is_found_and_cleared_when_its_moves_are_done(stage: Stage) -> None:
    moves = [Move(orders(0), (0, 1), (0, 2), 0, 3 * MB)]
    throttles = {Entity("broker", "0"): {LEADER_RATE: "5"}}
    run = Run(moves, stage.cluster, stage.journals, RunOptions(), clock=stage.clock, sleep=stage.cluster.sleep)
    before = stage.cluster.settings(throttles)
    journal = stage.journals.begin(_plan(moves), _plan(moves), 5, 1, before)
    stage.cluster.set(throttles)
    stage.cluster.alter({orders(0): (0, 2)})
    with pytest.raises(RunIsGoingOn):
        stage.journals.go_on(journal.record)
    assert clear_leftovers(stage.journals, stage.cluster) == []  # somebody is at it
    journal.close()

    (left,) = clear_leftovers(stage.journals, stage.cluster)
    assert (left.under_way, left.is_interrupted, stage.cluster.throttled) == ({orders(0)}, True, ["broker 0"])
    record = stage.journals.latest()
    assert record is not None
    assert run.go_on(stage.journals.go_on(record)).how == "completed"
    assert stage.cluster.throttled == []


def test_a_cluster_that_never_answers_ends_the_run_with_its_debts_written_down(stage: Stage) -> None:
    def vanish() -> None:
        stage.cluster.is_reachable = stage.clock.now_ms() < 1_002_000

    stage.cluster.each_second = vanish
    with pytest.raises(Unreachable):
        stage.run({0: (0, 2)})
    record = stage.journals.latest()
    assert record is not None
    assert Entity("topic", "orders") in record.uncleared
    assert "could not be cancelled" in record.given_up[orders(0)]


def test_a_request_that_was_lost_on_its_way_is_sent_again(stage: Stage) -> None:
    def deaf_for_a_second() -> None:
        stage.cluster.is_reachable = stage.clock.now_ms() != 1_001_000

    stage.cluster.each_second = deaf_for_a_second
    assert stage.run({0: (0, 2)}).how == "completed"


def test_a_move_that_somebody_else_cancelled_is_not_forced(stage: Stage) -> None:
    def meddle() -> None:
        if stage.clock.now_ms() >= 1_003_000:
            stage.cluster.moving.pop(orders(0), None)

    stage.cluster.each_second = meddle
    outcome = stage.run({0: (0, 2), 1: (2, 0)})
    assert outcome.done == {orders(1)}
    assert "outside of this run" in outcome.given_up[orders(0)]


def test_without_its_throttle_nothing_begins(stage: Stage) -> None:
    stage.cluster.live.discard(1)
    with pytest.raises(ThrottleRefused, match="broker 1"):
        stage.run({0: (0, 2)})
    assert stage.cluster.most_at_once == 0
    stage.cluster.live.add(1)
    clear_leftovers(stage.journals, stage.cluster)
    assert stage.cluster.throttled == []


def test_a_run_can_be_asked_to_stop(stage: Stage) -> None:
    def ask() -> None:
        record = stage.journals.latest()
        assert record is not None
        record.cancel_mark.touch()

    stage.cluster.each_second = ask
    outcome = stage.run({0: (0, 2)})
    assert (outcome.how, stage.cluster.moving, stage.cluster.throttled) == ("stopped", {}, [])


def _plan(moves: list[Move]) -> Plan:
    return Plan({move.partition: move.after for move in moves})
