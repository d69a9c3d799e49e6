"""Design two, the members: they register, and read the partitions that the group's coordinator assigns.

A member watches one node, its own assignment, so that a change of the group notifies only the members that it concerns.
It stops reading revoked partitions first, then deletes the owner's nodes; only after that does the coordinator give a
partition to another member.
"""

from collections.abc import Collection

from odradek.apps.legacy.core.znodes import AssignedPartitions, Assignments, ConsumerId, MemberAssignment
from odradek.apps.legacy.member import Member


class AssignedConsumer(Member):
    _registration = -1
    """The czxid of its own node; -1 before it has one."""

    def _join(self) -> None:
        # a new session may begin at a lagging server, which has an old assignment
        self.tree.catch_up(Assignments.path(self.group))
        (own,) = self.tree.read([ConsumerId.path(self.group, self.id)])
        self._registration = -1 if own is None else own[1].czxid
        self._follow()

    def _react(self, changed: Collection[str]) -> None:
        self._follow()

    def _follow(self) -> None:
        path = MemberAssignment.path(self.group, self.id)
        self.tree.watch_nodes([path])
        (node,) = self.tree.read([path])
        assigned = None if node is None else MemberAssignment.decode(self.group, self.id, node[0])
        if assigned is None or assigned.registration != self._registration:
            assigned = AssignedPartitions(self._registration)
        if lost := self.owned - assigned.partitions:
            stopped = self._stop_reading(lost)
            if self.settings.auto_commit_enable:
                self.tree.commit(stopped)
        if node is not None and assigned.release:
            self.tree.release_own(sorted(assigned.release), self.id, (path, node[1].version))
        if gained := assigned.partitions - self.owned:
            self._begin_reading(gained, self.tree.offsets(list(gained)))

    def _leave(self) -> None:
        """Remove the registration; the coordinator then releases the member's partitions."""
        super()._leave()
        self.tree.unregister(self.id)
