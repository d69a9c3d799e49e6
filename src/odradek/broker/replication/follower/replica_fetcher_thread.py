"""One thread that copies partitions from one leader, a fetch at a time.

Only the thread itself uses the connection, the session and the progress of its partitions; other threads post actions.

Each failed partition backs off separately, from a few milliseconds up to `replica.fetch.backoff.ms`: followers often
ask a new leader before the leader has the controller's LeaderAndIsr, and then a second is long.
"""

from collections.abc import Callable, Iterable, Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.replication.core.fetch_session_client import FetchSessionHandler, Position
from odradek.broker.replication.follower import fetch_answers
from odradek.broker.replication.follower.fetch_answers import CopyOutcome
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, FetchContext, Follower, Progress
from odradek.broker.replication.follower.fetcher_mailbox import FetcherMailbox
from odradek.broker.replication.follower.leader_link import LeaderLink
from odradek.client.broker_client import BrokerClient, ConnectionFailed, UnsupportedByBroker
from odradek.model.topology import Endpoint, TopicPartition
from odradek.protocol.messages.fetch import FetchResponse, PartitionData

_IDLE_MS = 5_000  # time after which a thread without partitions ends
_FIRST_BACKOFF_MS = 20
_SWEEP_MS = 1_000  # interval of the search for log starts that retention moved
_THROTTLED_MS = 100  # pause before the next check of a throttle

log = get_logger(__name__)


