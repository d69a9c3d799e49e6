"""Runs one group of one design through the phases, and measures the cost of each.

start    all members at once
join     one more
leave    one says goodbye
crash    one dies; it is missed when its session ends
cut off  one can't reach its coordination any more, and goes on reading
return   it is back
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from odradek.apps.lab.rebalance.group_members import GroupMembers, MemberHandle, Setting
from odradek.apps.lab.rebalance.recorded_events import Phase, Recorder, Stretch, is_settled, stretches, summarise
from odradek.model.topology import TopicPartition

# Longer than the pause of design one between two attempts: a member that would try again has tried.
QUIET_S = 3.0
MEMBERS_MIN = 3
_LOOK_S = 0.05
_STARTERS = 16

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    phases: list[Phase]
    stretches: list[Stretch]
    """Numbers of owners of each partition, over the whole run."""
    marks: list[tuple[float, str]]
    """Begin and name of each phase."""


class Experiment:
    def __init__(self, design: str, members: int, setting: Setting, patience_s: float, tell: Tell) -> None:
        self._design = design
        self._members = members
        self._patience_s = patience_s
        self._tell = tell
        self._partitions = [TopicPartition(setting.topic, number) for number in range(setting.partitions)]
        self._recorder = Recorder()
        self._group_members = GroupMembers(design, setting, self._recorder)
        self._live: list[MemberHandle] = []
        self._phases: list[Phase] = []
        self._marks: list[tuple[float, str]] = []

    def run(self) -> Outcome:
        try:
            self._group_members.start()
            self._lead()
            end_s = self._recorder.now_s()
            found = stretches(self._recorder.events(), self._partitions, 0.0, end_s)
        finally:
            self._group_members.end()
        return Outcome(self._phases, found, self._marks)

    def _lead(self) -> None:
        to_cut, to_crash = (
            self._group_members.new_member(on_a_line=True),
            self._group_members.new_member(on_a_line=True),
        )
        others = [self._group_members.new_member() for _ in range(self._members - 2)]
        self._phase("start", lambda: self._start([to_cut, to_crash, *others]))
        self._phase("join", lambda: self._start([self._group_members.new_member()]))
        self._phase("leave", lambda: self._lose(others[0]).close())
        self._phase("crash", lambda: self._lose(to_crash).crash())
        self._phase("cut off", lambda: self._lose(to_cut).cut())
        self._phase("return", lambda: self._bring_back(to_cut))

    def _start(self, hands: list[MemberHandle]) -> None:
        self._live += hands
        with ThreadPoolExecutor(_STARTERS, "member start") as starters:
            list(starters.map(lambda member: member.start(), hands))

    def _lose(self, member: MemberHandle) -> MemberHandle:
        self._live.remove(member)
        return member

    def _bring_back(self, member: MemberHandle) -> None:
        self._live.append(member)
        member.heal()

    def _phase(self, name: str, change: Callable[[], None]) -> None:
        self._tell(f"{name} …")
        before, from_s = self._recorder.costs(), self._recorder.now_s()
        self._marks.append((from_s, name))
        change()
        settled_at_s = self._await_settled(from_s)
        settled_s = None if settled_at_s is None else settled_at_s - from_s
        events, to_s = self._recorder.events(), self._recorder.now_s()
        begun = Phase(self._design, self._members, name, settled_s, costs=self._recorder.costs() - before)
        phase = summarise(begun, events, self._partitions, from_s, to_s)
        self._phases.append(phase)
        duration = (
            f"not settled after {self._patience_s:.0f} s" if phase.settled_s is None else f"{phase.settled_s:.1f} s"
        )
        self._tell(f"{name}: {duration}")

    def _await_settled(self, from_s: float) -> float | None:
        """Return the time at which the last partition changed hands, once nothing has moved for a while."""
        live = [member.id for member in self._live]
        while (now_s := self._recorder.now_s()) < from_s + self._patience_s:
            owned, moved_at_s = self._recorder.owned()
            if is_settled(owned, live, self._partitions) and now_s - moved_at_s >= QUIET_S:
                return moved_at_s
            time.sleep(_LOOK_S)
        return None
