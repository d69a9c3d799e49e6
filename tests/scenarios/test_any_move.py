"""Any story, with partitions that move: reassignments begin, are replaced, cancelled and interrupted anywhere.

Besides what holds of any story: when all brokers live and followers keep up, every move and every deletion comes to
its end, however often the controller died on the way.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from odradek.model.topology import TopicPartition

from .test_any_story import BROKERS, AnyStory

TARGETS = ("0", "1", "2", "0,1", "1,0", "1,2", "2,0", "0,1,2", "2,1,0")


class AnyMove(AnyStory):
    def partition(self, pick: int) -> TopicPartition | None:
        known = sorted(self.world.znodes.states)
        return known[pick % len(known)] if known and self.world.context is not None else None

    @rule(pick=st.integers(0, 9), goal=st.sampled_from(TARGETS))
    def reassignment_is_asked_for(self, pick: int, goal: str) -> None:
        if (tp := self.partition(pick)) is not None:
            self.say(f"reassignment of {tp} to {goal} is asked for")

    @rule(pick=st.integers(0, 9))
    def reassignment_is_cancelled(self, pick: int) -> None:
        if (tp := self.partition(pick)) is not None:
            self.say(f"the reassignment of {tp} is cancelled")

    @rule(pick=st.integers(0, 9), goal=st.sampled_from(TARGETS))
    def old_tool_asks(self, pick: int, goal: str) -> None:
        if (tp := self.partition(pick)) is not None and not self.world.znodes.reassignments:
            self.say(f"an old tool writes the reassignment of {tp} to {goal}")

    @rule(pick=st.integers(0, 9))
    def followers_catch_up(self, pick: int) -> None:
        if (tp := self.partition(pick)) is not None:
            self.catch_up(tp)

    @rule(pick=st.integers(0, 9), goal=st.sampled_from(TARGETS), writes=st.integers(0, 20))
    def controller_dies_as_it_moves(self, pick: int, goal: str, writes: int) -> None:
        if (tp := self.partition(pick)) is not None:
            self.say(f"the controller will die after {writes} writes")
            self.say(f"reassignment of {tp} to {goal} is asked for")
            if tp in self.world.znodes.states:
                self.catch_up(tp)
            self.world.writes_left = None
        self.elect_if_needed()

    def catch_up(self, tp: TopicPartition) -> None:
        state = self.world.znodes.states[tp]
        replicas = self.world.znodes.topics[tp.topic].partitions[tp.partition].replicas
        if state.leader in self.world.znodes.registered and self.world.context is not None:
            isr = ",".join(str(b) for b in [state.leader, *(r for r in replicas if r != state.leader)])
            self.say(f"the leader of {tp} wants the ISR {isr}")

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for broker in BROKERS:  # a new life each: with directories that work, and nobody leaving
            if broker in self.world.znodes.registered:
                self.say(f"broker {broker} dies")
        self.say("brokers 0,1,2 come back")
        self.say("broker 0 becomes controller")
        for tp in sorted(self.world.znodes.states):
            if tp in self.world.znodes.states:
                self.catch_up(tp)
        assert not self.world.znodes.to_delete
        assert not self.world.znodes.reassignments
        for topic in self.world.znodes.topics.values():
            for number, assignment in topic.partitions.items():
                tp = TopicPartition(topic.topic, number)
                assert not assignment.is_reassigning, f"{tp} is still on its way: {assignment}"
                assert set(self.world.znodes.states[tp].isr) == set(assignment.replicas)
                holders = {b for b, broker in self.stage.brokers.items() if tp in broker.roles}
                assert holders == set(assignment.replicas), f"{tp} is held by {holders}, not by {assignment.replicas}"


AnyMove.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestAnyMove = AnyMove.TestCase
