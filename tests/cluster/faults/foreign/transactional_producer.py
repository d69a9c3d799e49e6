"""A transactional librdkafka producer in a process of its own.

    python -m cluster.faults.foreign.transactional_producer '{"name": "t0x1", "transactional_id": "t0", "rate": …, …}'

It commits and aborts transactions over several partitions until its standard input ends. What it prints is described in
`chaos/transactions.py`; its debug lines are its standard error.
"""

import json
import os
import random
import select
import sys
import time

from confluent_kafka import KafkaException, Producer

from .transaction_steps import FENCED, Fatal, complain, end_transaction, tell, transactional_producer

RECORDS_MAX = 20
ABORTS, PAUSES = 0.2, 0.1
PAUSE_S_MAX = 1.0


def is_told_to_end(wait_s: float) -> bool:
    return bool(select.select([0], [], [], wait_s)[0])


class Writer:
    def __init__(self, options: dict[str, object], producer: Producer) -> None:
        self._name = options["name"]
        places: dict[str, int] = options["places"]  # type: ignore[assignment]
        self._places = [(topic, number) for topic, count in places.items() for number in range(count)]
        self._producer = producer

    def write(self, txn: int) -> None:
        """One transaction from beginning to end. Some wait with records that readers must not see yet."""
        tell(f"B {txn}")
        self._producer.begin_transaction()
        commit = random.random() >= ABORTS
        places = random.sample(self._places, random.randint(1, 4))
        try:
            for number in range(random.randint(1, RECORDS_MAX)):
                topic, partition = random.choice(places)
                tell(f"R {txn} {number} {topic} {partition}")
                self._producer.produce(topic, f"{self._name}-{txn * 1000 + number}", partition=partition)
            if random.random() < PAUSES:
                self._producer.flush(PAUSE_S_MAX)
                time.sleep(random.uniform(0, PAUSE_S_MAX))
        except KafkaException as error:
            complain(error.args[0])
            if error.args[0].fatal():
                raise Fatal(error.args[0]) from error
            commit = False
        if commit:
            tell(f"C {txn}")
        is_committed = end_transaction(self._producer, commit=commit)
        tell(f"E {txn} {'committed' if is_committed else 'aborted'}")


def main() -> int:
    options = json.loads(sys.argv[1])
    try:
        writer = Writer(options, transactional_producer(options))
        txn = 0
        while not is_told_to_end(1 / options["rate"]):
            writer.write(txn)
            txn += 1
    except Fatal as error:
        complain(f"fatal: {error}")
        return FENCED
    return 0


if __name__ == "__main__":
    os._exit(main())  # as a crash would: a client that is given up says no good-bye