class ReplicaFetcherThread:
    def __init__(
        self,
        context: FetchContext,
        leader_id: int,
        endpoint: Endpoint,
        number: int,
        may_end: Callable[["ReplicaFetcherThread"], bool],
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._leader_id = leader_id
        self._may_end = may_end
        self._mailbox = FetcherMailbox()
        self._session = FetchSessionHandler(context.config.replica_fetch_max_bytes)
        client_id = f"broker-{context.broker_id}-fetcher-{number}"
        self._link = LeaderLink(context, endpoint, client_id, self._session, self._mailbox)
        self._thread = SupervisedThread(target=self._run, name=f"fetcher-{leader_id}-{number}")
        self._progress: dict[TopicPartition, Progress] = {}
        self._retry_at: dict[TopicPartition, int] = {}
        self._backoff_ms = 0
        self._swept_at = self._clock.monotonic_ms()

    # ---- any thread

    def start(self) -> None:
        self._thread.start()

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        self._mailbox.post(self._take_orders, orders, urgent=True)

    def unfollow(self, tps: Iterable[TopicPartition]) -> None:
        self._mailbox.post(self._drop, tps)

    def begin_stop(self) -> None:
        self._mailbox.stop()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    # ---- the thread

    def _run(self) -> None:
        while not self._mailbox.is_stopping:
            self._mailbox.take()
            try:
                self._step()
                continue
            except (ConnectionFailed, UnsupportedByBroker) as error:
                log.warning("replica fetcher failed to connect to leader", leader=self._leader_id, error=str(error))
            except Exception:
                log.exception("replica fetcher failed, restarting", leader=self._leader_id)
            self._link.disconnect()
            self._rest_longer()
        self._link.disconnect()

    def _step(self) -> None:
        if not self._progress:
            if not self._mailbox.rest(_IDLE_MS) and self._may_end(self):
                self._mailbox.stop()
            return
        now = self._clock.monotonic_ms()
        self._take_up_due(now)
        self._leave_out_throttled()
        self._sweep(now)
        if not self._session and not self._untruncated():
            self._mailbox.rest(min(self._retry_at.values(), default=now + _IDLE_MS) - now)
            return
        peer = self._connect()
        if not self._link.knows_divergence:
            self._truncate_by_epochs(peer)
        if not self._session:
            return
        answer = self._link.fetch()
        if answer is None:
            return
        if self._session.accept(answer):
            self._backoff_ms = 0
            self._take_answer(peer, answer)
        else:
            log.info("fetch session closed by leader", leader=self._leader_id, error=ErrorCode(answer.error_code).name)
            self._rest_longer()

    def _connect(self) -> BrokerClient:
        knew_divergence = self._link.knows_divergence
        peer = self._link.connect()
        if knew_divergence and not self._link.knows_divergence:
            for tp, progress in self._progress.items():
                progress.must_truncate = True
                self._session.forget(tp)
        return peer

    # ---- orders

    def _take_orders(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        for tp, order in orders.items():
            known = self._progress.get(tp)
            if known is not None and known.following == order:
                continue
            self._drop([tp])
            self._progress[tp] = Progress(order, must_truncate=not self._link.knows_divergence)
            if self._link.knows_divergence:
                self._want(tp)

    def _drop(self, tps: Iterable[TopicPartition]) -> None:
        for tp in tps:
            self._progress.pop(tp, None)
            self._retry_at.pop(tp, None)
            self._session.forget(tp)

    def _want(self, tp: TopicPartition) -> None:
        """Fetch on from the end of the log as it is now."""
        partition = self._context.find(tp)
        if partition is None:
            self._drop([tp])
        else:
            self._session.want(tp, self._position(partition, self._progress[tp].following))

    def _position(self, partition: Follower, following: FetchAssignment) -> Position:
        own = partition.log
        last_epoch = own.epochs.latest_epoch if self._link.knows_divergence else -1
        return Position(
            following.topic_id, following.leader_epoch, own.log_end_offset, last_epoch, own.log_start_offset
        )

    # ---- backing off

    def _longer(self, backoff_ms: int) -> int:
        return min(max(2 * backoff_ms, _FIRST_BACKOFF_MS), self._context.config.replica_fetch_backoff_ms)

    def _rest_longer(self) -> None:
        self._backoff_ms = self._longer(self._backoff_ms)
        self._mailbox.rest(self._backoff_ms)

    def _leave_out(self, tp: TopicPartition, pause_ms: int) -> None:
        self._session.forget(tp)
        self._retry_at[tp] = self._clock.monotonic_ms() + pause_ms

    def _take_up_due(self, now: int) -> None:
        for tp in [tp for tp, at in self._retry_at.items() if at <= now]:
            del self._retry_at[tp]
            if not self._progress[tp].must_truncate:
                self._want(tp)

    def _leave_out_throttled(self) -> None:
        quotas = self._context.quotas
        if quotas.follower.is_idle:
            return
        for tp, _ in [*self._session.positions()]:
            if quotas.follower_throttled(tp, in_sync=self._progress[tp].is_in_sync):
                self._leave_out(tp, _THROTTLED_MS)

    def _sweep(self, now: int) -> None:
        """Find changed log starts: the leader needs them, and retention moves them without a notification."""
        if now - self._swept_at < _SWEEP_MS:
            return
        self._swept_at = now
        for tp, position in [*self._session.positions()]:
            partition = self._context.find(tp)
            if partition is None or partition.log.log_start_offset != position.log_start_offset:
                self._want(tp)

    # ---- answers

    def _take_answer(self, peer: BrokerClient, answer: FetchResponse) -> None:
        names = self._session.topic_names
        out_of_range = [
            tp
            for topic in answer.responses
            for data in topic.partitions
            if (tp := TopicPartition(topic.topic or names.get(topic.topic_id.int, ""), data.partition_index))
            in self._session
            and self._take_one(tp, data) is CopyOutcome.OUT_OF_RANGE
        ]
        # Only now: another answer overwrites the records of this one.
        for tp in out_of_range:
            self._reset(peer, tp)

    def _take_one(self, tp: TopicPartition, data: PartitionData) -> CopyOutcome:
        progress, partition = self._progress[tp], self._context.find(tp)
        if partition is None:
            self._drop([tp])
            return CopyOutcome.OVER
        position = self._session.position(tp)
        if position is None or position.offset != partition.log.log_end_offset:
            self._want(tp)  # the log isn't the one that was asked for
            return CopyOutcome.COPIED
        watermark = partition.high_watermark
        outcome = fetch_answers.take(partition, tp, progress, data)
        if outcome is CopyOutcome.COPIED:
            progress.backoff_ms = 0
            self._session.want(tp, self._position(partition, progress.following))
            self._context.quotas.record_follower(tp, len(fetch_answers.records_in(data)))
            if partition.high_watermark != watermark:
                self._context.on_advance(tp)
        else:
            self._settle(tp, progress, outcome)
        return outcome

    def _settle(self, tp: TopicPartition, progress: Progress, outcome: CopyOutcome) -> None:
        if outcome is CopyOutcome.OVER:
            self._drop([tp])
        elif outcome is CopyOutcome.RETRY:
            progress.backoff_ms = self._longer(progress.backoff_ms)
            self._leave_out(tp, progress.backoff_ms)

    def _reset(self, peer: BrokerClient, tp: TopicPartition) -> None:
        progress, partition = self._progress[tp], self._context.find(tp)
        if partition is None:
            self._drop([tp])
            return
        broker_id = self._context.broker_id
        try:
            fetch_answers.reset_after_out_of_range(peer, broker_id, partition, tp, progress.following)
            self._want(tp)
        except KafkaError as error:
            self._settle(tp, progress, fetch_answers.failed(tp, error))

    # ---- leaders that don't report divergence

    def _untruncated(self) -> list[TopicPartition]:
        if self._link.knows_divergence:
            return []
        return [tp for tp, progress in self._progress.items() if progress.must_truncate and tp not in self._retry_at]

    def _truncate_by_epochs(self, peer: BrokerClient) -> None:
        """Ask for the end of each log's last epoch, and truncate to it, before the first fetch in an epoch."""
        asked: dict[TopicPartition, tuple[int, int]] = {}
        for tp in self._untruncated():
            partition = self._context.find(tp)
            if partition is not None and (last_epoch := partition.log.epochs.latest_epoch) >= 0:
                asked[tp] = (self._progress[tp].following.leader_epoch, last_epoch)
            else:
                self._progress[tp].must_truncate = False
                self._want(tp)
        if not asked:
            return
        for tp, (error, end) in fetch_answers.ask_epoch_ends(peer, self._context.broker_id, asked).items():
            self._truncate_by_epoch(tp, error, end)

    def _truncate_by_epoch(self, tp: TopicPartition, error: ErrorCode, end: tuple[int, int]) -> None:
        progress, partition = self._progress[tp], self._context.find(tp)
        try:
            if partition is None:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            if error:
                raise KafkaError(error, f"The leader can't tell the epochs of {tp}")
            if fetch_answers.cut(partition, tp, progress.following, end).is_final:
                progress.must_truncate = False
                self._want(tp)
        except KafkaError as failure:
            self._settle(tp, progress, fetch_answers.failed(tp, failure))
