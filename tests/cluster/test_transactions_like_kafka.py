"""Transactions request by request: Odradek answers as Apache Kafka does, and keeps the same records."""

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Position

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.transaction_records import (
    decode_key,
    decode_transaction,
    encode_key,
    encode_transaction,
)
from waiting import eventually

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .own_broker import batch_of, produce_request
from .transactional_client import PATIENCE_S, TransactionalClient


def story(me: TransactionalClient) -> dict[str, Any]:
    """Everything that a client can do wrong, and what becomes of it."""
    told: dict[str, Any] = {"find": [me.find(1, me.name), me.find(0, "g")], "find ''": me.find(1, "")}
    for bad in (0, -1, 900_001):
        told[f"timeout {bad}"] = me.init(timeout_ms=bad)
    told["init without a name"] = me.init("")
    told["init without an epoch"] = me.init(producer_id=5)
    told["unknown id"] = [me.add(0, id=5, epoch=0), me.add_offsets("g", epoch=0), me.end(commit=True, id=5, epoch=0)]
    told["no name"] = me.add(0, id=5, epoch=0, name="")
    told["init"] = [me.init(), me.epoch]
    told["end of nothing"] = [me.end(commit=True), me.end(commit=False)]
    told["verify nothing"] = [me.verify(0), me.verify(0, version=4)]
    for version in (1, 3):
        told[f"add v{version}"] = [
            me.add(0, id=me.id + 1, version=version),
            me.add(0, epoch=me.epoch + 1, version=version),
            me.add(0, 9, version=version),
        ]
    told["offsets of no transaction"] = [me.commit_offsets("g", 0, version=3), me.commit_offsets("g", 0, version=4)]
    told["add"] = [me.add(0), me.add(0)]
    told["described"] = me.described(me.name)
    told["listed"] = [me.listed(), me.listed(state_filters=["Empty"]), me.listed(state_filters=["Ongoing", "Foo"])]
    told["listed by duration"] = [me.listed(duration_filter=3_600_000), me.listed(producer_id_filters=[me.id])]
    told["verify"] = [me.verify(0, 1), me.verify(0, epoch=me.epoch + 1), me.verify(0, 1, version=4)]
    told["end of another"] = [me.end(commit=True, epoch=me.epoch + 1), me.end(commit=True, id=me.id + 1)]
    told["end v1"] = me.end(commit=True, epoch=me.epoch + 1, version=1)
    old = me.epoch
    told["fencing"] = [me.init(), me.epoch - old]
    told["fenced"] = [me.add(0, epoch=old), me.end(commit=True, epoch=old), me.add_offsets("g", epoch=old)]
    told["fenced v1"] = [me.add(0, epoch=old, version=1), me.add_offsets("g", epoch=old, version=1)]
    told["add offsets"] = me.add_offsets("g")
    told["offsets"] = [
        # first: Kafka forgets for a refused commit what the transaction committed before
        me.commit_offsets("g", 0, epoch=old),
        me.commit_offsets("g", 0, 9),
        me.commit_offsets("g", 0, member_id="m", generation_id=5),
        me.commit_offsets("g", 0, generation_id=5),
        me.commit_offsets("g", 0, group_instance_id="i"),
    ]
    told["pending"] = [me.committed("g", stable=False), me.committed("g", stable=True)]
    told["commit"] = [me.end(commit=True), me.end(commit=True), me.end(commit=False)]
    told["committed"] = me.committed("g", stable=True)
    told["completed"] = me.described(me.name)
    told["begin again"] = [me.add(1), me.end(commit=False), me.end(commit=False), me.end(commit=True)]
    id, epoch = me.id, me.epoch
    told["go on"] = [me.init(producer_id=id, producer_epoch=epoch), me.epoch - epoch]
    told["go on, repeated"] = [me.init(producer_id=id, producer_epoch=epoch), me.epoch - epoch]
    told["go on, fenced"] = [
        me.init(producer_id=id, producer_epoch=epoch + 5),
        me.init(producer_id=id + 1, producer_epoch=epoch, version=3),
    ]
    told["not described"] = [me.described(unused_name())[0], me.described("")[0]]
    return told


def test_every_wrong_request_gets_what_apache_kafka_says(pair: KafkaPair) -> None:
    name = unused_name()
    ours, theirs = (story(TransactionalClient(each, pair.topic, name)) for each in (pair.ours, pair.theirs))
    assert [(step, answer, theirs[step]) for step, answer in ours.items() if theirs[step] != answer] == []


