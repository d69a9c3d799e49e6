from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ControllerMoved, ZkStore
from odradek.broker.zk.znodes import ProducerIds
from odradek.model.topology import ControllerTerm, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition

OpenSession = Callable[..., ZkSession]
FIRST_STATE = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1)


def _topic(name: str, partitions: int = 1) -> TopicAssignment:
    return TopicAssignment(name, uuid4(), {n: ReplicaAssignment((0,)) for n in range(partitions)})


def test_the_first_is_controller_and_the_next_raises_the_epoch(open_session: OpenSession, session: ZkSession) -> None:
    store = ZkStore(session)
    assert store.election.current_controller() is None
    assert store.election.elect_controller(0, now_ms=1) == ControllerTerm(epoch=1, zk_version=1)
    other = ZkStore(open_session())
    assert other.election.elect_controller(1, now_ms=2) is None
    assert other.election.current_controller() == 0
    session.close()
    assert other.election.elect_controller(1, now_ms=3) == ControllerTerm(epoch=2, zk_version=2)


def test_a_replaced_controller_writes_nothing(
    open_session: OpenSession, session: ZkSession, store: ZkStore, term: ControllerTerm
) -> None:
    store.topics.create_topic(_topic("orders"), {})
    session.call(lambda zk: zk.delete_async("/controller"))
    assert ZkStore(open_session()).election.elect_controller(1, now_ms=2) is not None
    partition = TopicPartition("orders", 0)
    with pytest.raises(ControllerMoved):
        store.partition_states.create_partition_states({partition: FIRST_STATE}, term)
    with pytest.raises(ControllerMoved):
        store.topics.delete_topic("orders", term)
    assert store.partition_states.load_partition_states([partition]) == {}
    assert list(store.topics.load_topics()) == ["orders"]


def test_the_life_of_a_topic(store: ZkStore, term: ControllerTerm) -> None:
    topic = _topic("orders", 2)
    store.topics.create_topic(topic, {"retention.ms": "5"})
    assert store.topics.load_topics() == {"orders": topic}
    assert store.configs.load_configs("topics") == {"orders": {"retention.ms": "5"}}

    partitions = [TopicPartition("orders", n) for n in range(2)]
    assert store.partition_states.load_partition_states(partitions) == {}
    created = store.partition_states.create_partition_states(dict.fromkeys(partitions, FIRST_STATE), term)
    assert created == dict.fromkeys(partitions, FIRST_STATE) == store.partition_states.load_partition_states(partitions)

    more = replace(topic, partitions={**topic.partitions, 2: ReplicaAssignment((0,))})
    store.topics.set_assignment(more, term)
    assert store.topics.load_topics()["orders"] == more

    store.topics.mark_for_deletion("orders")
    store.topics.mark_for_deletion("orders")
    assert store.topics.load_topics_to_delete() == ["orders"]
    store.topics.delete_topic("orders", term)
    assert (store.topics.load_topics(), store.configs.load_configs("topics"), store.topics.load_topics_to_delete()) == (
        {},
        {},
        [],
    )


def test_a_topic_is_created_once(store: ZkStore) -> None:
    store.topics.create_topic(_topic("orders"), {"a": "1"})
    with pytest.raises(KafkaError) as refused:
        store.topics.create_topic(_topic("orders"), {"a": "2"})
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert store.configs.load_configs("topics") == {"orders": {"a": "1"}}


def test_assignment_of_an_unknown_topic(store: ZkStore, term: ControllerTerm) -> None:
    with pytest.raises(KafkaError) as refused:
        store.topics.set_assignment(_topic("nosuch"), term)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_states_are_written_only_over_the_version_they_were_read_with(store: ZkStore, term: ControllerTerm) -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    store.topics.create_topic(_topic("orders", 2), {})
    store.partition_states.create_partition_states({first: FIRST_STATE, second: FIRST_STATE}, term)
    fresh = replace(FIRST_STATE, leader=1, leader_epoch=1)
    written = store.partition_states.update_partition_states({first: fresh, second: replace(fresh, zk_version=9)}, term)
    assert written == {first: replace(fresh, zk_version=1)}
    assert store.partition_states.load_partition_states([first, second]) == {
        first: replace(fresh, zk_version=1),
        second: FIRST_STATE,
    }
    # the same write sent twice, because its answer was lost, is a write that succeeded
    assert store.partition_states.update_partition_states({first: fresh}, term) == {first: replace(fresh, zk_version=1)}


