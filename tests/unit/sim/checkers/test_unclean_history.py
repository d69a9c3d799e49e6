"""Invariants of a partition that elects leaders from outside of its ISR, on logs that a test has written."""

from pathlib import Path

import pytest
from replica_logs import Replicas

from odradek.model.topology import LeaderAndIsr
from odradek.sim.checkers.unclean_history import UncleanPartitionHistory
from odradek.sim.checkers.violation import Violation


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    """Broker 0 has committed two batches of which broker 1 has the first."""
    made = Replicas(tmp_path)
    made.history = UncleanPartitionHistory("orders-0")
    for value in ("a", "b"):
        made.write(0, value)
    made.write(1, "a")
    made.look(0, 2, leads=True)
    made.look(1, 1)
    return made


def history(replicas: Replicas) -> UncleanPartitionHistory:
    assert isinstance(replicas.history, UncleanPartitionHistory)
    return replicas.history


def elected(leader: int, epoch: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, epoch, (leader,), 1)


def test_without_an_unclean_election_nothing_is_excused(replicas: Replicas) -> None:
    with pytest.raises(Violation, match="is in the ISR, ends at 1"):
        replicas.history.check_isr(elected(1, 1))


def test_the_log_of_the_elected_leader_is_the_truth(replicas: Replicas) -> None:
    history(replicas).elected_uncleanly(1)
    replicas.history.check_isr(elected(1, 1))
    replicas.write(1, "c", epoch=1)
    replicas.look(1, 2, leads=True, epoch=1)
    assert (history(replicas).lost, replicas.history.committed_end) == (1, 2)
    replicas.history.check_isr(elected(1, 1))
    with pytest.raises(Violation, match="where"):
        replicas.history.check_isr(LeaderAndIsr(1, 1, (1, 0), 1))


def test_a_leader_of_a_former_epoch_counts_no_more(replicas: Replicas) -> None:
    history(replicas).elected_uncleanly(1)
    replicas.write(0, "d")
    replicas.look(0, 3, leads=True, epoch=0)
    replicas.history.acknowledge(0, 0, 2, crc=1)
    replicas.look(1, 1, leads=True, epoch=1)
    assert replicas.history.committed_end == 1
    assert replicas.history.acknowledged == {}


def test_an_acknowledgement_of_the_elected_leader_before_the_next_check_counts(replicas: Replicas) -> None:
    replicas.history.acknowledge(0, 0, 1, crc=7)
    history(replicas).elected_uncleanly(1)
    replicas.history.acknowledge(1, 1, 1, crc=8)
    replicas.look(1, 1, leads=True, epoch=1)
    assert replicas.history.acknowledged == {1: 8}
