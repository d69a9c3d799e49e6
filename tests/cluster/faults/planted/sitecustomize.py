"""Plants a known fault into a broker, to see whether the judge finds it. Imported by Python itself at its start.

ODRADEK_PLANTED names the faults, with commas between. Each is one that real systems have had, or no fault but the
slowness of a busy machine. ODRADEK_PRODUCE_TRACE has the broker write down what it answered to producers.
"""

import os
from collections.abc import Callable
from typing import Any

SLOW_S_MAX = float(os.environ.get("ODRADEK_SLOW_S", "0.2"))


def ack_before_replication() -> None:
    """acks=all is answered as soon as the leader has the records."""
    from odradek.broker.replication.core.outcomes import COMMITTED, Appended
    from odradek.broker.replication.partition import Partition

    write = Partition._write

    def acknowledging(self: Any, *args: Any) -> Appended:
        return write(self, *args)._replace(awaited_in=COMMITTED)

    Partition._write = acknowledging  # type: ignore[method-assign]


def truncate_by_high_watermark() -> None:
    """A broker that changes its role truncates to its high watermark (KIP-101)."""
    from odradek.broker.replication.partition import Partition

    def truncating(change: Callable[..., bool]) -> Callable[..., bool]:
        def changed(self: Any, directive: Any) -> bool:
            with self.lock:
                self.log.truncate_to(self.high_watermark)
            return change(self, directive)

        return changed

    Partition.become_leader = truncating(Partition.become_leader)  # type: ignore[method-assign]
    Partition.become_follower = truncating(Partition.become_follower)  # type: ignore[method-assign]


def write_duplicates() -> None:
    """A batch that is sent again is written again, whatever its sequence."""
    from odradek.broker.log.core.producer_state import ProducerStates, Staged

    ProducerStates.find_duplicate = lambda self, info: None  # type: ignore[method-assign, assignment]
    ProducerStates.stage = lambda self, *args, **options: Staged({}, [])  # type: ignore[method-assign, assignment]


def kafkas_sequences() -> None:
    """A producer that the partition doesn't know may begin anywhere, and a batch behind a refused one gets what it
    meets."""
    from odradek.broker.log.core.producer_state import ProducerStates
    from odradek.broker.replication.core.refused_batches import RefusedBatches

    ProducerStates.may_begin_at = lambda self, producer_id, *args: producer_id not in self.entries  # type: ignore[method-assign]
    RefusedBatches.doubt = lambda self, *args: None  # type: ignore[method-assign, assignment]
    RefusedBatches.check = lambda self, *args: None  # type: ignore[method-assign, assignment]
    RefusedBatches.explain = lambda self, tp, records, error, *others: error  # type: ignore[method-assign, assignment]


def kafkas_snapshots() -> None:
    """A snapshot holds the last batch of each producer alone."""
    from odradek.broker.log.core.producer_state import ProducerStates

    load = ProducerStates.load

    def forgetful(self: Any, entries: Any, *args: Any) -> None:
        load(self, [entry._replace(batches=entry.batches[-1:]) for entry in entries], *args)

    ProducerStates.load = forgetful  # type: ignore[method-assign]


