"""A cluster that is broken by hand."""

from pathlib import Path

import pytest

from odradek.sim.cluster_view import PartitionView
from odradek.sim.playground import Playground
from odradek.sim.simulation import quiet_logs

ROUNDS_OF_A_SESSION = 40


def advanced(playground: Playground, rounds: int = ROUNDS_OF_A_SESSION) -> Playground:
    with quiet_logs():
        for _ in range(rounds):
            playground.advance()
    assert playground.fault is None
    return playground


def led_by(playground: Playground, broker_id: int) -> list[PartitionView]:
    return [partition for partition in playground.view().partitions if partition.leader == broker_id]


def assert_healthy(playground: Playground) -> None:
    view = playground.view()
    assert all(len(partition.isr) == 3 for partition in view.partitions)
    assert all(broker.has_session for broker in view.brokers)


@pytest.fixture
def playground(tmp_path: Path) -> Playground:
    return advanced(Playground(tmp_path, seed=1), 20)


@pytest.mark.parametrize(("fault", "remedy"), [("kill", "start"), ("freeze", "thaw"), ("cut", "connect")])
def test_others_lead_without_a_broker_and_it_comes_back(playground: Playground, fault: str, remedy: str) -> None:
    controller = playground.view().controller
    assert controller is not None
    assert led_by(playground, controller)
    playground.command(fault, controller)
    advanced(playground, 2 * ROUNDS_OF_A_SESSION)
    assert playground.view().controller not in (None, controller)
    assert not led_by(playground, controller)
    before = playground.view().acknowledged
    playground.command(remedy, controller)
    advanced(playground, 2 * ROUNDS_OF_A_SESSION)
    assert_healthy(playground)
    assert playground.view().acknowledged > before


def test_nothing_is_acknowledged_by_a_lone_replica(playground: Playground) -> None:
    for broker_id in playground.cluster.broker_ids[1:]:
        playground.command("cut", broker_id)
    advanced(playground, 2 * ROUNDS_OF_A_SESSION)
    before = playground.view().acknowledged
    advanced(playground)
    assert playground.view().acknowledged == before
    for broker_id in playground.cluster.broker_ids[1:]:
        playground.command("connect", broker_id)
    advanced(playground, 2 * ROUNDS_OF_A_SESSION)
    assert_healthy(playground)


def test_the_same_seed_and_commands_are_the_same_cluster(tmp_path: Path) -> None:
    views = []
    for run in ("first", "second"):
        playground = Playground(tmp_path / run, seed=4)
        for name, broker_id in (("kill", 0), ("freeze", 1), ("start", 0)):
            playground.command(name, broker_id)
            advanced(playground, 30)
        views.append((playground.view(), list(playground.events)))
    assert views[0] == views[1]


def test_events_tell_of_controller_leaders_and_isr(playground: Playground) -> None:
    playground.command("kill", 0)
    advanced(playground)
    told = "\n".join(playground.events)
    for text in (
        "broker 0: kill",
        "broker 0: session expires",
        "elected, controller epoch 2",
        "leader 0 → ",
        ": ISR [",
    ):
        assert text in told


@pytest.mark.parametrize(("name", "broker_id"), [("paint", 0), ("kill", 9)])
def test_a_command_that_does_not_exist(playground: Playground, name: str, broker_id: int) -> None:
    with pytest.raises(ValueError, match="valid are kill, start, freeze, thaw, cut, connect"):
        playground.command(name, broker_id)
