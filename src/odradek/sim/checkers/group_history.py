"""History of a consumer group: assignments and commits, and their invariants.

No partition has two owners in one generation. A committed offset never goes back: members commit from where the group
was, and a member of a former generation is refused. The coordinator answers with what was committed last.
"""

from collections.abc import Iterable

from odradek.model.topology import TopicPartition
from odradek.sim.checkers.violation import Violation


class GroupHistory:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.committed: dict[TopicPartition, int] = {}  # acknowledged by a coordinator
        self._owners: dict[tuple[int, TopicPartition], str] = {}  # generation and partition → member
        self._generation = -1  # of the last join
        self._members: set[str] = set()  # that joined it
        self._contradictions: list[str] = []

    @property
    def generation(self) -> int:
        """The generation of the last join."""
        return self._generation

    def check(self) -> None:
        if self._contradictions:
            raise Violation(self._contradictions[0])

    # ---- told by callbacks of the coordinator, which must not raise: what is wrong comes out with the next check

    def joined(self, generation: int, member_id: str) -> None:
        """Forget owners of generations from that one on if it is lower than the last one, or the last one of another
        group.

        The generation of a join is not in the log before the group is in sync, and a group without members and offsets
        is removed when a topic is deleted, as in Apache Kafka: its generations begin anew.
        """
        if generation < self._generation or self._is_of_another_group(generation, member_id):
            self._owners = {key: owner for key, owner in self._owners.items() if key[0] < generation}
            self._members.clear()
        if generation != self._generation:
            self._members.clear()
        self._members.add(member_id)
        self._generation = generation

    def _is_of_another_group(self, generation: int, member_id: str) -> bool:
        """Return whether a member joins when the others have been assigned: no group that is the same does that."""
        is_assigned = any(key[0] == generation for key in self._owners)
        return generation == self._generation and is_assigned and member_id not in self._members and not self.committed

    def assigned(self, member_id: str, generation: int, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            owner = self._owners.setdefault((generation, tp), member_id)
            if owner != member_id:
                problem = f"{owner} and {member_id} own {tp} in generation {generation}"
                self._contradictions.append(f"group {self.group_id}: {problem}")

    def commit_acknowledged(self, tp: TopicPartition, offset: int) -> None:
        if offset < self.committed.get(tp, 0):
            problem = f"the committed offset of {tp} went back from {self.committed[tp]} to {offset}"
            self._contradictions.append(f"group {self.group_id}: {problem}")
        self.committed[tp] = offset

    def answered(self, tp: TopicPartition, offset: int) -> None:
        """Check an answer of the present coordinator, which has loaded the group."""
        if offset < self.committed.get(tp, 0):
            problem = f"{offset} is answered, {self.committed[tp]} was committed"
            self._contradictions.append(f"group {self.group_id}: the committed offset of {tp} is lost: {problem}")
