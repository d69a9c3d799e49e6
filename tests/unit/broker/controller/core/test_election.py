"""Elections: who may lead, who must be told, and what becomes of the ISR."""

import pytest

from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.election import Elected, ElectionStrategy, elect, first_leader
from odradek.model.topology import Broker, ControllerTerm, LeaderAndIsr, ReplicaAssignment, TopicPartition

TP = TopicPartition("orders", 0)
OFFLINE, UNCLEAN, PREFERRED, REASSIGN, SHUTDOWN = ElectionStrategy


def cluster(live: tuple[int, ...], replicas: tuple[int, ...] = (0, 1, 2), **more: object) -> ControllerContext:
    context = ControllerContext(0, "PLAINTEXT", term=ControllerTerm(7, 7))
    context.brokers = {broker: Broker(broker, ()) for broker in live}
    context.set_assignment(TP, ReplicaAssignment(replicas, **more))  # type: ignore[arg-type]
    return context


def state(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 4, isr, controller_epoch=6, zk_version=9)


@pytest.mark.parametrize(
    ("strategy", "live", "before", "leader", "isr", "recipients"),
    [
        (OFFLINE, (1, 2), state(0, 2, 0, 1), 1, (2, 1), (1, 2)),  # in the assignment's order, not the ISR's
        (OFFLINE, (1, 2), state(0, 0, 2), 2, (2,), (1, 2)),
        (UNCLEAN, (1, 2), state(0, 0, 2), 2, (2,), (1, 2)),  # nothing is lost where nothing need be
        (PREFERRED, (0, 1), state(1, 1, 0), 0, (1, 0), (0, 1, 2)),
        (SHUTDOWN, (0, 1, 2), state(0, 0, 2), 2, (2,), (0, 1, 2)),
    ],
)
def test_who_is_elected(
    strategy: ElectionStrategy,
    live: tuple[int, ...],
    before: LeaderAndIsr,
    leader: int,
    isr: tuple[int, ...],
    recipients: tuple[int, ...],
) -> None:
    context = cluster(live)
    if strategy is SHUTDOWN:
        context.shutting_down.add(0)
    after = LeaderAndIsr(leader, 5, isr, controller_epoch=7, zk_version=9)
    assert elect(context, TP, before, strategy) == Elected(after, recipients)


@pytest.mark.parametrize(
    ("strategy", "live", "before"),
    [
        (OFFLINE, (1, 2), state(0, 0)),
        (UNCLEAN, (3,), state(0, 0)),
        (PREFERRED, (1, 2), state(1, 1, 2)),
        (PREFERRED, (0, 1, 2), state(1, 1, 2)),
        (SHUTDOWN, (0, 1, 2), state(0, 0)),
    ],
)
def test_nobody_may_lead(strategy: ElectionStrategy, live: tuple[int, ...], before: LeaderAndIsr) -> None:
    context = cluster(live)
    context.shutting_down.update({0} if strategy is SHUTDOWN else ())
    assert elect(context, TP, before, strategy) is None


def test_an_unclean_leader_is_alone_in_sync_and_recovers() -> None:
    context = cluster((2, 1))
    after = LeaderAndIsr(1, 5, (1,), controller_epoch=7, zk_version=9, recovering=True)
    assert elect(context, TP, state(0, 0), UNCLEAN) == Elected(after, (1, 2))
    context.topic_configs["orders"] = {"unclean.leader.election.enable": "true"}
    assert elect(context, TP, state(0, 0), OFFLINE) == Elected(after, (1, 2))


def test_a_failed_directory_counts_as_dead() -> None:
    context = cluster((0, 1, 2))
    context.offline_replicas[0] = {TP}
    elected = elect(context, TP, state(0, 0, 1, 2), OFFLINE)
    assert elected is not None
    assert (elected.state.leader, elected.state.isr) == (1, (1, 2))


def test_a_reassigned_partition_is_led_by_somebody_who_stays() -> None:
    context = cluster((0, 1, 2, 3), (2, 3, 0, 1), adding=(2, 3), removing=(0, 1))
    elected = elect(context, TP, state(0, 0, 1, 3), REASSIGN)
    assert elected is not None
    assert (elected.state.leader, elected.state.isr, elected.recipients) == (3, (0, 1, 3), (2, 3))


def test_a_new_partition_begins_with_those_who_live() -> None:
    assert first_leader(cluster((2, 1)), TP) == LeaderAndIsr(1, 0, (1, 2), controller_epoch=7)
    assert first_leader(cluster((3,)), TP) is None
