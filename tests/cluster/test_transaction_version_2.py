"""Version 2 of transactions (KIP-890, part 2): Kafka's Java producer uses it, and late requests change nothing.

The stories are told twice, with the requests of version 1 and with those of version 2. A request that was sent during
one transaction arrives during the next: in version 1 it becomes part of that one, or ends it.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from java_program import SHORT_LIVED
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.local.java import find_java
from odradek.protocol.messages.api_versions import ApiVersionsRequest

from .conftest import TopicMaker, unused_name
from .test_transactions import read
from .transactional_client import TransactionalClient

NONE = ErrorCode.NONE
PROGRAM = Path(__file__).parent.parent / "kafka4" / "Transactions.java"
COUNT = 12


@pytest.fixture
def client(bootstrap: str) -> Iterator[BrokerClient]:
    host, _, port = bootstrap.partition(":")
    made = BrokerClient(host, int(port), "late", 30_000)
    yield made
    made.close()


class Teller(TransactionalClient):
    """A producer that uses the requests of one version of transactions."""

    def __init__(self, client: BrokerClient, topic: str, version: int) -> None:
        super().__init__(client, topic, unused_name())
        self.transaction_version = version
        assert self.find(1, self.name) is NONE
        assert self.init() is NONE

    def put(self, value: str, sequence: int, *, partition: int = 0, epoch: int | None = None) -> ErrorCode:
        if self.transaction_version == 1:
            assert self.add(partition) == [NONE]
        return self.write(value, sequence, partition=partition, version=10 + self.transaction_version, epoch=epoch)

    def finish(self, *, commit: bool, epoch: int | None = None) -> ErrorCode:
        return self.end(commit=commit, version=3 + self.transaction_version, epoch=epoch)

    def next_sequence(self, written: int) -> int:
        """Each epoch counts from 0."""
        return written if self.transaction_version == 1 else 0


@pytest.mark.parametrize(
    ("version", "answer", "committed"),
    [(1, NONE, ["one", "two"]), (2, ErrorCode.PRODUCER_FENCED, ["one"])],
    ids=["version 1: an aborted record is read", "version 2"],
)
def test_a_late_end_of_the_former_transaction(
    client: BrokerClient, bootstrap: str, new_topic: TopicMaker, version: int, answer: ErrorCode, committed: list[str]
) -> None:
    topic = new_topic()
    me = Teller(client, topic, version)
    first = me.epoch
    assert me.put("one", 0) is NONE
    assert me.finish(commit=True) is NONE
    assert me.put("two", me.next_sequence(1)) is NONE
    assert me.finish(commit=True, epoch=first) is answer, "the same request again, late"
    me.finish(commit=False)
    assert read(bootstrap, topic, len(committed)) == committed
    witness = Teller(client, topic, version)
    assert (witness.put("end", 0), witness.finish(commit=True)) == (NONE, NONE)
    assert read(bootstrap, topic, len(committed) + 1) == [*committed, "end"]


@pytest.mark.parametrize(
    ("version", "answer", "committed"),
    [(1, NONE, ["one", "late", "two"]), (2, ErrorCode.INVALID_PRODUCER_EPOCH, ["one", "two"])],
    ids=["version 1: a record of an aborted transaction is read", "version 2"],
)
def test_a_late_record_of_the_former_transaction(
    client: BrokerClient, bootstrap: str, new_topic: TopicMaker, version: int, answer: ErrorCode, committed: list[str]
) -> None:
    """The producer gave up on the record, and aborted."""
    topic = new_topic()
    me = Teller(client, topic, version)
    assert (me.put("one", 0), me.finish(commit=True)) == (NONE, NONE)
    second, late = me.epoch, me.next_sequence(1)
    if version == 1:
        assert me.add(0) == [NONE]
    assert me.finish(commit=False) is NONE
    if version == 1:
        assert me.add(0) == [NONE]
    assert me.write("late", late, version=10 + version, epoch=second) is answer
    assert me.put("two", me.next_sequence(2)) is NONE
    assert me.finish(commit=True) is NONE
    assert read(bootstrap, topic, len(committed)) == committed


def test_an_end_whose_answer_was_lost_is_answered_again(client: BrokerClient, new_topic: TopicMaker) -> None:
    me = Teller(client, new_topic(), 2)
    id, epoch = me.id, me.epoch
    assert (me.put("one", 0), me.finish(commit=True)) == (NONE, NONE)
    assert (me.id, me.epoch) == (id, epoch + 1)
    assert me.finish(commit=True, epoch=epoch) is NONE
    assert (me.id, me.epoch) == (id, epoch + 1), "one bump for one end"
    assert me.finish(commit=False, epoch=epoch) is ErrorCode.INVALID_TXN_STATE


def test_offsets_bring_their_group_into_the_transaction(client: BrokerClient, new_topic: TopicMaker) -> None:
    me, group = Teller(client, new_topic(), 2), unused_name()
    assert me.find(0, group) is NONE
    assert me.commit_offsets(group, 0, version=4) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert me.commit_offsets(group, 0, version=5) == [NONE]
    assert me.committed(group, stable=True)[1] is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert me.finish(commit=True) is NONE
    assert me.commit_offsets(group, 0, version=5) == [NONE]
    assert me.finish(commit=False) is NONE
    assert me.committed(group, stable=False) == (7, NONE)


def test_javas_producer_of_kafka_4_ends_each_transaction_with_the_next_epoch(
    client: BrokerClient, bootstrap: str, new_topic: TopicMaker, kafka4_lib: Path
) -> None:
    (feature,) = client.send(
        ApiVersionsRequest(client_software_name="test", client_software_version="1")
    ).finalized_features
    assert (feature.name, feature.max_version_level) == ("transaction.version", 2)
    topic, name = new_topic(2), unused_name()
    command = [find_java(), *SHORT_LIVED, "-cp", f"{kafka4_lib}/*", PROGRAM, bootstrap, topic, name, str(COUNT)]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[:COUNT] == [f"{'aborted' if n % 3 == 2 else 'committed'} {n}" for n in range(COUNT)]
    assert lines[COUNT] == f"position {COUNT - 1}"
    committed = [n for n in range(COUNT) if n % 3 != 2]
    assert sorted(lines[COUNT + 1 :]) == sorted(f"read {n}-{partition}" for n in committed for partition in (0, 1))
    assert TransactionalClient(client, topic, name).epoch_of(name) == COUNT
