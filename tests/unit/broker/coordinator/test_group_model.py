"""Any story: whatever members do, in any order, what must always hold holds."""

from dataclasses import replace
from functools import partial

from group_play import RULES, Play
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core import rebalance
from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining, SyncAnswer, Syncing

INSTANCES = st.sampled_from([None, None, "static-1", "static-2"])
PROTOCOLS = st.sampled_from([(("range", b"1"),), (("range", b"2"), ("sticky", b"")), (("sticky", b""), ("range", b""))])
HOURS_MS = 7_200_000


class AnyStory(RuleBasedStateMachine):
    @initialize(max_size=st.integers(2, 6), delay_ms=st.sampled_from([0, 3_000]))
    def begin(self, max_size: int, delay_ms: int) -> None:
        self.play = Play(replace(RULES, max_size=max_size, initial_rebalance_delay_ms=delay_ms))
        self.asked = 0
        self.answered: list[int] = []
        self.known: list[str] = ["nobody"]
        self.parts: dict[int, dict[str, bytes]] = {}  # generation → who was told what

    @property
    def group(self) -> Group:
        return self.play.group

    # ---- what members do

    @rule(instance_id=INSTANCES, protocols=PROTOCOLS, careful=st.booleans(), skips=st.booleans())
    def enter(
        self, instance_id: str | None, protocols: tuple[tuple[str, bytes], ...], careful: bool, skips: bool
    ) -> None:
        self._join("", instance_id, protocols, careful and instance_id is None, skips)

    @rule(who=st.integers(0), protocols=PROTOCOLS)
    def join_again(self, who: int, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._join(self._name(who), None, protocols, False, False)

    @rule(who=st.integers(0), older=st.integers(0, 1))
    def sync(self, who: int, older: int) -> None:
        self.asked += 1
        member_id, generation = self._name(who), self.group.generation - older
        assignments = {id: f"{id} in {generation}".encode() for id in self.group.members}
        syncing = Syncing(member_id, None, generation, assignments)
        waiter = partial(self._synced, self.asked, member_id, generation)
        self.play._run(rebalance.sync(self.group, syncing, waiter, self.play.rules, self.play.now))

    @rule(who=st.integers(0), older=st.integers(0, 1))
    def beat(self, who: int, older: int) -> None:
        error = self.play.heartbeat(self._name(who), self.group.generation - older)
        assert error is not ErrorCode.NONE or older == 0

    @rule(who=st.integers(0))
    def leave(self, who: int) -> None:
        self.play.leave(self._name(who))

    @rule(ms=st.sampled_from([1, 1_000, 3_000, 9_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.play.passes(ms)

    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_COORDINATOR]))
    def the_log_changes_its_mind(self, error: ErrorCode) -> None:
        self.play.store_error = error

    @rule(slowly=st.booleans())
    def the_log_changes_its_pace(self, slowly: bool) -> None:
        self.play.stores_slowly = slowly

    @precondition(lambda self: self.play.in_flight)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]))
    def a_record_is_settled(self, error: ErrorCode) -> None:
        self.play.settle(error)

    # ---- what always holds

    @invariant()
    def everybody_is_answered_once(self) -> None:
        waiting = len(self.group.waiting_to_join) + len(self.group.waiting_to_sync)
        assert len(self.answered) == len(set(self.answered))
        # Static members that return wait for their record alone.
        assert self.asked - len(self.play.in_flight) <= len(self.answered) + waiting <= self.asked

    @invariant()
    def states_and_members_agree(self) -> None:
        group = self.group
        assert (group.state is GroupState.EMPTY) <= (not group.members)
        assert group.waiting_to_join.keys() <= group.members.keys()
        assert group.waiting_to_sync.keys() <= group.members.keys()
        assert group.pending_sync <= group.members.keys()
        assert set(group.static_members.values()) <= group.members.keys()
        assert group.leader is None if not group.members else group.leader in group.members
        assert group.state is GroupState.PREPARING_REBALANCE or not group.waiting_to_join
        assert group.state is GroupState.COMPLETING_REBALANCE or not group.waiting_to_sync

    @invariant()
    def somebody_watches_the_clock(self) -> None:
        if self.group.members or self.group.pending_members:
            woken_ms = self.group.wake_ms
            self.group.set_wake()
            assert woken_ms <= self.group.wake_ms, "woken too late"
            self.group.wake_ms = woken_ms

    def teardown(self) -> None:
        """A group whose members all fall silent ends empty, and no request is left waiting."""
        if not hasattr(self, "play"):
            return
        self.play.store_error = ErrorCode.NONE
        self.play.stores_slowly = False
        while self.play.in_flight:
            self.play.settle()
        for _ in range(20):
            self.play.passes(HOURS_MS)
        assert self.group.state is GroupState.EMPTY
        assert len(self.answered) == self.asked

    # ----

    def _name(self, who: int) -> str:
        return self.known[who % len(self.known)]

    def _join(
        self,
        member_id: str,
        instance_id: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        needs_known_id: bool,
        may_skip: bool,
    ) -> None:
        self.asked += 1
        fresh_id = f"m{self.asked}"
        joining = Joining(
            member_id,
            fresh_id,
            instance_id,
            "client",
            "/h",
            10_000,
            60_000,
            "consumer",
            protocols,
            needs_known_id,
            may_skip,
        )
        waiter = partial(self._joined, self.asked)
        self.play._run(rebalance.join(self.group, joining, waiter, self.play.rules, self.play.now))
        if not member_id:
            self.known.append(fresh_id)

    def _joined(self, question: int, answer: JoinAnswer) -> None:
        self.answered.append(question)

    def _synced(self, question: int, member_id: str, generation: int, answer: SyncAnswer) -> None:
        self.answered.append(question)
        if answer.error is ErrorCode.NONE:
            told = self.parts.setdefault(generation, {})
            assert told.setdefault(member_id, answer.assignment) == answer.assignment, "two parts in one generation"
            assert not answer.assignment or answer.assignment.endswith(f" in {generation}".encode())


AnyStory.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_any_story = AnyStory.TestCase
