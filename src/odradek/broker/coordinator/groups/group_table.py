"""Groups of this broker: kept in the offsets partitions that it leads."""

from collections.abc import Callable, Iterable

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.groups.core.group import Group
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.group_entry import GroupEntry
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.state.state_table import StateTable
from odradek.broker.purgatory.reaper import ExpirationReaper


class GroupTable:
    def __init__(
        self,
        group_log: GroupLog,
        clock: Clock,
        reaper: ExpirationReaper,
        begin: Callable[[GroupEntry], None],
        give_up: Callable[[GroupEntry], None],
        watch: Callable[[GroupEntry], None],
        unwatch: Callable[[GroupEntry], None],
    ) -> None:
        """`begin` is called with each group that was loaded, `give_up` with each that is another broker's by now;
        `watch` before `begin`, when the group's log was replayed, and `unwatch` if it is another broker's then."""
        self._log = group_log
        self._clock = clock
        self.loaded = begin
        self.unloaded = give_up
        self.replayed = watch
        self.thrown_away = unwatch
        self.states = StateTable("groups", group_log, clock, reaper, self)
        self.lead, self.resign, self.stop = self.states.lead, self.states.resign, self.states.stop
        self.removed = self.states.removed
        self.forget, self.all, self.after_replay = self.states.forget, self.states.all, self.states.after_replay

    def load(self, partition: int) -> Iterable[GroupEntry]:
        replayed = self._log.replay(partition)
        return [
            GroupEntry(group, offsets, self._log, partition, replayed.pending(group.id))
            for group, offsets in replayed.groups(self._now())
        ]

    def find(self, group_id: str, *, nameless: bool = False) -> GroupEntry | None:
        """The group, or None if there is no such one. KafkaError: it isn't ours to know.

        A group may have no name as far as only its offsets are concerned: the oldest clients had none to give.
        """
        if not group_id and not nameless:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return self.states.find(group_id)

    def find_or_create(self, group_id: str) -> GroupEntry:
        now = self._now()
        return self.states.find_or_add(
            group_id, lambda partition: GroupEntry(Group(group_id, now), {}, self._log, partition)
        )

    @property
    def is_loading(self) -> bool:
        return self.states.is_loading

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.monotonic_ms())
