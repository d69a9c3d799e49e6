"""Fetch requests of a follower, from the handler down: what an incremental answer leaves out still counts."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from replica_stage import LISTENER, MAX_LAG_MS, ORDERS, ORDERS_ID, ReplicaStage

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.handlers.fetch import fetch
from odradek.broker.api.handlers.list_offsets import list_offsets
from odradek.broker.replication.leader.fetch_reader import FetchTerms
from odradek.broker.replication.leader.fetch_sessions import FetchSessions
from odradek.protocol.framing import RequestHeader, decode_response
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from odradek.protocol.messages.list_offsets import LATEST, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

VERSION = 17


class Asking:
    """A follower with a session, or whoever else sends requests."""

    def __init__(self, stage: ReplicaStage, broker_id: int = 1) -> None:
        self.stage = stage
        self.broker_id = broker_id
        self.broker_epoch = 1
        self.session_id = 0
        self.session_epoch = 0
        self.services: Any = SimpleNamespace(
            replicas=stage.replicas,
            metadata=stage.metadata,
            config=stage.config,
            fetch_sessions=FetchSessions(10, 100_000, stage.clock),
            quotas=SimpleNamespace(is_limiting=False),
            authorizer=None,
        )

    def context(self, version: int, answered: list[Any]) -> RequestContext:
        header = RequestHeader(1, version, 7, "follower", 0)
        request: Any = SimpleNamespace(connection=SimpleNamespace(listener_name=LISTENER, id="1"))
        timings: Any = None
        return RequestContext(self.services, header, request, timings, lambda _, response: answered.append(response))

    def fetch(self, offset: int | None = None, *, epoch: int = 1, wait_ms: int = 0) -> FetchResponse:
        """Naming the partition if there is an offset, otherwise only what was said before."""
        named = [] if offset is None else [self.partition_at(offset, epoch)]
        answered: list[FetchResponse | bytes] = []
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self.broker_id, replica_epoch=self.broker_epoch),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1_000_000,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[FetchTopic(topic_id=ORDERS_ID, partitions=named)] if named else [],
        )
        fetch(request, self.context(VERSION, answered))
        (response,) = answered
        if isinstance(response, bytes):
            _, response = decode_response(FetchResponse, memoryview(response)[4:], VERSION)
        self.session_id = response.session_id
        self.session_epoch += 1
        return response

    def partition_at(self, offset: int, epoch: int) -> FetchPartition:
        return FetchPartition(
            partition=0, current_leader_epoch=epoch, fetch_offset=offset, log_start_offset=0, partition_max_bytes=1_000
        )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path)
    stage.become(0, epoch=1, isr=(0, 1), replicas=(0, 1))
    yield stage
    stage.close()


def test_a_follower_of_a_quiet_partition_stays_in_sync_and_hears_of_the_next_record(stage: ReplicaStage) -> None:
    follower = Asking(stage)
    assert len(follower.fetch(0).responses) == 1, "the first answer names everything"
    for _ in range(5):
        stage.passes(MAX_LAG_MS)
        assert follower.fetch().responses == [], "nothing has changed"
    stage.produce("a", acks=1)
    stage.passes(MAX_LAG_MS // 2)
    stage.roles.check_replicas()
    assert not stage.proposed, "it had everything half of the allowed lag ago"
    (topic,) = follower.fetch().responses
    assert topic.partitions[0].records
    stage.passes(MAX_LAG_MS)
    stage.roles.check_replicas()
    assert stage.proposed[-1].isr == (0,), "it has the record offered and doesn't take it"


def test_a_quiet_partition_tells_that_more_is_committed(stage: ReplicaStage) -> None:
    follower = Asking(stage)
    follower.fetch(0)
    stage.produce("a", acks=1)
    follower.fetch()
    (topic,) = follower.fetch(1).responses
    assert topic.partitions[0].high_watermark == 1
    assert follower.fetch().responses == []


def test_a_follower_that_registered_again_may_stay_in_the_isr_of_a_quiet_partition(stage: ReplicaStage) -> None:
    stage.become(0, epoch=2, isr=(0, 1), replicas=(0, 1, 2))
    follower = Asking(stage)
    follower.fetch(0, epoch=2)
    follower.broker_epoch = 5
    assert follower.fetch().responses == []
    stage.fetch(0, replica=2, epoch=2, replica_epoch=3)
    assert stage.proposed[-1].isr == (0, 1, 2)
    assert stage.proposed[-1].broker_epochs == (-1, 5, 3), "the controller refuses a member of an earlier registration"


def test_a_session_hears_of_the_next_epoch(stage: ReplicaStage) -> None:
    follower = Asking(stage)
    follower.fetch(0)
    assert follower.fetch().responses == []
    stage.become(0, epoch=2, isr=(0, 1), replicas=(0, 1))
    (topic,) = follower.fetch().responses
    assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    leader = topic.partitions[0].current_leader
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (0, 2)


def test_a_topic_that_nobody_knew_is_found_when_it_is_hosted(stage: ReplicaStage) -> None:
    stage.roles.stop([ORDERS], delete=True)
    follower = Asking(stage)
    (topic,) = follower.fetch(0).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    stage.become(0, epoch=1, isr=(0, 1), replicas=(0, 1))
    (topic,) = follower.fetch().responses
    assert topic.partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "refusal"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_doesnt_name_an_end_before_its_watermark_is_sure(
    stage: ReplicaStage, version: int, refusal: ErrorCode
) -> None:
    stage.produce("a", acks=1)
    stage.become(0, epoch=2, isr=(0, 1), replicas=(0, 1))
    topics = [ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])]
    consumer = ListOffsetsRequest(replica_id=-1, topics=topics)
    follower = ListOffsetsRequest(replica_id=1, topics=topics)

    def ask(request: ListOffsetsRequest) -> Any:
        return list_offsets(request, Asking(stage).context(version, [])).topics[0].partitions[0]

    assert ask(consumer).error_code == refusal
    assert ask(follower).offset == 1, "followers see the end of the log"
    stage.fetch(1, replica=1, epoch=2)
    assert (ask(consumer).offset, ask(consumer).leader_epoch) == (1, 2)


def test_a_fetch_that_waited_counts_from_the_time_at_which_it_was_read_first(stage: ReplicaStage) -> None:
    """Its follower may be frozen since."""
    follower = Asking(stage)
    follower.fetch(0)
    assert follower.fetch().responses == []
    targets = follower.services.fetch_sessions.resume(
        follower.session_id, follower.session_epoch, by_topic_id=True
    ).targets()
    terms, known = FetchTerms(500, 1, 1_000, 0, replica_id=1, replica_epoch=1), stage.partition.followers.by_id[1]
    read_ms = known.last_fetch_ms
    stage.passes(MAX_LAG_MS // 2)
    assert stage.replicas._reader.read(targets, terms, again=True) == []
    assert known.last_fetch_ms == read_ms
    assert stage.replicas._reader.read(targets, terms) == []
    assert known.last_fetch_ms == read_ms + MAX_LAG_MS // 2
