"""Invariants of a partition, on logs that a test has written."""

from pathlib import Path

import pytest
from replica_logs import Replicas

from odradek.model.topology import LeaderAndIsr
from odradek.sim.checkers.log_reading import LogEntry
from odradek.sim.checkers.partition_history import PartitionHistory
from odradek.sim.checkers.violation import Violation


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def state(*isr: int, leader: int = 0) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 0, isr, 1)


def test_committed_batches_are_the_same_on_every_leader(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.write(1, "b")
    replicas.look(0, 1, leads=True)
    replicas.look(1, 0, leads=True, epoch=1)
    with pytest.raises(Violation, match="was committed"):
        replicas.look(1, 1, leads=True, epoch=1)


def test_the_watermark_of_a_leader_does_not_go_back(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.look(0, 1, leads=True)
    replicas.look(0, 0, leads=True, epoch=1)
    with pytest.raises(Violation, match="went back to 0"):
        replicas.look(0, 0, leads=True)


def test_an_end_that_was_told_does_not_go_back() -> None:
    history = PartitionHistory("orders-0")
    for broker_id, offset in ((0, 3), (1, 3), (1, 5)):
        history.end_told(broker_id, offset)
    with pytest.raises(Violation, match="leader 2 tells the end 4, 5 was told before"):
        history.end_told(2, 4)


def test_the_watermark_is_inside_of_the_log(replicas: Replicas) -> None:
    with pytest.raises(Violation, match="has watermark 1"):
        replicas.look(0, 1)


def test_members_of_the_isr_have_what_is_committed(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.look(0, 1, leads=True)
    replicas.history.check_isr(state(0))
    replicas.history.check_isr(state(0, 1), excused={1})
    with pytest.raises(Violation, match="broker 1 is in the ISR, ends at 0, committed is 1"):
        replicas.history.check_isr(state(0, 1))
    with pytest.raises(Violation, match="the leader isn't in the ISR"):
        replicas.history.check_isr(state(0, leader=2))


def test_one_leader_acknowledges_in_an_epoch_and_one_batch_at_an_offset(replicas: Replicas) -> None:
    history = replicas.history
    history.acknowledge(0, epoch=3, base_offset=0, crc=7)
    history.acknowledge(0, epoch=3, base_offset=0, crc=7)
    history.acknowledge(1, epoch=4, base_offset=1, crc=8)
    history.check()
    history.acknowledge(2, epoch=4, base_offset=2, crc=9)
    with pytest.raises(Violation, match="brokers 1 and 2 acknowledge in epoch 4"):
        history.check()
    other = PartitionHistory("orders-0")
    other.acknowledge(0, epoch=3, base_offset=0, crc=7)
    other.acknowledge(0, epoch=3, base_offset=0, crc=8)
    with pytest.raises(Violation, match="offset 0 is acknowledged for two batches"):
        other.check()


def test_consumers_see_committed_batches(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.look(0, 1, leads=True)
    (committed,) = replicas.history.committed.values()
    replicas.history.consume(0, [committed])
    with pytest.raises(Violation, match="shows"):
        replicas.history.consume(0, [LogEntry(1, 1, 0, 5)])


def test_in_the_end_all_logs_are_equal_and_hold_what_was_acknowledged(replicas: Replicas) -> None:
    for broker_id in (0, 1, 2):
        replicas.write(broker_id, "a")
        replicas.look(broker_id, 1)
    replicas.end()
    replicas.history.acknowledge(0, epoch=0, base_offset=1, crc=7)
    with pytest.raises(Violation, match="the batch acknowledged at 1 is lost"):
        replicas.end()
    replicas.write(2, "b")
    replicas.look(2, 1)
    with pytest.raises(Violation, match="differ"):
        replicas.end()


def test_a_log_that_was_cut_is_read_again(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.look(0, 0)
    replicas.cut(0, 0)
    replicas.write(0, "b")
    replicas.look(0, 1, leads=True)
    replicas.write(1, "b")
    replicas.look(1, 1, leads=True, epoch=1)


def test_a_leader_without_enough_replicas_in_sync_commits_nothing(replicas: Replicas) -> None:
    replicas.write(0, "a")
    replicas.write(0, "b")
    replicas.look(0, 0, leads=True)
    replicas.look(0, 1, leads=True, alone=True)  # committed before the ISR shrank, in the same step
    with pytest.raises(Violation, match=r"leader 0 commits up to 2 below min\.insync\.replicas"):
        replicas.look(0, 2, leads=True, alone=True)
