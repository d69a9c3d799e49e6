"""A controller that decides on after it was replaced."""

from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Send
from odradek.broker.controller.core.events import BrokersChanged, Event
from odradek.model.topology import ReplicaAssignment, TopicAssignment
from odradek.sim.world import World


class SentRequests:
    """Channels that keep what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Send]] = []

    def send(self, context: ControllerContext, effect: Send, answered: object) -> None:
        self.sent.append((context.term.epoch, effect))

    def close(self, *_: object) -> None:
        pass


def replaced(*events: Event) -> tuple[World, SentRequests]:
    """A world whose controller was replaced before it took up the events."""
    channels = SentRequests()
    world = World(channels)
    for broker_id in (0, 1):
        world.register(broker_id)
    world.elect_controller(0)
    world.write_topic(TopicAssignment("orders", world.draw_topic_id(), {0: ReplicaAssignment((0, 1))}))
    world.run()
    for event in events:
        world.enqueue(event)
    world.elect_controller(1)
    world.run()
    channels.sent.clear()
    return world, channels


def test_it_sends_what_it_need_not_write() -> None:
    world, channels = replaced()
    assert world.former is not None
    world.register(2)  # it has heard of a broker before it was replaced
    world.former.znodes.registered[2] = world.znodes.registered[2]
    world.former.events.append(BrokersChanged())
    world.former_controller_decides()
    assert {epoch for epoch, _ in channels.sent} == {1}
    assert world.former is not None


def test_its_first_write_ends_it_and_changes_nothing() -> None:
    world, _ = replaced()
    assert world.former is not None
    states = dict(world.znodes.states)
    del world.former.znodes.registered[0]  # the leader is dead, as far as it knows
    world.former.events.append(BrokersChanged())
    world.former_controller_decides()
    assert world.former is None
    assert world.znodes.states == states


def test_it_has_what_was_to_be_decided_when_it_was_replaced() -> None:
    world, _ = replaced(BrokersChanged())
    assert world.former is not None
    assert list(world.former.events) == [BrokersChanged()]
