"""The follower's side of a fetch session: it omits positions that the leader already knows.

The first request of a session names every partition; later requests name the partitions whose position changed and
those that were removed. Pure bookkeeping, used by one fetch loop.

    session id, epoch     the next request
    0, 0                  names all partitions, and requests a new session
    n, 0                  names all, requests a new session and ends the old one, whose state is uncertain
    n, 1 and up           names what changed
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import SESSION_EPOCH_MAX, FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

_SPARE_NAMES = 16  # of topics that are fetched no longer; the rest is thrown away


class Position(NamedTuple):
    """State of one partition in a fetch."""

    topic_id: UUID
    leader_epoch: int
    offset: int
    last_epoch: int
    log_start_offset: int


class FetchSessionHandler:
    def __init__(self, max_bytes: int) -> None:
        self.session_id = 0
        self.epoch = 0
        self.topic_names: dict[int, str] = {}
        """Names by the numbers of topic ids: an id hashes in Python."""
        self._max_bytes = max_bytes
        self._positions: dict[TopicPartition, Position] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._to_forget: dict[TopicPartition, UUID] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._positions

    @property
    def has_all_topic_ids(self) -> bool:
        return 0 not in self.topic_names

    def position(self, tp: TopicPartition) -> Position | None:
        return self._positions.get(tp)

    def positions(self) -> Iterable[tuple[TopicPartition, Position]]:
        return self._positions.items()

    def want(self, tp: TopicPartition, position: Position) -> None:
        """Fetch the partition from here. The partition moves to the end of the order, so that each gets its turn when
        answers are full.
        """
        before = self._positions.pop(tp, None)
        self._positions[tp] = position
        if before == position:
            return
        self._changed[tp] = None
        topic_id = position.topic_id
        self.topic_names[topic_id.int] = tp.topic
        if before is not None and before.topic_id is not topic_id and before.topic_id != topic_id:
            self._to_forget[tp] = before.topic_id
        elif self._to_forget and self._to_forget.get(tp) == topic_id:
            del self._to_forget[tp]

    def forget(self, tp: TopicPartition) -> None:
        position = self._positions.pop(tp, None)
        if position is not None:
            self._changed.pop(tp, None)
            self._to_forget.setdefault(tp, position.topic_id)

    def next_topics(self) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return the partitions of the next request: (wanted, no longer wanted). To be called once per request."""
        if self.epoch == 0 or len(self.topic_names) > 2 * len(self._positions) + _SPARE_NAMES:
            self.topic_names = {position.topic_id.int: tp.topic for tp, position in self._positions.items()}
        wanted = self._topics(self._changed if self.epoch else self._positions)
        forgotten = self._forgotten() if self.epoch and self._to_forget else []
        self._changed.clear()
        self._to_forget.clear()
        return wanted, forgotten

    def accept(self, answer: FetchResponse) -> bool:
        """Take an answer; return whether it is of use. If not, the next request names everything."""
        if answer.error_code:
            not_found = answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.session_id, self.epoch = (0 if not_found else self.session_id), 0
            return False
        if answer.session_id == 0:
            self.session_id = self.epoch = 0
        else:
            self.session_id = answer.session_id
            self.epoch = self.epoch + 1 if self.epoch < SESSION_EPOCH_MAX else 1
        return True

    def restart(self) -> None:
        """Start a new session after a failed request: the leader's view of the old one is unknown."""
        self.epoch = 0

    def _topics(self, tps: Iterable[TopicPartition]) -> list[FetchTopic]:
        topics: dict[tuple[str, int], FetchTopic] = {}
        for tp in tps:
            topic_id, leader_epoch, offset, last_epoch, log_start_offset = self._positions[tp]
            key = (tp.topic, topic_id.int)
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchTopic(topic=tp.topic, topic_id=topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=tp.partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=log_start_offset,
                    partition_max_bytes=self._max_bytes,
                )
            )
        return [*topics.values()]

    def _forgotten(self) -> list[ForgottenTopic]:
        topics: dict[tuple[str, UUID], ForgottenTopic] = {}
        for tp, topic_id in self._to_forget.items():
            key = (tp.topic, topic_id)
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = ForgottenTopic(topic=tp.topic, topic_id=topic_id)
            topic.partitions.append(tp.partition)
        return [*topics.values()]
