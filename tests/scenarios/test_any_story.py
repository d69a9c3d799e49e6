"""Any events in any order: when it is quiet again, ZooKeeper, controller and brokers agree.

Hypothesis writes the stories: brokers die and return, controllers change or die in the middle of a decision, ISRs
shrink and grow, directories fail, topics come and go.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.controller.core.context import PartitionState
from odradek.model.topology import NO_LEADER, PartitionReplica

from .recorded_stage import RecordedStage
from .sentences import play

BROKERS = (0, 1, 2)
PLACEMENTS = ("0,1,2", "1,2,0", "2,0", "1", "0,2")


class AnyStory(RuleBasedStateMachine):
    @initialize(placed=st.lists(st.sampled_from(PLACEMENTS), min_size=1, max_size=3))
    def begin(self, placed: list[str]) -> None:
        self.recorded = RecordedStage()
        self.stage, self.world = self.recorded.stage, self.recorded.stage.world
        self.topics = 0
        self.say("brokers 0,1,2 come")
        self.say("broker 0 becomes controller")
        self.create(placed)

    def say(self, text: str) -> None:
        play(self.stage, text)

    def create(self, placed: list[str]) -> None:
        self.topics += 1
        self.say(f"topic t{self.topics} is created: {' '.join(placed)}")

    def elect_if_needed(self) -> None:
        if self.world.context is None and self.world.znodes.registered:
            self.say(f"broker {min(self.world.znodes.registered)} becomes controller")

    # --- what may happen -----------------------------------------------------------------------------------------

    @precondition(lambda self: self.topics < 4)
    @rule(placed=st.lists(st.sampled_from(PLACEMENTS), min_size=1, max_size=2))
    def topic_is_created(self, placed: list[str]) -> None:
        self.create(placed)

    @rule(broker=st.sampled_from(BROKERS))
    def broker_dies(self, broker: int) -> None:
        if broker in self.world.znodes.registered:
            self.say(f"broker {broker} dies")
        self.elect_if_needed()

    @rule(broker=st.sampled_from(BROKERS))
    def broker_returns(self, broker: int) -> None:
        if broker not in self.world.znodes.registered:
            self.say(f"broker {broker} comes back")
        self.elect_if_needed()

    @rule(broker=st.sampled_from(BROKERS))
    def broker_bounces(self, broker: int) -> None:
        if broker in self.world.znodes.registered:
            self.say(f"broker {broker} is back before anybody noticed that it was gone")
        self.elect_if_needed()

    @rule(broker=st.sampled_from(BROKERS))
    def broker_leaves(self, broker: int) -> None:
        if broker in self.world.znodes.registered and self.world.context is not None:
            self.say(f"broker {broker} asks to leave")
            self.say(f"broker {broker} dies")
        self.elect_if_needed()

    @rule(broker=st.sampled_from(BROKERS))
    def controller_moves(self, broker: int) -> None:
        if broker in self.world.znodes.registered:
            self.say(f"broker {broker} becomes controller")

    @rule(writes=st.integers(0, 12), broker=st.sampled_from(BROKERS))
    def controller_dies_while_a_broker_goes(self, writes: int, broker: int) -> None:
        self.say(f"the controller will die after {writes} writes")
        if broker in self.world.znodes.registered:
            self.say(f"broker {broker} is back before anybody noticed that it was gone")
        self.world.writes_left = None
        self.elect_if_needed()

    @rule(pick=st.integers(0, 9), size=st.integers(1, 3), itself=st.booleans())
    def isr_changes(self, pick: int, size: int, itself: bool) -> None:
        led = sorted(
            tp for tp, state in self.world.znodes.states.items() if state.leader in self.world.znodes.registered
        )
        if not led or self.world.context is None:
            return
        tp = led[pick % len(led)]
        leader = self.world.znodes.states[tp].leader
        others = [b for b in self.world.znodes.topics[tp.topic].partitions[tp.partition].replicas if b != leader]
        isr = ",".join(map(str, [leader, *(b for b in others if b in self.world.znodes.registered)][:size]))
        self.say(
            f"the leader of {tp} writes the ISR {isr} itself" if itself else f"the leader of {tp} wants the ISR {isr}"
        )

    @rule(pick=st.integers(0, 9), size=st.integers(1, 3), broker=st.sampled_from(BROKERS))
    def leader_writes_while_a_broker_goes(self, pick: int, size: int, broker: int) -> None:
        led = sorted(
            tp for tp, state in self.world.znodes.states.items() if state.leader in self.world.znodes.registered
        )
        if led and self.world.context is not None and broker in self.world.znodes.registered:
            tp = led[pick % len(led)]
            state = self.world.znodes.states[tp]
            isr = ",".join(map(str, [state.leader, *(b for b in state.isr if b != state.leader)][:size]))
            self.say(f"the leader of {tp} will write the ISR {isr} just before the controller")
            self.say(f"broker {broker} dies")
        self.elect_if_needed()
        self.world.interference.clear()

    @rule(pick=st.integers(0, 9))
    def directory_fails(self, pick: int) -> None:
        roles = sorted((b, tp) for b, broker in self.stage.brokers.items() for tp in broker.roles)
        if roles and self.world.context is not None:
            broker, tp = roles[pick % len(roles)]
            self.say(f"broker {broker} loses the directory of {tp}")

    @rule(pick=st.integers(0, 3))
    def topic_is_deleted(self, pick: int) -> None:
        if self.world.znodes.topics:
            topic = sorted(self.world.znodes.topics)[pick % len(self.world.znodes.topics)]
            self.say(f"deletion of topics {topic} is asked for")

    # --- what is true whenever it is quiet -----------------------------------------------------------------------

    @invariant()
    def leaders_are_in_sync_and_somebody_always_is(self) -> None:
        for tp, state in self.world.znodes.states.items():
            assert state.leader == NO_LEADER or state.leader in state.isr, f"{tp}: {state}"
            assert state.isr, f"{tp} has nobody in sync"

    @invariant()
    def the_dead_are_not_in_sync_unless_they_alone_were(self) -> None:
        context = self.world.context
        for tp, state in self.world.znodes.states.items() if context is not None else ():
            if context is not None and not context.is_being_deleted(tp.topic) and len(state.isr) > 1:
                assert {*state.isr} <= self.world.znodes.registered.keys(), f"{tp}: {state}"

    @invariant()
    def the_controller_knows_what_zookeeper_holds(self) -> None:
        context = self.world.context
        if context is not None:
            assert context.states == self.world.znodes.states
            assert context.brokers == self.world.znodes.registered
            assert context.topics.keys() == self.world.znodes.topics.keys()

    @invariant()
    def the_flight_recorder_gives_the_picture_that_the_controller_has(self) -> None:
        context = self.world.context
        if context is None:
            return
        picture = self.recorded.picture
        assert picture.brokers.keys() == context.brokers.keys()
        assert (picture.controller, picture.controller_epoch) == (context.broker_id, context.term.epoch)
        partitions = picture.partitions.items()
        assert {tp: (p.replicas, p.adding, p.removing) for tp, p in partitions} == {
            tp: (a.replicas, a.adding, a.removing) for tp in context.all_partitions() for a in (context.assignment(tp),)
        }
        assert {tp: (p.leader, p.leader_epoch, p.isr) for tp, p in partitions if p.leader_epoch >= 0} == {
            tp: (state.leader, state.leader_epoch, state.isr) for tp, state in context.states.items()
        }

    @invariant()
    def who_could_be_led_is_led(self) -> None:
        context = self.world.context
        for tp, state in self.world.znodes.states.items() if context is not None else ():
            if context is None or context.is_being_deleted(tp.topic):
                continue
            may_lead = [b for b in state.isr if context.is_online(PartitionReplica(tp, b))]
            assert (state.leader in may_lead) == bool(may_lead), f"{tp}: {state}, may lead: {may_lead}"
            assert (context.partition_state(tp) is PartitionState.ONLINE) == bool(may_lead), tp

    @invariant()
    def brokers_know_it_too(self) -> None:
        context = self.world.context
        if context is None:
            return
        for tp, state in self.world.znodes.states.items():
            if context.is_being_deleted(tp.topic):
                continue
            for broker_id, broker in self.stage.brokers.items():
                known = broker.metadata[tp]
                assert (known.leader, known.leader_epoch, tuple(known.isr)) == (
                    state.leader,
                    state.leader_epoch,
                    state.isr,
                ), f"broker {broker_id} doesn't know of {tp}"
                if context.is_online(PartitionReplica(tp, broker_id)) and tp in broker.roles:
                    assert broker.roles[tp].leader_epoch == state.leader_epoch, f"{tp} on broker {broker_id}"

    @invariant()
    def who_leads_was_told(self) -> None:
        for tp, state in self.world.znodes.states.items():
            if self.world.context is not None and not self.world.context.is_being_deleted(tp.topic):
                leader = self.stage.brokers.get(state.leader)
                assert leader is None or leader.roles[tp].leader == state.leader, f"{tp}: {state}"


AnyStory.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestAnyStory = AnyStory.TestCase