def test_states_that_exist_are_returned_as_they_are(store: ZkStore, term: ControllerTerm) -> None:
    partition = TopicPartition("orders", 0)
    store.topics.create_topic(_topic("orders"), {})
    store.partition_states.create_partition_states({partition: FIRST_STATE}, term)
    again = store.partition_states.create_partition_states({partition: replace(FIRST_STATE, leader=7)}, term)
    assert again == {partition: FIRST_STATE}


def test_a_changed_configuration_is_announced(store: ZkStore, session: ZkSession) -> None:
    store.configs.set_config("brokers", "<default>", {"background.threads": "8"})
    assert store.configs.load_configs("brokers") == {"<default>": {"background.threads": "8"}}
    assert session.call(lambda zk: zk.get_children_async("/config/changes")) == ["config_change_0000000000"]


def test_blocks_of_producer_ids_never_overlap(store: ZkStore) -> None:
    assert store.producer_ids.allocate(0) == ProducerIds(0, 0, 999)
    assert store.producer_ids.allocate(3) == ProducerIds(3, 1000, 1999)


def test_corrupt_nodes_are_left_out_and_told(
    store: ZkStore, session: ZkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    store.topics.create_topic(_topic("good"), {"a": "1"})
    for path in (
        "/brokers/topics/bad",
        "/config/topics/bad",
        "/brokers/ids/9",
        "/isr_change_notification/isr_change_0",
    ):
        session.call(lambda zk, path=path: zk.create_async(path, b"{"))
    assert list(store.topics.load_topics()) == ["good"]
    assert list(store.topics.load_topics(["bad", "good", "nosuch"])) == ["good"]
    assert store.configs.load_configs("topics") == {"good": {"a": "1"}}
    assert store.brokers.load_brokers() == {}
    assert store.requests.read_isr_notifications() == (["isr_change_0"], set())
    assert "path=/brokers/topics/bad" in capsys.readouterr().err


def test_a_thousand_topics_are_read_in_a_pipeline(
    store: ZkStore, session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b'{"version":1,"partitions":{"0":[0]}}'
    session.pipeline([lambda zk, n=n: zk.create_async(f"/brokers/topics/t{n}", content) for n in range(1000)])
    turns: list[int] = []
    exchange = session._exchange
    monkeypatch.setattr(
        session,
        "_exchange",
        lambda requests, until_available: turns.append(len(requests)) or exchange(requests, until_available),
    )
    assert len(store.topics.load_topics()) == 1000
    assert sum(turns) == 1001, "the list of names, and each of them once"
    assert len(turns) <= 6, "not one after the other"


def test_partitions_added_and_partitions_moved_at_the_same_time_are_both_kept(
    store: ZkStore, term: ControllerTerm
) -> None:
    topic = _topic("orders", 2)
    store.topics.create_topic(topic, {})
    moving = ReplicaAssignment((1, 0), adding=(1,), removing=(0,))
    store.topics.set_assignment(replace(topic, partitions={0: moving, 1: ReplicaAssignment((0,))}), term)
    grown = store.topics.add_partitions("orders", {2: ReplicaAssignment((0,)), 0: ReplicaAssignment((9,))}, term)
    expected = {0: moving, 1: ReplicaAssignment((0,)), 2: ReplicaAssignment((0,))}
    assert grown.partitions == expected, "what is there is not touched"
    # the mover has not heard of partition 2 yet
    store.topics.set_assignment(
        replace(topic, partitions={0: ReplicaAssignment((1,)), 1: ReplicaAssignment((0,))}), term
    )
    assert store.topics.load_topics()["orders"].partitions == {**expected, 0: ReplicaAssignment((1,))}


def test_a_topic_made_anew_is_not_overwritten_by_what_the_old_one_had(store: ZkStore, term: ControllerTerm) -> None:
    old, new = _topic("orders", 2), _topic("orders", 1)
    store.topics.create_topic(new, {})
    with pytest.raises(KafkaError) as refused:
        store.topics.set_assignment(old, term)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert store.topics.load_topics() == {"orders": new}


def test_a_configuration_left_behind_does_not_hinder_a_new_topic(store: ZkStore) -> None:
    store.configs.set_config("topics", "orders", {"a": "1"})
    topic = _topic("orders")
    store.topics.create_topic(topic, {"b": "2"})
    assert (store.topics.load_topics(), store.configs.load_config("topics", "orders")) == (
        {"orders": topic},
        {"b": "2"},
    )


def test_a_partition_whose_controller_died_before_its_state_gets_one(
    store: ZkStore, session: ZkSession, term: ControllerTerm
) -> None:
    store.topics.create_topic(_topic("orders", 3), {})
    session.ensure_paths(["/brokers/topics/orders/partitions/0", "/brokers/topics/orders/partitions/1"])
    session.call(lambda zk: zk.create_async("/brokers/topics/orders/partitions/1/state", b"{"))
    partitions = [TopicPartition("orders", n) for n in range(3)]
    gone = TopicPartition("gone", 0)
    held = store.partition_states.create_partition_states(dict.fromkeys([*partitions, gone], FIRST_STATE), term)
    assert held == dict.fromkeys([partitions[0], partitions[2]], FIRST_STATE), "not the corrupt one, nor without topic"
    assert store.partition_states.load_partition_states(partitions) == held


def test_one_refused_write_among_many_hinders_no_other(store: ZkStore, term: ControllerTerm) -> None:
    partitions = [TopicPartition("orders", n) for n in range(120)]
    store.topics.create_topic(_topic("orders", 120), {})
    store.partition_states.create_partition_states(dict.fromkeys(partitions, FIRST_STATE), term)
    fresh = replace(FIRST_STATE, leader_epoch=1)
    late = {partitions[7], partitions[70]}
    wanted = {tp: replace(fresh, zk_version=5) if tp in late else fresh for tp in partitions}
    written = store.partition_states.update_partition_states(wanted, term)
    assert written == {tp: replace(fresh, zk_version=1) for tp in partitions if tp not in late}
    assert store.partition_states.load_partition_states(late) == dict.fromkeys(late, FIRST_STATE)


def test_the_leader_changes_its_isr_if_nobody_else_did(store: ZkStore, term: ControllerTerm) -> None:
    tp = TopicPartition("orders", 0)
    assert store.partition_states.update_partition_state_as_leader(tp, FIRST_STATE) is None, (
        "there is no such partition"
    )
    store.topics.create_topic(_topic("orders"), {})
    store.partition_states.create_partition_states({tp: FIRST_STATE}, term)
    shrunk = replace(FIRST_STATE, isr=(0, 1))
    assert store.partition_states.update_partition_state_as_leader(tp, shrunk) == 1
    assert store.partition_states.update_partition_state_as_leader(tp, FIRST_STATE) is None
    assert store.partition_states.load_partition_states([tp]) == {tp: replace(shrunk, zk_version=1)}


def test_a_large_topic_with_a_hole_is_deleted_whole(store: ZkStore, session: ZkSession, term: ControllerTerm) -> None:
    partitions = [TopicPartition("orders", n) for n in range(60)]
    store.topics.create_topic(_topic("orders", 60), {})
    store.partition_states.create_partition_states(dict.fromkeys(partitions, FIRST_STATE), term)
    session.call(lambda zk: zk.delete_async("/brokers/topics/orders/partitions/3/state"))
    store.topics.mark_for_deletion("orders")
    store.topics.delete_topic("orders", term)
    assert (store.topics.load_topics(), store.configs.load_configs("topics"), store.topics.load_topics_to_delete()) == (
        {},
        {},
        [],
    )
