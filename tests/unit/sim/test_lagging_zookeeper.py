"""The controller's ZooKeeper session at a server that is behind."""

from odradek.broker.controller.core import effects
from odradek.broker.zk.znodes import BrokerIds
from odradek.sim.lagging_zookeeper import SimulatedWorld


def new_world() -> SimulatedWorld:
    world = SimulatedWorld(lambda effect: None, lambda broker_id: None, lambda tp, epoch: None)
    world.register(0)
    world.elect_controller(0)
    world._events.clear()
    world._perform(effects.Watch(children=(BrokerIds.path,)))
    return world


def brokers(world: SimulatedWorld) -> set[int]:
    return set(world._perform(effects.ReadBrokers()))


def test_reads_are_old_and_watches_late() -> None:
    world = new_world()
    world.fall_behind()
    world.register(1)
    assert (brokers(world), len(world._events)) == ({0}, 0)
    world.catch_up()
    assert (brokers(world), len(world._events)) == ({0, 1}, 1)


def test_a_write_brings_the_server_up_to_date() -> None:
    world = new_world()
    world.fall_behind()
    world.register(1)
    world._perform(effects.DropDeletionMarks(()))
    assert (world.is_behind, brokers(world), len(world._events)) == (False, {0, 1}, 1)


def test_the_session_of_the_next_controller_is_not_behind() -> None:
    world = new_world()
    world.fall_behind()
    world.register(1)
    world.elect_controller(1)
    assert (world.is_behind, brokers(world)) == (False, {0, 1})
