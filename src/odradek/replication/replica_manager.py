"""The partitions that this broker hosts, and the doors to them: lead, stop, append, fetch.

Role changes come from the controller alone, through `apply` and `stop`. Handlers append and fetch.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from odradek.base.clock import Clock
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.log.log_dirs import LogDirs
from odradek.log.partition_log import AppendResult
from odradek.model.topology import PartitionDirective, TopicPartition
from odradek.purgatory.purgatory import Purgatory
from odradek.replication.fetching import (
    DelayedFetch,
    FetchOutcome,
    FetchTarget,
    FetchTerms,
    is_enough,
    read_partitions,
)
from odradek.replication.partition import Partition

log = get_logger(__name__)


class ReplicaManager:
    def __init__(self, broker_id: int, logs: LogDirs, fetches: Purgatory[TopicPartition], clock: Clock) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self.on_lead: Callable[[TopicPartition], None] = lambda tp: None
        """Told of each partition that this broker leads from now on, in this epoch."""
        self.on_resign: Callable[[TopicPartition], None] = lambda tp: None
        """Told of each partition that it leads no longer."""
        self._broker_id = broker_id
        self._logs = logs
        self._fetches = fetches
        self._clock = clock

    # ---- what the controller asks

    def apply(self, directives: Iterable[PartitionDirective], config: TopicConfig) -> dict[TopicPartition, ErrorCode]:
        """Lead what the controller says; an older leader epoch than the known one changes nothing."""
        return {directive.partition: self._apply_one(directive, config) for directive in directives}

    def _apply_one(self, directive: PartitionDirective, config: TopicConfig) -> ErrorCode:
        tp = directive.partition
        try:
            partition = self.partitions.get(tp) or self._host(directive, config)
        except KafkaError as error:
            log.error("partition can't be hosted", partition=str(tp), error=str(error))
            return error.code
        if directive.state.leader_epoch <= partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        partition.become_leader(directive, self._logs.high_watermark(tp))
        self.on_lead(tp)
        return ErrorCode.NONE

    def _host(self, directive: PartitionDirective, config: TopicConfig) -> Partition:
        tp, topic_id = directive.partition, directive.topic_id
        partition_log = self._logs.get_or_create(tp, topic_id, config)
        partition = Partition(tp, topic_id, partition_log, self._broker_id)
        self.partitions[tp] = partition
        return partition

    def stop(self, tps: Iterable[TopicPartition], *, delete: bool) -> None:
        """Serve these no more; with `delete`, their files go too."""
        for tp in tps:
            partition = self.partitions.pop(tp, None)
            with partition.lock if partition else nullcontext():
                if delete:
                    self._logs.delete(tp)
            self._fetches.check_and_complete(tp)
            self.on_resign(tp)

    def update_config(self, tps: Iterable[TopicPartition], config: TopicConfig) -> None:
        for tp in tps:
            if (partition := self.partitions.get(tp)) is not None:
                partition.update_config(self._logs.log_config(config))

    def take_offline(self, tps: Iterable[TopicPartition]) -> None:
        """Their directory failed: they answer with KAFKA_STORAGE_ERROR until the broker starts again."""
        for tp in tps:
            self.offline.add(tp)
            self.partitions.pop(tp, None)
            self.on_resign(tp)

    # ---- what handlers ask

    def find(self, tp: TopicPartition) -> Partition:
        try:
            return self.partitions[tp]
        except KeyError:
            code = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.offline else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code) from None

    def append(self, tp: TopicPartition, records: memoryview, *, acks: int, api_version: int) -> AppendResult:
        result = self.find(tp).append(records, acks=acks, api_version=api_version)
        self._fetches.check_and_complete(tp)
        return result

    def append_own(self, tp: TopicPartition, records: memoryview, *, acks: int) -> AppendResult:
        """What coordinators write: the state that they are rebuilt from."""
        result = self.find(tp).append_own(records, acks=acks)
        self._fetches.check_and_complete(tp)
        return result

    def fetch(
        self, targets: Sequence[FetchTarget], terms: FetchTerms, answer: Callable[[list[FetchOutcome]], None]
    ) -> None:
        """`answer` is called exactly once: now, when enough has arrived, or when the wait is over."""
        outcomes = read_partitions(self.find, targets, terms)

        def counted_answer(outcomes: list[FetchOutcome]) -> None:
            self._count_bytes_out(outcomes)
            answer(outcomes)

        if terms.max_wait_ms <= 0 or not targets or is_enough(outcomes, terms.min_bytes):
            counted_answer(outcomes)
            return
        delayed = DelayedFetch(self.find, targets, terms, counted_answer)
        self._fetches.try_complete_else_watch(delayed, [target.partition for target in targets])

    def _count_bytes_out(self, outcomes: Iterable[FetchOutcome]) -> None:
        for outcome in outcomes:
            if (size := outcome.size) and (partition := self.partitions.get(outcome.target.partition)) is not None:
                partition.bytes_out += size

    def delete_records(self, tp: TopicPartition, before_offset: int) -> int:
        return self.find(tp).delete_records_before(before_offset)

    # ---- what the scheduler asks

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {tp: partition.high_watermark for tp, partition in self.partitions.copy().items()}

    def delete_expired(self) -> None:
        """Retention: whole segments that are too old or too many, never beyond the high watermark."""
        for tp, partition in self.partitions.copy().items():
            try:
                with partition.lock:
                    partition.log.delete_expired(self._clock.now_ms(), partition.high_watermark)
            except KafkaError as error:
                log.error("retention failed", partition=str(tp), error=str(error))
