"""Sender of transaction markers to the leaders of the partitions; completes the end when all are written.

One queue per broker; this broker's own partitions are written without a connection, the markers of many ends together
(`write_own`). A partition without a leader is looked up again, a refused one retried, until its marker is written or
its topic is gone. Each end of a transaction is an object of its own (`Ending`): a late answer can complete nothing but
its own end, and that once.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.coordinator.transactions.batch_channel import BatchChannels, Connect
from odradek.broker.coordinator.transactions.core.transaction_story import (
    MARKERS_DROPPED,
    MARKERS_REFUSED,
    MARKERS_WRITTEN,
)
from odradek.broker.coordinator.transactions.transaction_entry import Ending
from odradek.broker.coordinator.transactions.transaction_stories import TransactionStories
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer
from odradek.broker.replication.leader.marker_writer import MarkerToWrite
from odradek.client.broker_client import BrokerClient
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.protocol.transaction_markers import EndTransactionMarker

log = get_logger(__name__)

RETRY_BACKOFF_MS = 100
QUICK_RETRIES = 30
"""Number of retries before the pauses become longer: an election is over by then, and what else may be wrong (too few
replicas in sync) can last for hours."""
SLOW_RETRY_BACKOFF_MS = 1_000
RETRIES_PER_LOG_LINE = 60
LOOKS_UNTIL_GONE = 20
"""Number of times that a partition is looked up that no metadata names. A dropped marker can't be made good, and this
broker may hear of a topic, or of a partition of __consumer_offsets, later than producers do."""

_WRITTEN = frozenset(
    {
        ErrorCode.NONE,
        # The partition knows a newer epoch of the producer, from after this end: its transaction has ended.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)


class MarkerSender:
    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        connect: Connect,
        write_here: Callable[[Sequence[MarkerToWrite], Callable[[int, ErrorCode], None]], None],
        completed: Callable[[Ending], None],
        together: Callable[[], AbstractContextManager[object]],
        stories: TransactionStories,
    ) -> None:
        """`write_here` writes to partitions that this broker leads, and reports each marker by its index. `completed`
        is called once for each end whose markers are all written, without a lock; what its calls append within a block
        of `together` is one append. So are the completions of a response.
        """
        self._broker_id = broker_id
        self._metadata = metadata
        self._reaper = reaper
        self._write_here = write_here
        self._completed = completed
        self._together = together
        self._stories = stories
        self._lock = threading.Lock()
        self._own: list[_Part] = []  # for `write_own`
        self._channels: BatchChannels[_Part] = BatchChannels(
            "transaction-markers", connect, self._exchange, self._unreachable
        )
        metadata.on_publish.append(lambda image: self._channels.hang_up_on_others(image.brokers))
        self.unknown_destinations = 0
        """Number of partitions that wait for a leader, for metrics."""

    def stop(self) -> None:
        self._channels.stop()

    def send(self, ending: Ending) -> None:
        """Have the markers written, then call `completed`. Never blocks. `write_own` is to be called after it."""
        if not ending.remaining:
            self._completed(ending)
        else:
            self._route(ending, ending.remaining.copy())

    def cancel(self, ending: Ending) -> None:
        """Cancel an end that another coordinator completes: `completed` isn't called any more."""
        with self._lock:
            ending.is_cancelled = True

    # ---- destinations of markers

    def _route(self, ending: Ending, partitions: Collection[TopicPartition], looks: int = 0, retries: int = 0) -> None:
        """Sort partitions by leader. `looks`: number of unsuccessful lookups before; `retries`: of all retries."""
        image = self._metadata.image
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        gone: list[TopicPartition] = []
        # Kafka's controller first sends a broker the live brokers, and partitions after that. This broker leads one of
        # this topic.
        would_know = TRANSACTIONS_TOPIC in image.topics and looks >= LOOKS_UNTIL_GONE
        for tp in partitions:
            state = image.partition(tp)
            if state is not None:
                by_leader[state.leader if state.leader in image.brokers else NO_LEADER].append(tp)
            elif would_know:
                gone.append(tp)  # its topic was deleted
            else:
                by_leader[NO_LEADER].append(tp)
        if gone:
            log.info("markers dropped, topic deleted", transactional_id=ending.entry.key, partitions=_text(gone))
            self._stories.markers(MARKERS_DROPPED, ending.entry, ending.transaction, gone, None, "topic deleted")
        for leader, tps in by_leader.items():
            self._send_to(_Part(ending, tps, leader, looks + 1, retries))
        self._written(ending, gone)

    def _send_to(self, part: "_Part") -> None:
        if part.leader == NO_LEADER:
            self.unknown_destinations += len(part.partitions)
            self._retry_later(part, lambda: self._count_known(part))
        elif part.leader == self._broker_id:
            with self._lock:
                self._own.append(part)
        else:
            self._channels.put(part.leader, part)

    def write_own(self) -> None:
        """Write the markers for partitions of this broker: those of all ends that were sent since the last time."""
        with self._lock:
            parts, self._own = self._own, []
        asked: list[tuple[_Part, TopicPartition]] = []
        markers: list[MarkerToWrite] = []
        for part in parts:
            if part.ending.is_cancelled:
                continue
            marker = part.marker_here()
            for tp in part.partitions:
                asked.append((part, tp))
                markers.append(MarkerToWrite(marker, tp))

        def settle(slot: int, code: ErrorCode) -> None:
            part, tp = asked[slot]
            with self._lock:
                part.answers[tp] = code
                is_last = len(part.answers) == len(part.partitions)
            if is_last:
                self._settle(part, part.answers)

        try:
            if markers:
                self._write_here(markers, settle)
        except Exception:
            log.exception("markers can't be written, retrying", markers=len(markers))
            for part in parts:  # those that are written are settled, or will be; a repeated marker does no harm
                self._retry_later(part)

    def _count_known(self, part: "_Part") -> None:
        self.unknown_destinations -= len(part.partitions)

    def _exchange(self, client: BrokerClient, parts: list["_Part"]) -> None:
        wanted = [part for part in parts if not part.ending.is_cancelled]
        if wanted:
            answer = client.send(WriteTxnMarkersRequest(markers=[part.marker() for part in wanted]))
            with self._together():
                self._answered(wanted, answer.markers)

    def _unreachable(self, parts: list["_Part"], error: Exception) -> None:
        log.info("markers can't be sent, retrying", error=str(error), markers=len(parts))
        for part in parts:
            self._retry_later(part)

    # ---- results of markers

    def _answered(self, parts: Iterable["_Part"], results: list[WritableTxnMarkerResult]) -> None:
        answers: dict[int, dict[TopicPartition, ErrorCode]] = defaultdict(dict)
        for result in results:
            answers[result.producer_id].update(
                (TopicPartition(topic.name, each.partition_index), ErrorCode(each.error_code))
                for topic in result.topics
                for each in topic.partitions
            )
        for part in parts:
            self._settle(part, answers[part.ending.transaction.producer_id])

    def _settle(self, part: "_Part", answers: Mapping[TopicPartition, ErrorCode]) -> None:
        ending = part.ending
        errors = {tp: answers.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR) for tp in part.partitions}
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in errors.values():
            log.info("coordinator fenced, markers left to the next one", transactional_id=ending.entry.key)
            self._record(MARKERS_REFUSED, part, part.partitions, "TRANSACTION_COORDINATOR_FENCED")
            self.cancel(ending)
            return
        refused = {tp: error for tp, error in errors.items() if error not in _WRITTEN}
        if refused:
            if part.retries % RETRIES_PER_LOG_LINE == 0:
                log.info(
                    "markers refused, retrying",
                    transactional_id=ending.entry.key,
                    errors={str(tp): error.name for tp, error in refused.items()},
                    retries=part.retries,
                )
            self._record(MARKERS_REFUSED, part, list(refused), ", ".join({error.name for error in refused.values()}))
            self._retry_later(_Part(ending, list(refused), part.leader, retries=part.retries))
        written = [tp for tp in errors if tp not in refused]
        if written:
            self._record(MARKERS_WRITTEN, part, written)
        self._written(ending, written)

    def _record(self, what: str, part: "_Part", partitions: list[TopicPartition], why: str = "") -> None:
        self._stories.markers(what, part.ending.entry, part.ending.transaction, partitions, part.leader, why)

    def _written(self, ending: Ending, partitions: Iterable[TopicPartition]) -> None:
        with self._lock:
            if not ending.remaining or ending.is_cancelled:
                return
            ending.remaining.difference_update(partitions)
            is_last = not ending.remaining
        if is_last:
            self._completed(ending)

    def _retry_later(self, part: "_Part", before: Callable[[], None] = lambda: None) -> None:
        def again() -> None:
            before()
            if not (part.ending.is_cancelled or self._channels.is_stopped):
                looks = part.looks if part.leader == NO_LEADER else 0
                self._route(part.ending, part.partitions, looks, part.retries + 1)
                self.write_own()

        later(self._reaper, retry_backoff_ms(part.retries), again)


