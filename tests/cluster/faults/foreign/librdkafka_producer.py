"""An idempotent librdkafka producer in a process of its own, so that its debug lines are a file of its own (stderr).

    python librdkafka_producer.py '{"name": "p0", "bootstrap": "…", "rate": 1000, "settings": {…}}'

Standard input says where to write, a line each, and its end is the order to finish:

    TOPIC PARTITIONS [BURST]     write to partitions 0 … of the topic too; BURST records of it are queued at once
    TOPIC ?                      learn who leads its partitions

Standard output is the history, a line each: `A NUMBER TOPIC PARTITION OFFSET` for an acknowledged record (offset -1:
the client was not told), `F NUMBER TOPIC PARTITION DEFINITE ERROR` for a failed one, `S COUNT` for records sent so far,
`M 0` for leaders learnt.
"""

import json
import os
import select
import sys
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

FLUSH_S_MAX = 240.0
TURN_S = 0.005
DEFINITE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._QUEUE_FULL})


def ignore_error(error: KafkaError) -> None:
    """Ignore it: the log of clients has it in the debug lines already."""


class Sender:
    def __init__(self, name: str, bootstrap: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.count = 0
        self.targets: dict[str, int] = {}
        self._turn = 0
        self._places: list[tuple[str, int]] = []
        self._lines: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "error_cb": ignore_error,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "max.in.flight.requests.per.connection": 5,
                "message.timeout.ms": 600_000,
                "topic.metadata.propagation.max.ms": 600_000,
                "queue.buffering.max.messages": 1_000_000,
                **settings,
            }
        )

    def obey(self, line: str) -> None:
        topic, partitions, *burst = line.split()
        if partitions == "?":
            self._learn_leaders(topic)
            return
        self.targets[topic] = int(partitions)
        self._places = [(name, n) for name, count in self.targets.items() for n in range(count)]
        for number in range(int(burst[0]) if burst else 0):
            self._send(topic, number % int(partitions))

    def send(self, records: int) -> None:
        for _ in range(records if self._places else 0):
            self._turn += 1
            self._send(*self._places[self._turn % len(self._places)])
        self._lines.append(f"S {self.count}\n")

    def _send(self, topic: str, partition: int) -> None:
        number = self.count

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                self._lines.append(f"A {number} {topic} {partition} {-1 if offset is None else offset}\n")
            else:
                self._lines.append(f"F {number} {topic} {partition} {int(error.code() in DEFINITE)} {error}\n")

        try:
            self._producer.produce(topic, f"{self.name}-{number}", partition=partition, on_delivery=delivered)
        except KafkaException:  # a topic or a partition so young that the client hasn't heard of it: not taken at all
            return
        self.count += 1

    def _learn_leaders(self, topic: str) -> None:
        """From whichever broker answers; the client may ask a frozen one first."""
        while True:
            try:
                self._producer.list_topics(topic, timeout=5.0)
            except KafkaException:
                continue
            self._lines.append("M 0\n")
            return

    def listen(self) -> None:
        self._producer.poll(0)
        self.write()

    def write(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            os.write(1, "".join(lines).encode())

    def finish(self) -> int:
        left = self._producer.flush(FLUSH_S_MAX)
        self._lines.append(f"S {self.count}\n")
        self.write()
        return left


def main() -> int:
    options = json.loads(sys.argv[1])
    sender = Sender(options["name"], options["bootstrap"], options["settings"])
    unread = b""
    owed, last = 0.0, time.monotonic()
    while True:
        if select.select([0], [], [], TURN_S)[0]:
            told = os.read(0, 65_536)
            if not told:
                break
            *lines, unread = (unread + told).split(b"\n")
            for line in lines:
                sender.obey(line.decode())
        now = time.monotonic()
        owed = min(owed + (now - last) * options["rate"], options["rate"])
        last = now
        try:
            sender.send(int(owed))
            owed -= int(owed)
        except BufferError:
            owed = 0.0
        sender.listen()
    return 1 if sender.finish() else 0


if __name__ == "__main__":
    sys.exit(main())
