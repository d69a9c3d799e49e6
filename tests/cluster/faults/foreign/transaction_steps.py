"""Steps of a transactional librdkafka client, each tried until it is done or can't be done any more."""

import os
import sys

from confluent_kafka import KafkaError, KafkaException, Producer

FENCED = 3
"""Exit status of a client after a fatal error: another one has taken its id, or the coordinator gave it up."""
_STEP_S = 10.0


class Fatal(Exception):
    """The producer is of no more use."""


def ignore_error(error: KafkaError) -> None:
    """Ignore it: the log of clients has it in the debug lines already."""


def tell(line: str) -> None:
    """Written before the next step begins: a kill loses nothing of it."""
    os.write(1, f"{line}\n".encode())


def complain(what: object) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


def transactional_producer(options: dict[str, object]) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            "client.id": options["name"],
            "transactional.id": options["transactional_id"],
            "transaction.timeout.ms": options["timeout_ms"],
            "linger.ms": 2,
            "error_cb": ignore_error,
            **options["settings"],  # type: ignore[dict-item]
        }
    )
    while True:
        try:
            producer.init_transactions(_STEP_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise Fatal(error.args[0]) from error
        else:
            return producer


def end_transaction(producer: Producer, *, commit: bool) -> bool:
    """Return whether it is committed. A commit that can't be is aborted."""
    while True:
        try:
            if commit:
                producer.commit_transaction(_STEP_S)
            else:
                producer.abort_transaction(_STEP_S)
        except KafkaException as error:
            cause = error.args[0]
            complain(f"commit={commit}: {cause!r}")
            if cause.txn_requires_abort():
                commit = False
            elif not cause.retriable():
                raise Fatal(cause) from error
        else:
            return commit
