"""Fetches that name a partition many times, and offsets that are to be kept for as long as a number can say."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.broker.api.handlers.fetch import fetch
from odradek.broker.api.handlers.offset_commit import offset_commit
from odradek.broker.coordinator.groups.core.group_records import decode_offset, encode_offset
from odradek.broker.replication.leader.fetch_sessions import FetchSessions
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NOW_MS = 1_700_000_000_000


class Context:
    """A client's request, of which the broker keeps what it is told to do."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.header = SimpleNamespace(api_version=version)
        self.is_from_broker = False
        self.request = SimpleNamespace(connection=SimpleNamespace(listener_name="PLAINTEXT"))
        self.fetched: list[Any] = []
        self.committed: dict[TopicPartition, Any] = {}
        image = SimpleNamespace(topic_names={UUID(int=1): "orders"}, partition=lambda tp: tp)
        self.broker = SimpleNamespace(
            authorizer=None,
            clock=SimpleNamespace(now_ms=lambda: NOW_MS),
            config=SimpleNamespace(fetch_max_bytes=1 << 20),
            fetch_sessions=FetchSessions(1000, 60_000, SYSTEM_CLOCK),
            groups=SimpleNamespace(offsets=SimpleNamespace(commit=self._commit)),
            metadata=SimpleNamespace(image=image),
            quotas=SimpleNamespace(is_limiting=False),
            replicas=SimpleNamespace(fetch=lambda targets, terms, answer: self.fetched.extend(targets)),
        )

    def reply_with(self, build: Any) -> Any:
        return build

    def _commit(self, group_id: str, committer: Any, commits: dict[TopicPartition, Any], done: Any) -> None:
        self.committed.update(commits)


@pytest.mark.parametrize("version", [0, 12, 13])
@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_partition_that_a_fetch_names_many_times_is_read_once(version: int, epoch: int) -> None:
    ctx: Any = Context(version)
    partitions = [FetchPartition(partition=n % 2, fetch_offset=n) for n in range(1000)]
    topics = [FetchTopic(topic="orders", topic_id=UUID(int=1), partitions=partitions)] * 2
    fetch(FetchRequest(topics=topics, session_epoch=epoch), ctx)
    assert [(target.partition.partition, target.fetch_offset) for target in ctx.fetched] == [(0, 998), (1, 999)]


@pytest.mark.parametrize("retention_ms", [0, 1, (1 << 63) - 1])
def test_an_offset_that_never_expires_can_be_written(retention_ms: int) -> None:
    ctx: Any = Context(2)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[OffsetCommitRequestPartition(partition_index=0)])
    offset_commit(OffsetCommitRequest(group_id="g", retention_time_ms=retention_ms, topics=[topic]), ctx)
    (committed,) = ctx.committed.values()
    expires_ms = decode_offset(encode_offset(committed)).expire_timestamp_ms
    assert expires_ms == min(NOW_MS + retention_ms, (1 << 63) - 1)
