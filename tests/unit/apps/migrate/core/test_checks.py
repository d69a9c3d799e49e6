"""Checks of a migration: everything that would be lost is a problem, until it is mended or accepted."""

from dataclasses import replace

from odradek.apps.migrate.core.checks import findings
from odradek.apps.migrate.core.survey import BrokerSettings, Survey
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.model.topology import TopicPartition

PAIRS = {0: 10}
TP = TopicPartition("orders", 0)


def broker(*, is_odradek: bool = False, **values: str) -> BrokerSettings:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return BrokerSettings(is_odradek, named, frozenset(named), frozenset(range(67)))


def survey(old: BrokerSettings, new: BrokerSettings, partition: PartitionView | None = None) -> Survey:
    partitions = {TP: partition or PartitionView((0,), 0, (0,), 1000)}
    return Survey(ClusterView({0: BrokerView(0), 10: BrokerView(10)}, partitions), {0: old, 10: new}, {}, 99)


def problems(of: Survey, *accepted: str) -> list[str]:
    return [finding.text for finding in findings(of, PAIRS, accepted) if finding.is_problem]


def test_a_healthy_cluster_has_no_problem() -> None:
    assert problems(survey(broker(), broker(is_odradek=True))) == []


def test_replicas_that_are_not_in_sync_or_have_no_leader_or_move() -> None:
    (lagging,) = problems(survey(broker(), broker(), PartitionView((0, 1), 0, (0,))))
    assert "orders-0: not all replicas are in sync" in lagging
    assert "orders-0: no leader" in problems(survey(broker(), broker(), PartitionView((0,), -1, ())))
    (moving,) = problems(survey(broker(), broker(), PartitionView((0,), 0, (0,), is_moving=True)))
    assert "a reassignment is under way" in moving


def test_a_successor_that_is_not_there() -> None:
    alone = replace(survey(broker(), broker()), view=ClusterView({0: BrokerView(0)}, {}))
    assert problems(alone) == ["broker 10 is not in the cluster; start it first"]


def test_a_disk_that_is_too_small() -> None:
    small = survey(broker(), broker())
    brokers = {0: BrokerView(0), 10: BrokerView(10, None, 5000, 999)}
    (told,) = problems(replace(small, view=replace(small.view, brokers=brokers)))
    assert told == "broker 10 has room for 999 bytes, broker 0 holds 1,000"


def test_another_retention_would_delete_records_and_may_be_accepted() -> None:
    differ = survey(broker(log_retention_hours="1000"), broker(log_retention_hours="168", log_retention_ms=""))
    differ = replace(differ, brokers={0: broker(log_retention_ms="5", log_retention_hours="9"), 10: differ.brokers[10]})
    (told,) = problems(differ)
    assert told.startswith("log.retention.ms is 5 on broker 0 and 604800000 on its successor 10")
    assert problems(differ, "log.retention.ms") == []


def test_the_same_retention_in_other_units_is_the_same() -> None:
    hours = broker(log_retention_hours="1", log_retention_ms="")
    assert problems(survey(hours, broker(log_retention_hours="9", log_retention_ms="3600000"))) == []


def test_a_setting_that_odradek_refuses_is_named() -> None:
    kafka = broker(remote_log_storage_system_enable="true")
    (told,) = problems(survey(kafka, broker(is_odradek=True)))
    assert "remote.log.storage.system.enable" in told
    assert problems(survey(kafka, broker())) == [], "a Kafka broker has it"


def test_the_controller_is_stopped_last() -> None:
    of = replace(survey(broker(), broker()), controller=0)
    assert [f.text for f in findings(of, PAIRS)] == [
        "broker 0 is the controller: stop it last, then one of the successors is elected"
    ]


def test_transactions_need_a_successor_that_has_them() -> None:
    lacking = replace(broker(is_odradek=True), api_keys=frozenset({0, 1}))
    of = survey(broker(), lacking)
    state = {TopicPartition("__transaction_state", 0): PartitionView((0,), 0, (0,))}
    (told,) = problems(replace(of, view=replace(of.view, partitions=state)))
    assert "the cluster has transactions" in told
