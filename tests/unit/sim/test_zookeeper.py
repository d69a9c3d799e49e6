"""The controller's ZooKeeper session at a server that is behind."""

from odradek.broker.controller.core import effects
from odradek.broker.zk.znodes import BrokerIds
from odradek.sim.world import World


class NoChannels:
    """Channels of a controller that sends nothing."""

    def send(self, *_: object) -> None:
        raise AssertionError("nothing is sent")

    def close(self, *_: object) -> None:
        raise AssertionError("no channel is closed")


def new_world() -> World:
    world = World(NoChannels())
    world.register(0)
    world.elect_controller(0)
    world._events.clear()
    world.session.watch(effects.Watch(children=(BrokerIds.path,)))
    return world


def brokers(world: World) -> set[int]:
    return set(world.perform(effects.ReadBrokers()))


def test_reads_are_old_and_watches_late() -> None:
    world = new_world()
    world.session.fall_behind()
    world.register(1)
    assert (brokers(world), len(world._events)) == ({0}, 0)
    world.session.catch_up()
    assert (brokers(world), len(world._events)) == ({0, 1}, 1)


def test_a_write_brings_the_server_up_to_date() -> None:
    world = new_world()
    world.session.fall_behind()
    world.register(1)
    world.perform(effects.DropDeletionMarks(()))
    assert (world.session.is_behind, brokers(world), len(world._events)) == (False, {0, 1}, 1)


def test_the_session_of_the_next_controller_is_not_behind() -> None:
    world = new_world()
    world.session.fall_behind()
    world.register(1)
    world.elect_controller(1)
    assert (world.session.is_behind, brokers(world)) == (False, {0, 1})