def slow_to_lead() -> None:
    """No fault, but a busy machine: clients hear of a leader, from another broker, before it has heard that it is one.

    Half of the time: if all brokers were slow, clients would hear it late, too.
    """
    import random
    import time

    from odradek.broker.replication.partition import Partition

    become_leader = Partition.become_leader

    def late(self: Any, directive: Any) -> bool:
        spell = random.Random(os.getpid() + time.monotonic() // 4)
        if not self.is_leader and spell.random() < 0.5:
            time.sleep(random.uniform(0.0, SLOW_S_MAX))
        return become_leader(self, directive)

    Partition.become_leader = late  # type: ignore[method-assign]


def slow_to_refuse() -> None:
    """No fault, but a busy machine: a thread that refused a batch has to wait for its next turn on a core."""
    import random
    import time

    from odradek.base.errors import KafkaError
    from odradek.broker.replication.partition_table import PartitionTable

    find = PartitionTable.find
    from odradek.broker.replication.partition import Partition

    append = Partition.append

    def resting(self: Any, *args: Any, **others: Any) -> Any:
        try:
            return append(self, *args, **others)
        except KafkaError:
            time.sleep(random.uniform(0.0, SLOW_S_MAX / 4))
            raise

    def resting_find(self: Any, tp: Any) -> Any:
        try:
            return find(self, tp)
        except KafkaError:
            time.sleep(random.uniform(0.0, SLOW_S_MAX / 4))
            raise

    Partition.append = resting  # type: ignore[method-assign]
    PartitionTable.find = resting_find  # type: ignore[method-assign]


def late_answers() -> None:
    """No fault, but a busy machine: what is on all replicas is acknowledged a little later."""
    import random
    import threading

    from odradek.broker.replication.partition_table import PartitionTable

    append = PartitionTable.append

    def late(self: Any, batches: Any, *, done: Callable[[Any], None], **others: Any) -> Any:
        def answer_later(outcomes: Any) -> None:
            threading.Timer(random.uniform(0.0, SLOW_S_MAX / 4), done, (outcomes,)).start()

        return append(self, batches, done=answer_later, **others)

    PartitionTable.append = late  # type: ignore[method-assign]


def on_demand() -> None:
    """No fault, but moments that a test wants to be sure of. A file beside server.properties asks for each:

    refuse-TOPIC    the next batch of the topic meets a broker that doesn't know yet that it leads; the file goes
    hold            the batch that is refused is held until the file is gone, and with it what comes behind it
    mute            what is appended is not answered, as by a broker that dies at the right moment
    stall-TOPIC     batches of the topic wait until the file is gone; stalled-TOPIC is there when one does
    """
    import sys
    import threading
    import time
    from pathlib import Path

    from odradek.base.errors import ErrorCode, KafkaError
    from odradek.broker.replication.partition import Partition
    from odradek.broker.replication.partition_table import PartitionTable

    append_one, append_all = Partition.append, PartitionTable.append

    def wish(name: str) -> Path:
        return Path(sys.argv[-1]).with_name(name)

    def refusing(self: Any, *args: Any, **others: Any) -> Any:
        asked = wish(f"refuse-{self.topic_partition.topic}")
        if asked.exists():
            asked.unlink()
            while wish("hold").exists():
                time.sleep(0.01)
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return append_one(self, *args, **others)

    def delayed(self: Any, batches: Any, *, done: Callable[[Any], None], **others: Any) -> Any:
        batches, asked_here = list(batches), {**others, "written": None}  # the handler does not wait for these
        stalls = [asked for tp, _ in batches if (asked := wish(f"stall-{tp.topic}")).exists()]
        if stalls:
            for asked in stalls:
                asked.with_name(asked.name.replace("stall-", "stalled-")).touch()
            threading.Thread(target=late, args=(self, batches, stalls, done, asked_here)).start()
            return None
        if wish("mute").exists():
            append_all(self, batches, done=lambda outcomes: None, **asked_here)
            return None
        return append_all(self, batches, done=done, **others)

    def late(self: Any, batches: Any, stalls: list[Path], done: Callable[[Any], None], others: Any) -> None:
        while any(asked.exists() for asked in stalls):
            time.sleep(0.01)
        if (outcomes := append_all(self, batches, done=done, **others)) is not None:
            done(outcomes)

    Partition.append = refusing  # type: ignore[method-assign]
    PartitionTable.append = delayed  # type: ignore[method-assign]


def no_hints() -> None:
    """No fault, but an old broker: a refused batch is not answered with the leader's name (KIP-951)."""
    from odradek.broker.api.handlers import produce

    produce._tell_leaders = lambda *args: None  # type: ignore[assignment]


def forget_aborted() -> None:
    """Readers of committed records are not told which transactions were aborted."""
    from odradek.broker.log.files.log_reader import LogReader

    LogReader.aborted_in = lambda self, *args: []  # type: ignore[method-assign]


def commit_open() -> None:
    """A transaction whose producer went away is committed, as far as it was written."""
    from odradek.broker.coordinator.transactions.core import decisions
    from odradek.broker.coordinator.transactions.core.transaction import TransactionState

    fence = decisions.fence

    def committing(transaction: Any, now_ms: int) -> Any:
        fenced = fence(transaction, now_ms)
        return transaction.move_to(
            TransactionState.PREPARE_COMMIT,
            producer_epoch=fenced.producer_epoch,
            last_producer_epoch=fenced.last_producer_epoch,
            last_update_ms=now_ms,
            client_version=fenced.client_version,
        )

    decisions.fence = committing


FAULTS = {
    "ack-before-replication": ack_before_replication,
    "truncate-by-high-watermark": truncate_by_high_watermark,
    "write-duplicates": write_duplicates,
    "kafkas-sequences": kafkas_sequences,
    "kafkas-snapshots": kafkas_snapshots,
    "slow-to-lead": slow_to_lead,
    "slow-to-refuse": slow_to_refuse,
    "late-answers": late_answers,
    "on-demand": on_demand,
    "no-hints": no_hints,
    "forget-aborted": forget_aborted,
    "commit-open": commit_open,
}

for name in filter(None, os.environ.get("ODRADEK_PLANTED", "").split(",")):
    FAULTS[name]()
if os.environ.get("ODRADEK_PRODUCE_TRACE"):
    import produce_trace

    produce_trace.install()
