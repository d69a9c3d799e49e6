"""One transaction per batch: records of the batch and the offsets of its sources are there together, or not at all.

    begin      the next epoch of the query's transactional id: older drivers are fenced, their open transaction aborted
    look       the group's last commit names a batch; from this one on, the batch is there already and is left alone
    write      the tasks of the batch write, each output partition by one of them
    offsets    the sources' end offsets for the query's consumer group, with the name of the batch
    end        the commit, which ends the batch

After a crash of the driver in any of these steps, the transaction is committed or aborted as a whole. Spark gives the
batch again, and `look`, after the fence, finds which of the two it was. If the group's offsets are gone, that can't be
found, and the repeated batch is refused; so is a batch that the group has with other offsets, or a batch before its
last. The name of a batch has the checkpoint's own id in it: a checkpoint that was removed, or a replay, begins with
names that no group has.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import committed_positions
from odradek.client.producer_transaction import FENCED, ProducerTransaction, TransactionHandle
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

TIMEOUT_MS = 120_000
_ATTEMPTS_MAX = 3
_CLIENT_TIMEOUT_MS = 60_000

Write = Callable[[TransactionHandle], None]
Offsets: TypeAlias = Mapping[TopicPartition, int]


class TaskRetried(Exception):
    """A task of the batch ran twice: both may have written, so the transaction has to be aborted and begun anew."""


@dataclass(frozen=True, slots=True)
class BatchName:
    """Name of a batch in the metadata of a group's offsets."""

    checkpoint: str
    generation: int
    number: int

    def __str__(self) -> str:
        return f"{self.checkpoint}/g{self.generation}/{self.number}"

    def is_in(self, metadata: str) -> bool:
        """Return whether the group's last commit is this batch or a later one of the same generation."""
        checkpoint, _, rest = metadata.partition("/")
        generation, _, number = rest.partition("/")
        is_same = checkpoint == self.checkpoint and generation == f"g{self.generation}"
        return is_same and number.isdecimal() and int(number) >= self.number

    def check_same(self, group: str, committed: Mapping[TopicPartition, tuple[int, str]], offsets: Offsets) -> None:
        """Raise FatalError if the group has a later batch than this one, or this one with other ends: Spark repeats
        only its last batch."""
        for tp, (offset, metadata) in committed.items():
            if self.is_in(metadata) and (metadata != str(self) or offset != offsets[tp]):
                raise FatalError(
                    f"group {group} has batch {metadata} with offset {offset} of {tp}, and the checkpoint begins batch "
                    f"{self.number} with other records: it is an older copy, or another driver uses it. Compute again "
                    "with: odradek pipeline replay"
                )


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    bootstrap: str
    transactional_id: str
    group: str
    timeout_ms: int = TIMEOUT_MS
    reached: Callable[[str], None] = lambda step: None  # called after each step; for tests

    def run(self, name: BatchName, offsets: Offsets, write: Write, *, is_repeated: bool = False) -> bool:
        """Write the batch unless it is there; return whether it had to be written.

        `is_repeated`: an earlier driver has begun the batch, and may have committed it.
        """
        client = ClusterClient(self.bootstrap, client_id=self.transactional_id, timeout_ms=_CLIENT_TIMEOUT_MS)
        with client:
            for attempt in range(1, _ATTEMPTS_MAX + 1):
                try:
                    return self._attempt(client, name, offsets, write, is_first=attempt == 1, is_repeated=is_repeated)
                except UnsupportedByBroker as error:
                    raise FatalError(
                        f"topics are written in transactions, which the brokers don't have ({error}): "
                        'set delivery = "at-least-once" in [pipeline]'
                    ) from None
                except (KafkaError, TaskRetried) as error:
                    is_fenced = isinstance(error, TaskRetried) or error.code in FENCED
                    if not is_fenced or attempt == _ATTEMPTS_MAX:
                        raise
                    log.warning("transaction of a batch aborted, writing again", batch=str(name), error=str(error))
        raise AssertionError("unreachable")

    def _attempt(
        self,
        client: ClusterClient,
        name: BatchName,
        offsets: Offsets,
        write: Write,
        *,
        is_first: bool,
        is_repeated: bool,
    ) -> bool:
        transaction = ProducerTransaction(client, self.transactional_id, self.timeout_ms)
        self.reached("begin")
        committed = committed_positions(client, self.group, offsets)
        if any(name.is_in(metadata) for _, metadata in committed.values()):
            if is_first:
                name.check_same(self.group, committed, offsets)
                return False
            raise FatalError(f"another driver has written batch {name} of group {self.group}: only one may run")
        if is_repeated and name.number and not committed:  # the batch before has committed some
            raise FatalError(
                f"batch {name.number} was begun by an earlier run, and may be in its topics already: the offsets of "
                f"group {self.group} would tell, and are gone (deleted, or expired after offsets.retention.minutes). "
                "Compute again with: odradek pipeline replay"
            )
        self.reached("look")
        try:
            write(transaction.share())
            self.reached("write")
            transaction.commit_offsets(self.group, offsets, str(name))
            self.reached("offsets")
            transaction.end(commit=True)
        except Exception:
            with suppress(KafkaError, ConnectionFailed, UnsupportedByBroker):
                transaction.end(commit=False)  # so that readers need not wait for the timeout
            raise
        self.reached("end")
        return True


def fenced_error(name: str, where: str) -> Exception:
    """Return the error that the driver raises for the error name of a task; Spark would wrap the error itself."""
    if name == TaskRetried.__name__:
        return TaskRetried(where)
    return KafkaError(ErrorCode[name], f"{where}: {name}")
