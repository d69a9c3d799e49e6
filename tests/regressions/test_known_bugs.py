"""Bugs by which replicated logs have lost records or kept zombies: each replayed once, in its smallest form.

Named as Apache Kafka names them (a KIP where one was written, else the issue). The same bugs, planted, must be found
by the simulator: `mutants`. KAFKA-14402 (a late produce leaves a transaction hanging) is among the refusals that are
compared with Apache Kafka's: tests/cluster/test_refusals_like_kafka.py.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.events import ControlledShutdownAsked, IsrChangeAsked
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.model.topology import LeaderAndIsr, PartitionDirective
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from odradek.sim.cluster import SimulatedCluster
from odradek.sim.healing import Healing
from odradek.sim.invariants import Invariants
from scenarios.sentences import play
from scenarios.stage import Stage

from .hand_led_brokers import ORDERS, ORDERS_ID, HandLedBrokers, batch


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[HandLedBrokers]:
    stage = HandLedBrokers(tmp_path)
    yield stage
    stage.close()


def test_kip_101_a_stale_watermark_cuts_nothing(stage: HandLedBrokers) -> None:
    """KAFKA-1211: the follower that had not heard of the commit restarted, cut there, and was elected."""
    stage.elect(0, epoch=0)
    answered = stage.append(0, "a", acks=-1)
    stage.fetch(1, 0)
    stage.fetch(1, 0)
    assert answered[0].first_offset == 0
    stage.restart(1)
    stage.elect(1, epoch=1)
    assert stage.end(1) == 1
    assert stage.watermark(1) == 0
    assert stage.fetch(0, 1).diverging is None
    assert stage.end(0) == 1
    assert stage.watermark(1) == 1


def test_kip_101_other_batches_at_the_same_offsets_are_replaced(stage: HandLedBrokers) -> None:
    """Both crashed; who was elected without the tail wrote other batches in its place."""
    stage.elect(0, epoch=0)
    stage.append(0, "a")
    stage.fetch(1, 0)
    stage.append(0, "b", "c", "d")
    stage.restart(0)
    stage.restart(1)
    stage.elect(1, epoch=1)
    stage.append(1, "x")
    stage.append(1, "y", "z")
    assert stage.end(0) == stage.end(1)
    assert stage.fetch(0, 1).diverging is not None
    assert stage.end(0) == 1
    stage.fetch(0, 1)
    assert stage.entries(0) == stage.entries(1)


def test_kip_279_two_fast_failovers(stage: HandLedBrokers) -> None:
    """KAFKA-6361: the follower has an epoch that its leader never saw; it cuts where the last common one ends."""
    stage.elect(0, epoch=0)
    stage.append(0, "a", "b")
    stage.fetch(1, 0)
    stage.elect(0, epoch=1)
    stage.append(0, "only 0 has this")
    stage.tell(1, leader=1, epoch=2)
    stage.append(1, "c", "d")
    stage.tell(0, leader=1, epoch=2)
    outcome = stage.fetch(0, 1)
    assert outcome.diverging is not None
    assert (outcome.diverging.epoch, outcome.diverging.end_offset) == (0, 2)
    stage.fetch(0, 1)
    assert stage.entries(0) == stage.entries(1)
    assert [entry.epoch for entry in stage.log(0).epochs.entries] == [0, 2]


def test_kip_320_who_fetches_in_another_epoch_is_told(stage: HandLedBrokers) -> None:
    """KAFKA-6880. A consumer that names the epoch of what it read last learns that this was cut off."""
    stage.elect(0, epoch=0)
    stage.append(0, "a", "lost")
    stage.elect(1, epoch=3)
    stage.append(1, "b")

    def told(current: int, replica: int) -> FetchOutcome:
        return stage.read(1, FetchTarget(ORDERS, ORDERS_ID, 1, 1_000, current), replica)[0]

    for replica in (-1, 0):
        assert told(2, replica=replica).error is ErrorCode.FENCED_LEADER_EPOCH
        assert told(4, replica=replica).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    (outcome,) = stage.read(1, FetchTarget(ORDERS, ORDERS_ID, 2, 1_000, current_leader_epoch=3, last_fetched_epoch=0))
    assert outcome.diverging is not None
    assert outcome.diverging.end_offset == 0


def test_kafka_7164_the_same_leader_in_a_new_epoch_is_compared_with(stage: HandLedBrokers) -> None:
    stage.elect(0, epoch=0)
    stage.append(0, "a", "b")
    stage.append(0, "lost with the power")
    stage.fetch(1, 0)
    assert stage.end(1) == 3
    stage.log(0).truncate_to(2)
    stage.elect(0, epoch=1)
    stage.append(0, "c", "d")
    assert stage.fetch(1, 0).diverging is not None
    stage.fetch(1, 0)
    assert stage.entries(1) == stage.entries(0)


def test_kafka_13790_an_order_that_was_obeyed_resets_nothing(stage: HandLedBrokers) -> None:
    stage.elect(0, epoch=4)
    stage.append(0, "a")
    stage.fetch(1, 0)
    stage.fetch(1, 0)
    assert stage.watermark(0) == 1
    partition = stage.partition(0)
    known = partition.followers.by_id[1]
    assert stage.tell(0, leader=0, epoch=4, isr=(0, 1, 2), version=9) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert partition.followers.by_id[1] is known
    assert (known.log_end_offset, partition.isr, partition.partition_epoch) == (1, (0, 1), 4)


def control_requests(leader_epoch: int, *, controller_epoch: int, broker_epoch: int) -> tuple[Any, Any]:
    """To lead, and to stop and delete."""
    state = LeaderAndIsrPartitionState(
        partition_index=0, controller_epoch=controller_epoch, leader=0, leader_epoch=leader_epoch, isr=[0], replicas=[0]
    )
    stopped = StopReplicaPartitionState(partition_index=0, leader_epoch=leader_epoch, delete_partition=True)
    common: dict[str, Any] = {"controller_id": 1, "controller_epoch": controller_epoch, "broker_epoch": broker_epoch}
    topic = LeaderAndIsrTopicState(topic_name="orders", topic_id=ORDERS_ID, partition_states=[state])
    gone = StopReplicaTopicState(topic_name="orders", partition_states=[stopped])
    return LeaderAndIsrRequest(topic_states=[topic], **common), StopReplicaRequest(topic_states=[gone], **common)


def test_kip_380_what_was_meant_for_an_earlier_life_is_refused(stage: HandLedBrokers) -> None:
    """KAFKA-7235: the broker bounced faster than the controller noticed."""
    stage.elect(1, epoch=0)
    broker = stage.brokers[0]
    broker.gate.broker_epoch = 200
    for request in control_requests(5, controller_epoch=1, broker_epoch=100):
        answer: Any = broker.handle_controller_request(request)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert not broker.leads(ORDERS)
    played = Stage()
    for sentence in ("brokers 0,1,2 come", "broker 1 becomes controller"):
        play(played, sentence)
    answers: list[Any] = []
    played.world.enqueue(ControlledShutdownAsked(0, played.world.znodes.registered[0].epoch - 1, answers.append))
    played.world.run()
    assert [answer.code for answer in answers] == [ErrorCode.STALE_BROKER_EPOCH]


def test_kip_570_a_stop_that_comes_late_stops_nothing(stage: HandLedBrokers) -> None:
    """KAFKA-9539: the partition was reassigned away and back; the first stop arrives after the second start."""
    stage.elect(0, epoch=5)
    _, stop = control_requests(4, controller_epoch=1, broker_epoch=-1)
    answer: Any = stage.brokers[0].handle_controller_request(stop)
    assert answer.partition_errors[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert stage.brokers[0].leads(ORDERS)


def test_zombie_controller_is_not_obeyed(stage: HandLedBrokers) -> None:
    """Its writes are fenced too: tests/unit/broker/zk/stores/test_controller_election.py, with a real ZooKeeper."""
    broker = stage.brokers[0]
    lead, _ = control_requests(5, controller_epoch=7, broker_epoch=-1)
    broker.handle_controller_request(lead)
    assert broker.leads(ORDERS)
    for request in control_requests(9, controller_epoch=6, broker_epoch=-1):
        answer: Any = broker.handle_controller_request(request)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage.partition(0).leader_epoch == 5


def test_kafka_2729_a_leader_whose_state_is_out_of_date_recovers(tmp_path: Path) -> None:
    """It lost its session, the controller changed the state, and the leader's own changes are refused: the next
    directive tells it what is true, and the ISR is whole again."""
    cluster = SimulatedCluster(tmp_path)
    healing = Healing(cluster, Invariants(cluster))
    healing.heal()
    state = cluster.state(ORDERS)
    assert state is not None
    cluster.world.write_isr_as_leader(ORDERS, (state.leader,))  # behind its back: the version is another now
    cluster.world.lose(state.leader)
    healing.heal()
    after = cluster.state(ORDERS)
    assert after is not None
    assert set(after.isr) == {0, 1, 2}
    assert after.leader_epoch > state.leader_epoch
    cluster.stop()


def test_kip_497_and_903_the_isr_is_joined_by_who_has_everything(stage: HandLedBrokers) -> None:
    """A follower with an empty log isn't proposed; one that was proposed and restarted since is refused."""
    proposed = stage.brokers[0]
    stage.elect(0, epoch=1, isr=(0, 1))
    stage.append(0, "a")
    stage.fetch(1, 0)
    stage.fetch(1, 0)
    stage.fetch(2, 0)
    assert not proposed.wanted_isr, "it asked from 0 on: it has nothing of what is committed"
    stage.fetch(2, 0)
    assert proposed.wanted_isr[ORDERS].isr == (0, 1, 2)

    played = Stage()
    story = ("brokers 0,1,2 come", "broker 1 becomes controller", "topic orders is created: 0,1,2", "broker 2 dies")
    for sentence in (*story, "broker 2 comes back"):
        play(played, sentence)
    world, answers = played.world, list[Any]()
    state, registered = world.znodes.states[ORDERS], world.znodes.registered
    wanted = LeaderAndIsr(0, state.leader_epoch, (0, 1, 2), -1, state.zk_version)
    seen = {ORDERS: {2: registered[2].epoch - 1}}
    world.enqueue(IsrChangeAsked(0, registered[0].epoch, {ORDERS: wanted}, answers.append, seen))
    world.run()
    assert answers[0][ORDERS].code is ErrorCode.INELIGIBLE_REPLICA
    assert world.znodes.states[ORDERS].isr == (0, 1)


