"""One fetch over many partitions: what was asked, what was found, and the wait until there is enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import TopicPartition
from odradek.purgatory.purgatory import DelayedOperation
from odradek.replication.partition import FetchedPartition, Partition


@dataclass(slots=True)
class FetchTarget:
    """One partition as a fetcher names it. `error` is set when the request already got it wrong."""

    partition: TopicPartition
    topic_id: UUID
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchTerms:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    strict_max_bytes: bool = False  # the oldest versions can't take more than they asked for


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where the leader's log leaves the fetcher's: the fetcher must truncate there."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    target: FetchTarget
    error: ErrorCode
    found: FetchedPartition | None = None
    diverging: EpochEnd | None = None

    @property
    def size(self) -> int:
        found = self.found
        return 0 if found is None or found.records is None else found.records.size


FindPartition = Callable[[TopicPartition], Partition]


def read_partitions(find: FindPartition, targets: Sequence[FetchTarget], terms: FetchTerms) -> list[FetchOutcome]:
    """Read in the order asked until the bytes run out. The first record found is never cut for being too large."""
    outcomes = []
    remaining = terms.max_bytes
    min_one = not terms.strict_max_bytes
    for target in targets:
        outcome = _read_one(find, target, min(remaining, target.max_bytes), terms.isolation, min_one)
        if size := outcome.size:
            min_one = False
            remaining = max(0, remaining - size)
        outcomes.append(outcome)
    return outcomes


def _read_one(find: FindPartition, target: FetchTarget, max_bytes: int, isolation: int, min_one: bool) -> FetchOutcome:
    if target.error:
        return FetchOutcome(target, target.error)
    try:
        partition = find(target.partition)
        if target.topic_id.int and partition.topic_id.int and target.topic_id != partition.topic_id:
            return FetchOutcome(target, ErrorCode.INCONSISTENT_TOPIC_ID)
        if target.last_fetched_epoch >= 0 and (diverging := _divergence(partition, target)) is not None:
            found = FetchedPartition(None, partition.high_watermark, -1, partition.log.log_start_offset)
            return FetchOutcome(target, ErrorCode.NONE, found, diverging)
        found = partition.read(
            target.fetch_offset,
            max_bytes,
            isolation=isolation,
            current_leader_epoch=target.current_leader_epoch,
            min_one_batch=min_one,
        )
        return FetchOutcome(target, ErrorCode.NONE, found)
    except KafkaError as error:
        return FetchOutcome(target, error.code)


def _divergence(partition: Partition, target: FetchTarget) -> EpochEnd | None:
    log = partition.leader_log(target.current_leader_epoch)
    epoch, end_offset = log.epochs.end_offset_for(target.last_fetched_epoch, log.log_end_offset)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
        return EpochEnd(epoch, end_offset)
    return None


def is_enough(outcomes: Sequence[FetchOutcome], min_bytes: int) -> bool:
    """Errors and divergence are answered at once: waiting would not help the fetcher."""
    size = 0
    for outcome in outcomes:
        if outcome.error or outcome.diverging:
            return True
        size += outcome.size
    return size >= min_bytes


class DelayedFetch(DelayedOperation):
    """A fetch that waits for records: looked at again whenever one of its partitions moves."""

    __slots__ = ("_answer", "_find", "_outcomes", "_targets", "_terms")

    def __init__(
        self,
        find: FindPartition,
        targets: Sequence[FetchTarget],
        terms: FetchTerms,
        answer: Callable[[list[FetchOutcome]], None],
    ) -> None:
        super().__init__(terms.max_wait_ms)
        self._find = find
        self._targets = targets
        self._terms = terms
        self._answer = answer
        self._outcomes: list[FetchOutcome] | None = None

    def try_complete(self) -> bool:
        outcomes = read_partitions(self._find, self._targets, self._terms)
        if not is_enough(outcomes, self._terms.min_bytes):
            return False
        self._outcomes = outcomes
        return self.force_complete()

    def on_complete(self) -> None:
        """What was found is answered; a fetch whose time is up takes what there is now."""
        outcomes = self._outcomes
        self._answer(outcomes if outcomes is not None else read_partitions(self._find, self._targets, self._terms))
