"""Design two, played without ZooKeeper: members that hear late, coordinators that stop in the middle."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from odradek.apps.legacy.core.coordination import Group, next_steps
from odradek.apps.legacy.core.range_assignment import assign, member_of
from odradek.apps.legacy.core.znodes import AssignedPartitions, Registration
from odradek.model.topology import TopicPartition

WANTED = Registration({"t": 1})
PARTITIONS = 6
NAMES = ("a", "b", "c", "d")


@dataclass
class World:
    """The znodes, and what each living member has heard and reads."""

    registered: dict[str, int] = field(default_factory=dict)
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    assignments: dict[str, AssignedPartitions] = field(default_factory=dict)
    reads: dict[str, set[TopicPartition]] = field(default_factory=dict)
    clock: int = 0

    def join(self, member: str) -> None:
        if member not in self.registered:
            self.clock += 1
            self.registered[member] = self.clock
            self.reads[member] = set()

    def go(self, member: str) -> None:
        self.registered.pop(member, None)
        self.reads.pop(member, None)

    def hear(self, member: str) -> None:
        """The member follows its last assignment."""
        assigned = self.assignments.get(member)
        if member not in self.registered or assigned is None or assigned.registration != self.registered[member]:
            return
        self.reads[member] &= assigned.partitions
        for tp in assigned.release:
            if tp in self.owners and member_of(self.owners[tp]) == member:
                del self.owners[tp]
        self.reads[member] |= assigned.partitions

    def coordinate(self, orders_max: int | None = None) -> bool:
        """One round, which may be broken off after some orders. Whether there was anything to do."""
        members = dict.fromkeys(self.registered, WANTED)
        group = Group(
            members, dict(self.registered), {"t": range(PARTITIONS)}, dict(self.owners), dict(self.assignments)
        )
        steps = next_steps(group)
        for member, order in list(steps.orders.items())[:orders_max]:
            self.owners |= order.own
            if order.assignment is not None:
                self.assignments[member] = order.assignment
        if orders_max is None:
            for tp in steps.release:
                del self.owners[tp]
            for member in steps.forget:
                del self.assignments[member]
        return bool(steps.orders or steps.release or steps.forget)

    def check(self) -> None:
        everything = [tp for read in self.reads.values() for tp in read]
        assert len(everything) == len(set(everything)), "a partition has two readers"
        for member, read in self.reads.items():
            for tp in read:
                assert member_of(self.owners[tp]) == member, "read, and owned by another"


STEPS = st.one_of(
    st.tuples(st.sampled_from(["join", "go", "hear"]), st.sampled_from(NAMES)),
    st.tuples(st.just("coordinate"), st.integers(0, 4)),
)


@given(st.lists(STEPS, max_size=60))
def test_nobody_reads_what_another_owns_and_in_the_end_all_is_shared(steps: list[tuple[str, object]]) -> None:
    world = World()
    for step, argument in steps:
        getattr(world, step)(argument)
        world.check()
    world.join("a")
    for _ in range(10):
        world.coordinate()
        for member in list(world.registered):
            world.hear(member)
            world.check()
    assert not world.coordinate(), "it never comes to rest"
    wanted = assign(dict.fromkeys(world.registered, WANTED), {"t": range(PARTITIONS)})
    assert {tp: member for member, read in world.reads.items() for tp in read} == {
        tp: member_of(stream) for tp, stream in wanted.items()
    }


def test_an_appointment_that_was_never_heard_of_is_taken_back() -> None:
    world = World()
    world.join("b")
    world.coordinate()
    world.join("a")
    world.coordinate()
    assert world.reads == {"a": set(), "b": set()}
    assert {tp.partition for tp in world.assignments["b"].release} == {0, 1, 2}
    world.hear("b")
    world.coordinate()
    world.hear("a")
    assert {tp.partition for tp in world.reads["a"]} == {0, 1, 2}


def test_who_registers_again_is_told_again() -> None:
    world = World()
    world.join("a")
    world.coordinate()
    world.hear("a")
    world.go("a")
    world.join("a")
    world.hear("a")
    assert world.reads["a"] == set()
    world.coordinate()
    world.hear("a")
    assert len(world.reads["a"]) == PARTITIONS