def test_kip_966_a_lone_replica_commits_nothing(stage: HandLedBrokers) -> None:
    """Nothing is acknowledged or shown that only one replica has, so nothing of that can be lost. (What was committed
    before is at risk if this one loses its tail and nobody else was in sync: not prevented yet, nor by Kafka 3.9.)"""
    stage.elect(0, epoch=1, isr=(0,))
    (refused,) = stage.append(0, "a", acks=-1)
    assert refused.code is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.append(0, "a", acks=1)
    stage.clock.advance(60_000)
    stage.brokers[0].roles.check_replicas()
    assert stage.watermark(0) == 0


def test_kafka_9307_a_role_change_that_failed_half_way_is_done_again(stage: HandLedBrokers) -> None:
    broker = stage.brokers[0]
    led: list[int] = []
    broker.groups.lead = lambda tp, epoch: led.append(epoch)  # type: ignore[method-assign]
    directive = PartitionDirective(ORDERS, ORDERS_ID, LeaderAndIsr(0, 3, (0,), 1, 3), (0, 1, 2))

    def without_zookeeper(topic: str) -> Any:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the configuration can't be read")

    def become(config_of: Callable[[str], Any]) -> ErrorCode:
        return broker.roles.become([directive], config_of, controller_id=0, controller_epoch=1)[ORDERS]

    assert become(without_zookeeper) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ORDERS not in broker.replicas.partitions
    assert become(broker.topic_config) is ErrorCode.NONE
    assert led == [3]
    assert broker.leads(ORDERS)


