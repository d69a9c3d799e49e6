"""One fetch over many partitions: the request and the results. `delayed_fetch` waits until there is enough.

Consumers read up to the high watermark, from the leader or from a follower; followers read up to the end of the
leader's log, and their fetch offsets show their progress.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.broker.replication.core.outcomes import Advance, FetchedPartition
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.topology import TopicPartition

CONSUMER = -1


@dataclass(slots=True)
class FetchTarget:
    """One partition as a fetcher names it. `error` is set when the request already got it wrong.

    A session keeps its targets, and with each the values of its last response; otherwise there are none.
    """

    partition: TopicPartition
    topic_id: UUID
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE
    log_start_offset: int = -1  # the follower's own
    sent_high_watermark: int = -1
    sent_log_start: int = -1
    seen_in: Partition | None = None  # position of the last successful epoch check


class FetchTerms(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    strict_max_bytes: bool = False  # the oldest versions can't take more than they asked for
    replica_id: int = CONSUMER  # the broker that follows
    replica_epoch: int = -1  # the epoch of its registration
    only_leader: bool = True  # whether a follower may not answer
    rack: str = ""  # rack of the consumer, for reads from a near replica
    listener: str = ""  # by which it came


class EpochEnd(NamedTuple):
    """End of an epoch in the leader's log, where it diverges from the fetcher's: the fetcher must truncate there."""

    epoch: int
    end_offset: int


class FetchOutcome(NamedTuple):
    target: FetchTarget
    error: ErrorCode
    found: FetchedPartition | None = None
    diverging: EpochEnd | None = None
    read_from: int = -1  # a better replica to read from; then nothing is found here

    @property
    def size(self) -> int:
        found = self.found
        return 0 if found is None or found.records is None else found.records.size


FindPartition = Callable[[TopicPartition], Partition]
PreferredReplica = Callable[[Partition, FetchTarget, FetchTerms], int | None]


class FetchReader:
    """Reads for fetches. `on_advance` gets the effects of a follower's fetch.

    Most partitions of a session are quiet most of the time, and there may be thousands: they cost next to nothing.
    """

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Partition],
        find: FindPartition,
        clock: Clock,
        quotas: ReplicationQuotas,
        on_advance: Callable[[TopicPartition, Advance], None],
        preferred_replica: PreferredReplica | None,
    ) -> None:
        self._partitions = partitions
        self._find = find
        self._clock = clock
        self._quotas = quotas
        self._on_advance = on_advance
        self._preferred_replica = preferred_replica

    def read(self, targets: Sequence[FetchTarget], terms: FetchTerms, *, again: bool = False) -> list[FetchOutcome]:
        """Read in the order asked until the bytes run out. The first record found is never cut for being too large.

        Partitions without news are left out. `again`: the fetch was read before, and its facts about the follower are
        recorded.
        """
        outcomes = []
        remaining = terms.max_bytes
        min_one = not terms.strict_max_bytes
        now_ms = self._clock.monotonic_ms()
        for target in targets:
            if target.sent_high_watermark >= 0 and self._skips(target, terms, now_ms, again):
                continue
            outcome = self._read_one(target, terms, min(remaining, target.max_bytes), min_one, again)
            if size := outcome.size:
                min_one = False
                remaining = max(0, remaining - size)
            outcomes.append(outcome)
        return outcomes

    def _read_one(
        self, target: FetchTarget, terms: FetchTerms, max_bytes: int, min_one: bool, again: bool
    ) -> FetchOutcome:
        if target.error:
            return FetchOutcome(target, target.error)
        try:
            partition = self._find(target.partition)
            if target.topic_id.int and partition.topic_id.int and target.topic_id != partition.topic_id:
                return FetchOutcome(target, ErrorCode.INCONSISTENT_TOPIC_ID)
            target.seen_in = partition
            if terms.replica_id >= 0:
                return self._read_for_follower(partition, target, terms, max_bytes, min_one, again)
            if self._preferred_replica is not None and terms.rack:
                better = self._preferred_replica(partition, target, terms)
                if better is not None:
                    return FetchOutcome(target, ErrorCode.NONE, _nothing(partition), read_from=better)
            partition.check_epoch(target.current_leader_epoch, only_leader=terms.only_leader)
            if target.last_fetched_epoch >= 0 and (diverging := _divergence(partition.log, target)) is not None:
                return FetchOutcome(target, ErrorCode.NONE, _nothing(partition), diverging)
            found = partition.committed.read(target.fetch_offset, max_bytes, terms.isolation, min_one)
            return FetchOutcome(target, ErrorCode.NONE, found)
        except KafkaError as error:
            return FetchOutcome(target, error.code)

    def _read_for_follower(
        self,
        partition: Partition,
        target: FetchTarget,
        terms: FetchTerms,
        max_bytes: int,
        min_one: bool,
        again: bool,
    ) -> FetchOutcome:
        replica_id, offset = terms.replica_id, target.fetch_offset
        leader_epoch = partition.leader_epoch  # before anything is read: what is recorded must be true in this epoch
        log = partition.leader_log(target.current_leader_epoch)
        partition.check_is_replica(replica_id, target.current_leader_epoch)
        if target.last_fetched_epoch >= 0 and (diverging := _divergence(log, target)) is not None:
            return FetchOutcome(target, ErrorCode.NONE, _nothing(partition), diverging)
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if not again:
            advance = partition.record_follower_fetch(
                replica_id,
                offset,
                log_start_offset=target.log_start_offset,
                leader_epoch=leader_epoch,
                broker_epoch=terms.replica_epoch,
            )
            self._on_advance(target.partition, advance)
        end = log.log_end_offset
        if offset >= end or self._quotas.leader_throttled(target.partition, in_sync=replica_id in partition.isr):
            return FetchOutcome(target, ErrorCode.NONE, _nothing(partition))
        records = log.read(offset, max_bytes, upper_bound=end, min_one_batch=min_one).records
        committed = partition.committed
        watermark = committed.high_watermark
        found = FetchedPartition(records, watermark, committed.last_stable_offset(watermark), log.log_start_offset)
        return FetchOutcome(target, ErrorCode.NONE, found)

    def _skips(self, target: FetchTarget, terms: FetchTerms, now_ms: int, again: bool) -> bool:
        """Return whether nothing has changed for the fetcher. The fetch of a follower that has everything is
        recorded when it is read for the first time: it has caught up once more."""
        partition = self._partitions.get(target.partition)
        if (
            partition is None
            or partition is not target.seen_in
            or partition.leader_epoch != target.current_leader_epoch
            or partition.committed.high_watermark != target.sent_high_watermark
            or partition.log.log_start_offset != target.sent_log_start
        ):
            return False
        if terms.replica_id < 0:
            return partition.committed.high_watermark <= target.fetch_offset <= partition.log.log_end_offset
        offset = target.fetch_offset
        if partition.log.log_end_offset != offset:
            return False
        return again or partition.record_idle_fetch(
            terms.replica_id,
            offset,
            log_start_offset=target.log_start_offset,
            leader_epoch=target.current_leader_epoch,
            broker_epoch=terms.replica_epoch,
            now_ms=now_ms,
        )

    def has_moved(self, targets: Iterable[FetchTarget], terms: FetchTerms) -> bool:
        """Return whether a second look at one of the partitions would find records, or an error."""
        is_follower = terms.replica_id >= 0
        for target in targets:
            partition = self._partitions.get(target.partition)
            if partition is None or partition is not target.seen_in:
                return True
            if target.current_leader_epoch >= 0 and partition.leader_epoch != target.current_leader_epoch:
                return True
            if not partition.is_leader and (is_follower or terms.only_leader):
                return True
            if is_follower:
                if partition.log.log_end_offset > target.fetch_offset and not self._quotas.leader_throttled(
                    target.partition, in_sync=terms.replica_id in partition.followers.isr
                ):
                    return True
                continue
            end = partition.committed.high_watermark
            if terms.isolation == READ_COMMITTED:
                end = partition.committed.last_stable_offset(end)
            if end > target.fetch_offset:
                return True
        return False


def _nothing(partition: Partition) -> FetchedPartition:
    committed = partition.committed
    watermark = committed.high_watermark
    return FetchedPartition(None, watermark, committed.last_stable_offset(watermark), partition.log.log_start_offset)


def _divergence(log: PartitionLog, target: FetchTarget) -> EpochEnd | None:
    epoch, end_offset = log.epochs.end_offset_for(target.last_fetched_epoch, log.log_end_offset)
    if epoch < 0 or end_offset < 0 or target.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
        return EpochEnd(epoch, end_offset)
    return None