def story_of_writes(me: TransactionalClient) -> dict[str, Any]:
    """Answers of leaders to batches and markers that are not as they should be."""
    told: dict[str, Any] = {"init": [me.find(1, me.name), me.find(0, "g"), me.init()]}
    told["no transaction"] = [me.write("a", 0), me.write("a", 0, version=10), me.write("a", 0, version=8)]
    told["another producer"] = me.write("a", 0, id=me.id + 77)
    told["another epoch"] = [me.write("a", 0, epoch=me.epoch + 1), me.write("a", 0, epoch=-1)]
    told["no name"] = [me.write("a", 0, named=False)]
    told["no partition"] = me.write("a", 0, partition=9)
    told["add"] = me.add(0, 1)
    told["marker of a client"] = [me.write("a", 0, control=True), me.write("a", 0, control=True, transactional=False)]
    told["out of order"] = [me.write("a", 5), me.write("a", 0), me.write("a", 2), me.write("a", 0)]
    told["not transactional"] = [me.write("b", 1, transactional=False), me.write("b", 1, named=False)]
    told["known"] = [me.producers(me.topic, 0)[0], me.producers(me.topic, 9), me.producers(unused_name(), 0)]
    old = me.epoch
    told["fence"] = [me.init(), me.epoch - old]
    told["fenced"] = [me.write("b", 1, epoch=old), me.write("b", 1, epoch=old, version=10)]
    told["add again"] = [*me.add(0), me.write("c", 0)]
    told["markers"] = [
        me.mark(0, 9, commit=True, epoch=old),
        me.mark(0, commit=True, topic=unused_name()),
        me.mark(1, commit=False, id=me.id + 78, epoch=0),
    ]
    told["abort"] = me.end(commit=False)
    eventually(lambda: me.described(me.name)[1] == "CompleteAbort", PATIENCE_S)
    told["aborted"] = [me.write("d", 1), me.write("d", 1, version=10)]
    told["empty names"] = [me.add_offsets(""), me.init(producer_id=-1, producer_epoch=5), me.init("", producer_id=-1)]
    told["offsets without a group"] = me.commit_offsets("", 0)
    return told


def test_every_wrong_write_gets_what_apache_kafka_says(pair: KafkaPair) -> None:
    name = unused_name()
    ours, theirs = (story_of_writes(TransactionalClient(each, pair.topic, name)) for each in (pair.ours, pair.theirs))
    assert [(step, answer, theirs[step]) for step, answer in ours.items() if theirs[step] != answer] == []


def test_a_transactional_batch_without_a_producer_is_refused(pair: KafkaPair) -> None:
    """Apache Kafka takes it, without asking a coordinator: a transaction that nobody can end. Here it is refused."""
    name = unused_name()
    ours, theirs = (TransactionalClient(each, pair.topic, name) for each in (pair.ours, pair.theirs))
    assert ours.write("a", 0, id=-1, epoch=-1) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert theirs.write("a", 0, id=-1, epoch=-1) is ErrorCode.NONE


def test_nobody_but_the_coordinator_writes_its_topic(pair: KafkaPair) -> None:
    for client in (pair.ours, pair.theirs):
        TransactionalClient(client, pair.topic, "t").find(1, "t")
    answers = pair.ask(produce_request("__transaction_state", batch_of(b"state")))
    results = [answer.responses[0].partition_responses[0].error_code for answer in answers]
    assert results == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2


def test_records_of_transaction_state_are_those_of_apache_kafka(pair: KafkaPair) -> None:
    name = unused_name()
    kept: list[list[str]] = []
    for client in (pair.ours, pair.theirs):
        me = TransactionalClient(client, pair.topic, name)
        assert me.find(1, name) is ErrorCode.NONE
        assert [me.init(), *me.add(0), me.end(commit=True)] == [ErrorCode.NONE] * 3
        assert [me.init(), *me.add(1), me.end(commit=False)] == [ErrorCode.NONE] * 3
        eventually(lambda me=me: me.described(me.name)[1] == "CompleteAbort", PATIENCE_S)  # type: ignore[misc]
        kept.append(states_kept(client.address, name))
    assert kept[0] == kept[1]


def states_kept(servers: str, name: str) -> list[str]:
    """The states of the id's records. Each record is, byte for byte, as Odradek writes it."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": unused_name()})
    try:
        partitions = consumer.list_topics("__transaction_state", PATIENCE_S).topics["__transaction_state"].partitions
        consumer.assign([Position("__transaction_state", index, OFFSET_BEGINNING) for index in partitions])
        found: list[str] = []

        def is_complete() -> bool:
            record = consumer.poll(1)
            if record is not None and not record.error():
                key, value = record.key(), record.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                if decode_key(key) == name:
                    transaction = decode_transaction(name, value)
                    assert (encode_key(name), encode_transaction(transaction, 0)) == (key, value)
                    found.append(f"{transaction.state.label} {transaction.producer_epoch} {transaction.start_ms > 0}")
            return bool(found) and found[-1].startswith("CompleteAbort")

        eventually(is_complete, PATIENCE_S)
        return found
    finally:
        consumer.close()
