"""`odradek transactions`: list and describe transactions, find and abort hanging ones (kafka-transactions)."""

import time
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, note, print_rows
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.transaction_admin import (
    OpenTransaction,
    abort_transaction,
    describe_transaction,
    hanging_transactions,
    list_transactions,
    open_transactions,
)
from odradek.model.topology import TopicPartition

app = Noun(
    "Transactions of producers with a transactional id.",
    examples=[
        "odradek transactions list --state Ongoing",
        "odradek transactions describe my-id",
        "odradek transactions find-hanging orders",
        "odradek transactions abort orders 0 --start-offset 1234",
    ],
)
_MINUTE_MS = 60_000
TopicOption = Annotated[
    str | None, Option("--topic, -t", placed=True, help="The topic; all topics unless given.", show_default=False)
]


@app.verb("list")
def list_(
    states: Annotated[
        list[str] | None, Option("--state", metavar="STATE", help="Only this state; may be repeated.")
    ] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show transactional ids and their states."""
    with ClusterClient(bootstrap_server) as client:
        found = list_transactions(client, states)
    rows = [
        {
            "transactional_id": each.transactional_id,
            "coordinator": each.coordinator,
            "producer_id": each.producer_id,
            "state": each.state,
        }
        for each in found
    ]
    print_rows(rows, ("transactional_id", "coordinator", "producer_id", "state"), output, empty="no transactional ids")


@app.verb()
def describe(
    transactional_id: Annotated[str, Argument(help="The transactional id.")],
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the producer of an id, and the partitions of its transaction."""
    with ClusterClient(bootstrap_server) as client:
        found = describe_transaction(client, transactional_id)
    row = {
        "transactional_id": found.transactional_id,
        "coordinator": found.coordinator,
        "producer_id": found.producer_id,
        "epoch": found.producer_epoch,
        "state": found.state,
        "timeout_ms": found.timeout_ms,
        "running_ms": int(time.time() * 1000) - found.start_ms if found.partitions else None,
        "partitions": ", ".join(map(str, sorted(found.partitions))),
    }
    print_rows([row], tuple(row), output)


@app.verb("find-hanging")
def find_hanging(
    topic: TopicOption = None,
    max_transaction_timeout: Annotated[
        int, Option("--max-transaction-timeout", min=0, help="Minutes; younger transactions can't hang.")
    ] = 15,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TABLE,
) -> None:
    """Find open transactions that no coordinator knows: they block read_committed consumers forever."""
    before_ms = int(time.time() * 1000) - max_transaction_timeout * _MINUTE_MS
    with ClusterClient(bootstrap_server) as client:
        topics = client.topics() if topic is None else {topic: client.topic(topic)}
        partitions = [
            TopicPartition(name, each.partition) for name, state in topics.items() for each in state.partitions
        ]
        found = [
            each for tp in partitions for each in open_transactions(client, tp) if each.last_timestamp_ms <= before_ms
        ]
        hanging = hanging_transactions(client, found)
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "producer_id": each.producer_id,
            "epoch": each.producer_epoch,
            "start_offset": each.start_offset,
            "idle_ms": int(time.time() * 1000) - each.last_timestamp_ms,
        }
        for each in hanging
    ]
    columns = ("topic", "partition", "producer_id", "epoch", "start_offset", "idle_ms")
    print_rows(rows, columns, output, empty="no transaction hangs")


@app.verb()
def abort(
    topic: Annotated[str, Argument(help="The topic.")],
    partition: Annotated[int, Argument(help="The partition.")],
    start_offset: Annotated[int, Option("--start-offset", min=0, help="The first offset of the transaction.")] = -1,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort the open transaction that began at an offset of a partition, as `find-hanging` shows it."""
    tp = TopicPartition(topic, partition)
    with ClusterClient(bootstrap_server) as client:
        found = [each for each in open_transactions(client, tp) if each.start_offset == start_offset]
        abort_transaction(client, _only(found, tp, start_offset))
    note(f"transaction aborted that began at offset {start_offset} of {tp}")


def _only(found: list[OpenTransaction], tp: TopicPartition, start_offset: int) -> OpenTransaction:
    if not found:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"no open transaction of {tp} began at offset {start_offset}; odradek transactions find-hanging shows them",
        )
    return found[0]