class _Part:
    """The partitions of an end that have one leader."""

    __slots__ = ("answers", "ending", "leader", "looks", "partitions", "retries")

    def __init__(
        self, ending: Ending, partitions: list[TopicPartition], leader: int, looks: int = 0, retries: int = 0
    ) -> None:
        self.ending = ending
        self.partitions = partitions
        self.leader = leader
        self.looks = looks
        self.retries = retries
        self.answers: dict[TopicPartition, ErrorCode] = {}
        """Outcomes so far, where this broker is the leader. Guarded by the sender's lock."""

    def marker(self) -> WritableTxnMarker:
        topics: dict[str, list[int]] = defaultdict(list)
        for tp in self.partitions:
            topics[tp.topic].append(tp.partition)
        transaction = self.ending.transaction
        return WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=self.ending.is_commit,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=ids) for name, ids in topics.items()],
            coordinator_epoch=self.ending.coordinator_epoch,
            transaction_version=transaction.client_version,
        )

    def marker_here(self) -> EndTransactionMarker:
        ending, transaction = self.ending, self.ending.transaction
        return EndTransactionMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            ending.coordinator_epoch,
            ending.is_commit,
            transaction.bumps_epochs,
        )


class _Later(Timer):
    __slots__ = ("_action",)

    def __init__(self, delay_ms: int, action: Callable[[], None]) -> None:
        super().__init__(delay_ms)
        self._action = action

    def expire(self) -> None:
        self._action()


def retry_backoff_ms(retries: int) -> int:
    """The pause after so many retries."""
    return RETRY_BACKOFF_MS if retries < QUICK_RETRIES else SLOW_RETRY_BACKOFF_MS


def later(reaper: ExpirationReaper, delay_ms: int, action: Callable[[], None]) -> None:
    """Do something after a while, on the reaper's thread."""
    timer = _Later(delay_ms, action)
    while not reaper.add(timer):
        pass  # the clock moved between the question and the adding


def _text(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
