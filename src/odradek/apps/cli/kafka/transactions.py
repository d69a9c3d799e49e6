"""kafka-transactions: list and describe transactions, find and abort hanging ones."""

import time
from collections.abc import Sequence

from odradek.apps.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, EVERY_TOOL, Given, Option, OptionTable
from odradek.apps.cli.kafka.tool import ToolError, connect, in_kafkas_words
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.transaction_admin import (
    OpenTransaction,
    abort_transaction,
    describe_producers,
    describe_transaction,
    hanging_transactions,
    list_transactions,
    open_transactions,
)
from odradek.model.topology import TopicPartition

TABLE = OptionTable(
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and "
    "recover from hanging transactions.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("duration-filter", "list: only transactions that are open for longer; below 0, all", "MS"),
    Option("transactional-id", "describe: the transactional id", "ID"),
    Option("topic", "the topic", "TOPIC"),
    Option("partition", "the partition", "N"),
    Option("broker-id", "describe-producers: of this replica; find-hanging: of this broker's replicas", "ID"),
    Option("start-offset", "abort: the first offset of the transaction", "OFFSET"),
    Option("producer-id", "abort: for brokers before 3.0, with the next two", "ID"),
    Option("producer-epoch", "abort: the epoch of the producer", "EPOCH"),
    Option("coordinator-epoch", "abort: the epoch of the coordinator", "EPOCH"),
    Option("max-transaction-timeout", "find-hanging: the longest timeout of producers", "MINUTES", default="15"),
    *EVERY_TOOL,
    commands={
        "list": "list transactions",
        "describe": "describe the state of an active transactional-id",
        "describe-producers": "describe the states of active producers for a topic partition",
        "abort": "abort a hanging transaction (requires administrative privileges)",
        "find-hanging": "find hanging transactions",
    },
)
_MINUTE_MS = 60_000
_NONE = "None"


def run(given: Given) -> int:
    given.require("bootstrap-server")
    action = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "abort": _abort,
        "find-hanging": _find_hanging,
    }[given.command]
    with connect(given) as client:
        action(client, given)
    return 0


def _list(client: ClusterClient, given: Given) -> None:
    try:
        found = list_transactions(client, duration_ms=given.number("duration-filter"))
    except KafkaError as error:
        raise _failed("Failed to list transactions", error) from None
    rows = [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found]
    _print_table(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _describe(client: ClusterClient, given: Given) -> None:
    given.require("transactional-id")
    name = given.text("transactional-id")
    what = f"Failed to describe transaction state of transactional-id `{name}`"
    try:
        found = describe_transaction(client, name)
    except KafkaError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            why = f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not be found"
            error = KafkaError(error.code, why)
        raise _failed(what, error) from None
    is_begun = found.start_ms >= 0
    row = (
        found.coordinator,
        name,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.start_ms if is_begun else _NONE,
        _now_ms() - found.start_ms if is_begun else _NONE,
        ",".join(map(str, found.partitions)),
    )
    headers = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    _print_table(headers, [row])


def _describe_producers(client: ClusterClient, given: Given) -> None:
    tp, broker = _partition(given), given.number("broker-id")
    try:
        found = describe_producers(client, tp, broker)
    except KafkaError as error:
        where = "leader" if broker is None else f"broker {broker}"
        raise _failed(f"Failed to describe producers for partition {tp} on {where}", error) from None
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else _NONE,
        )
        for each in found
    ]
    headers = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    _print_table(headers, rows)


def _abort(client: ClusterClient, given: Given) -> None:
    tp, start_offset = _partition(given), given.number("start-offset")
    if start_offset is None:
        wanted = _named_by_epochs(given, tp)
    else:
        try:
            found = [each for each in open_transactions(client, tp) if each.start_offset == start_offset]
        except KafkaError as error:
            raise _failed(f"Failed to validate producer state for partition {tp}", error) from None
        if not found:
            raise ToolError(f"Could not find any open transactions starting at offset {start_offset} on partition {tp}")
        wanted = found[0]
    try:
        abort_transaction(client, wanted)
    except KafkaError as error:
        spec = (
            f"AbortTransactionSpec(topicPartition={tp}, producerId={wanted.producer_id}, "
            f"producerEpoch={wanted.producer_epoch}, coordinatorEpoch={wanted.coordinator_epoch})"
        )
        raise _failed(f"Failed to abort transaction {spec}", error) from None


def _named_by_epochs(given: Given, tp: TopicPartition) -> OpenTransaction:
    producer_id = given.number("producer-id")
    if producer_id is None:
        raise ToolError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    epoch, coordinator_epoch = given.number("producer-epoch"), given.number("coordinator-epoch")
    if epoch is None:
        raise ToolError("Missing required argument --producer-epoch")
    if coordinator_epoch is None:
        raise ToolError("Missing required argument --coordinator-epoch")
    return OpenTransaction(tp, producer_id, epoch, max(coordinator_epoch, 0), -1, -1)


def _find_hanging(client: ClusterClient, given: Given) -> None:
    topic, partition, broker = given.value("topic"), given.number("partition"), given.number("broker-id")
    if topic is None and broker is None:
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if partition is not None and topic is None:
        raise ToolError("The --partition argument requires --topic to be provided")
    before_ms = _now_ms() - (given.number("max-transaction-timeout") or 0) * _MINUTE_MS
    topics = client.topics() if topic is None else {topic: client.topic(topic)}
    searched = [
        TopicPartition(name, each.partition)
        for name, state in topics.items()
        for each in state.partitions
        if (broker is None or broker in each.replicas) and (partition is None or each.partition == partition)
    ]
    found = [
        each for tp in searched for each in open_transactions(client, tp, broker) if each.last_timestamp_ms < before_ms
    ]
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            each.last_timestamp_ms,
            (_now_ms() - each.last_timestamp_ms) // _MINUTE_MS,
        )
        for each in hanging_transactions(client, found)
    ]
    headers = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    _print_table(headers, rows)


def _partition(given: Given) -> TopicPartition:
    given.require("topic", "partition")
    return TopicPartition(given.text("topic"), given.number("partition") or 0)


def _failed(what: str, error: KafkaError) -> ToolError:
    return ToolError(f"{what}: {in_kafkas_words(error)}. Enable debug logging for additional detail.")


def _print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns are as wide as their widest value; a tab ends each."""
    texts = [list(map(str, row)) for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        print("".join(f"{value:<{width}}\t" for value, width in zip(row, widths, strict=True)))


def _now_ms() -> int:
    return int(time.time() * 1000)
