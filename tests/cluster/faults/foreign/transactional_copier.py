"""A librdkafka program that copies a topic in transactions, offsets and records in one, in a process of its own.

    python -m cluster.faults.foreign.transactional_copier '{"name": "c0x1", "transactional_id": "c0", "source": …, …}'

Several of them share the partitions of the source; a record of partition 3 goes to partition 3 of the target. It ends
when its standard input does.

It fetches its committed offsets and keeps its positions itself: after a rebalance, librdkafka may hand out what it had
fetched in its former assignment, and then go back and hand it out again (its issue 1359; seen with 2.16.0).
"""

import json
import os
import select
import sys
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from .transaction_steps import FENCED, Fatal, complain, end_transaction, ignore_error, transactional_producer

RECORDS_MAX = 100
SESSION_MS = 6_000
_POLL_S = 0.2
_STEP_S = 10.0


class Copier:
    def __init__(self, options: dict[str, object], producer: Producer) -> None:
        self._producer = producer
        self._target = str(options["target"])
        self._is_rebalanced = False
        self._next_offsets: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": options["bootstrap"],
                "client.id": options["name"],
                "group.id": options["group"],
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "error_cb": ignore_error,
                **options["settings"],  # type: ignore[dict-item]
            }
        )
        self._consumer.subscribe(
            [options["source"]], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._is_rebalanced = True
        try:
            committed = consumer.committed(partitions, _STEP_S)
        except KafkaException as error:
            raise Fatal(error.args[0]) from error
        self._next_offsets = {each.partition: max(0, each.offset) for each in committed}
        complain(f"assigned, with positions: {self._next_offsets}")
        consumer.assign(
            [TopicPartition(each.topic, each.partition, self._next_offsets[each.partition]) for each in committed]
        )

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        complain(f"revoked: {[each.partition for each in partitions]}")
        self._is_rebalanced = True
        self._next_offsets.clear()

    def copy(self) -> None:
        """One transaction, if there is something to copy. Its records are of one generation of the group: what was read
        before a rebalance is read again, by the member that has the partition now."""
        messages = self._read()
        if not messages:
            return
        self._producer.begin_transaction()
        if not self._write(messages):
            self._go_back(messages)

    def _read(self) -> list[Message]:
        """Callbacks of a rebalance are called within a poll, before it returns a message of the new assignment."""
        found: list[Message] = []
        while len(found) < RECORDS_MAX:
            self._is_rebalanced = False
            message = self._consumer.poll(0 if found else _POLL_S)
            if self._is_rebalanced:
                found.clear()
            if message is None:
                break
            if message.error() is not None:
                complain(message.error())
            elif self._is_next(message.partition() or 0, message.offset() or 0):
                found.append(message)
        return found

    def _is_next(self, partition: int, offset: int) -> bool:
        expected = self._next_offsets.get(partition)
        if expected is None or offset < expected:
            complain(f"ignored: offset {offset} of partition {partition}, expected {expected}")
            return False
        self._next_offsets[partition] = offset + 1
        return True

    def _write(self, messages: Sequence[Message]) -> bool:
        """Return whether they are copied."""
        ends = {message.partition(): (message.offset() or 0) + 1 for message in messages}
        source = messages[0].topic()
        commit = True
        try:
            for message in messages:
                self._producer.produce(self._target, message.value(), partition=message.partition() or 0)
            offsets = [TopicPartition(source or "", partition or 0, end) for partition, end in ends.items()]
            self._send_offsets(offsets)
        except KafkaException as error:
            complain(f"copy: {error.args[0]!r}")
            if error.args[0].fatal():
                raise Fatal(error.args[0]) from error
            commit = False
        return end_transaction(self._producer, commit=commit)

    def _send_offsets(self, offsets: list[TopicPartition]) -> None:
        while True:
            try:
                self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), _STEP_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def _go_back(self, messages: Sequence[Message]) -> None:
        """To the first of them, in each partition."""
        firsts: dict[tuple[str, int], int] = {}
        for message in messages:
            firsts.setdefault((message.topic() or "", message.partition() or 0), message.offset() or 0)
        for (topic, partition), offset in firsts.items():
            self._next_offsets[partition] = offset
            try:
                self._consumer.seek(TopicPartition(topic, partition, offset))
            except KafkaException as error:  # the next life begins at the committed offset
                raise Fatal(error.args[0]) from error

    def close(self) -> None:
        self._consumer.close()


def main() -> int:
    options = json.loads(sys.argv[1])
    try:
        copier = Copier(options, transactional_producer(options))
        while not select.select([0], [], [], 0)[0]:
            copier.copy()
        copier.close()
    except Fatal as error:
        complain(f"fatal: {error}")
        return FENCED
    return 0


if __name__ == "__main__":
    os._exit(main())  # as a crash would: a client that is given up says no good-bye