def test_kafka_3919_offsets_that_go_back_end_the_log_and_not_the_broker(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "orders-0", ORDERS, LogConfig())
    for value in "abc":
        log.append_as_leader(batch(value, value), leader_epoch=0, rules=BatchRules())
    (segment,) = log.segments
    log.close(clean=False)
    size = segment.path.stat().st_size
    with segment.path.open("r+b") as file:
        first = file.read(size // 3)
        file.truncate(size)
        file.seek(size)
        file.write(first)
    again = PartitionLog.open(tmp_path / "orders-0", ORDERS, LogConfig())
    assert again.log_end_offset == 6
    assert segment.path.stat().st_size == size
    again.close()


def test_kafka_12241_a_person_can_bring_back_a_partition_whose_last_replica_is_gone() -> None:
    played = Stage()
    for sentence in (
        "brokers 0,1 come",
        "broker 1 becomes controller",
        "topic orders is created: 0,1",
        "the leader of orders-0 wants the ISR 0",
        "broker 0 loses the directory of orders-0",
    ):
        play(played, sentence)
    assert played.world.znodes.states[ORDERS].leader == -1
    play(played, "an unclean election of orders-0 is asked for")
    assert played.world.znodes.states[ORDERS].leader == 1


def test_hw_monotone_a_consumer_is_never_told_to_start_over(stage: HandLedBrokers) -> None:
    """A new leader may know less of what is committed than the old one; who has read more waits."""
    stage.elect(0, epoch=0)
    stage.append(0, "a", "b")
    stage.fetch(1, 0)
    stage.fetch(1, 0)
    assert stage.watermark(0) == 2
    stage.restart(1)
    stage.elect(1, epoch=1)
    assert stage.watermark(1) == 0
    assert stage.watermark(0) == 2, "the former leader's doesn't go back"
    (outcome,) = stage.read(1, FetchTarget(ORDERS, ORDERS_ID, 2, 1_000))
    assert outcome.error is ErrorCode.NONE
    assert outcome.size == 0
    stage.fetch(0, 1)
    stage.fetch(0, 1)
    assert stage.watermark(1) == 2


def test_a_leader_that_lost_its_tail_is_back_before_anybody_knew(tmp_path: Path) -> None:
    """It was the controller too. Its successor finds it registered, but later than the state was written that names it
    the leader: so it must not lead on in the same epoch. Apache Kafka's controller on ZooKeeper lets it."""
    cluster = SimulatedCluster(tmp_path)
    healing = Healing(cluster, Invariants(cluster))
    healing.heal()
    leader = cluster.brokers[0]
    assert leader.leads(ORDERS)
    cluster.produce(cluster.producers[ORDERS], leader)
    healing.heal()
    assert cluster.histories[ORDERS].acknowledged
    log = leader.logs.table.get(ORDERS)
    assert log is not None
    cluster.end_process(leader, leader.crash)
    cluster.lost_tail.add(0)
    os.truncate(log.segments[-1].path, 0)
    cluster.lose(0)
    cluster.world.elect_controller(1)
    cluster.bring_back(0)
    healing.heal()


def test_the_only_one_who_stayed_may_be_dead(tmp_path: Path) -> None:
    """Two brokers lose a session and nothing else; the third loses power, and its session hasn't ended when the next
    controller looks. To trust it alone, because it is the only one that was there all the time, would be the end."""
    cluster = SimulatedCluster(tmp_path)
    healing = Healing(cluster, Invariants(cluster))
    healing.heal()
    cluster.produce(cluster.producers[ORDERS], cluster.brokers[0])
    healing.heal()
    assert cluster.histories[ORDERS].acknowledged
    for broker_id in (0, 2):
        cluster.lose(broker_id)
        cluster.register(broker_id)
    dead = cluster.brokers[1]
    log = dead.logs.table.get(ORDERS)
    assert log is not None
    cluster.end_process(dead, dead.crash)
    cluster.lost_tail.add(1)
    os.truncate(log.segments[-1].path, 0)
    cluster.world.elect_controller(2)
    cluster.world.run()
    state = cluster.state(ORDERS)
    assert state is not None
    assert set(state.isr) == {0, 1, 2}
    cluster.bring_back(1)
    healing.heal()
    cluster.stop()
