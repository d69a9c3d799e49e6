"""Fetch (key 1): read records, at once or when enough have arrived; the bytes go from page cache to socket.

Versions 0-17. v3 adds a limit for the whole answer, v4 isolation, v7 incremental sessions, v9 fencing by leader
epoch, v11 reading from a replica near by, v12 detection of divergence, v13 topic ids instead of names, v16 the current
leader. v0-3 get the older message formats by conversion. Followers name their broker id (since v15 in `replica_state`)
and read to the end of the log. Not done: nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.file_slice import COPIED_BYTES_MAX, FileSlice
from odradek.base.threads import SupervisedExecutor
from odradek.broker.api.authorization import authorized_on_cluster, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.current_leader import current_leader, leader_node
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.broker.replication.leader.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, SESSIONLESS, FetchSession
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.native.load import compiled
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import RequestHeader
from odradek.protocol.legacy_records import down_convert
from odradek.protocol.messages.fetch import (
    AbortedTxn,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.protocol.records import DEFAULT_MAX_DECOMPRESSED
from odradek.protocol.schema import Response

FIRST_WITH_RACK = 11
FIRST_FLEXIBLE = 12
FIRST_WITH_TOPIC_IDS = 13
FIRST_WITH_LEADER = 16
FIRST_WITH_BATCH_V2 = 4
FIRST_WITH_MAGIC_1 = 2
FIRST_WITH_ZSTD = 10
UNBOUNDED = 2**31 - 1
LEADERSHIP_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})

# Converting takes every record apart. A thread that completes fetches has no time for that, and two need twice the
# memory.
CONVERTER = SupervisedExecutor("down-conversion")


@handles(ApiKey.FETCH, versions="0-17", may_block=False)
def fetch(request: FetchRequest, ctx: RequestContext) -> Response | Outcome:
    terms = _terms(request, ctx)
    ctx.is_from_broker = terms.replica_id >= 0 and authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
    try:
        session, targets, full = _session(request, terms, ctx)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    if ctx.broker.authorizer is not None:
        targets = _authorized(targets, terms, ctx)
    answer = ctx.reply_with(partial(_response, ctx, request, session, full))
    if ctx.version < FIRST_WITH_BATCH_V2:
        answer = _on_converter(answer)
    ctx.broker.replicas.fetch(targets, terms, answer)
    return LATER


def _authorized(targets: list[FetchTarget], terms: FetchTerms, ctx: RequestContext) -> list[FetchTarget]:
    """Refuse the targets that the principal may not read, in this response and not in the session. A client that
    claims to be a follower without the right gets nothing, and its session is not that of a follower."""
    if ctx.is_from_broker:
        return targets
    if terms.replica_id >= 0:
        denied = frozenset(target.partition.topic for target in targets)
    else:
        denied = denied_topics(
            ctx, AclOperation.READ, [target.partition.topic for target in targets if not target.error]
        )
        if not denied:
            return targets
    return [
        replace(target, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if target.partition.topic in denied and not target.error
        else target
        for target in targets
    ]


def _on_converter(answer: Callable[[list[FetchOutcome]], None]) -> Callable[[list[FetchOutcome]], None]:
    def hand_over(outcomes: list[FetchOutcome]) -> None:
        CONVERTER.submit(answer, outcomes)

    return hand_over


def _terms(request: FetchRequest, ctx: RequestContext) -> FetchTerms:
    broker, version, replica = ctx.broker, ctx.header.api_version, request.replica_state
    replica_id, replica_epoch = (
        (request.replica_id, -1) if replica is None else (replica.replica_id, replica.replica_epoch)
    )
    max_bytes = min(request.max_bytes if version >= 3 else UNBOUNDED, broker.config.fetch_max_bytes)
    if broker.quotas.is_limiting and replica_id < 0:
        max_bytes = int(min(max_bytes, broker.quotas.fetch.most_at_once(ctx.user, ctx.client_id)))
    return FetchTerms(
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.isolation_level,
        version <= 2,
        replica_id,
        replica_epoch,
        replica_id >= 0 or version < FIRST_WITH_RACK,
        request.rack_id,
        ctx.request.connection.listener_name,
    )


# ---- requested partitions


def _session(
    request: FetchRequest, terms: FetchTerms, ctx: RequestContext
) -> tuple[FetchSession | None, list[FetchTarget], bool]:
    """The session if there is one, what to read, and whether the answer names every partition."""
    sessions = ctx.broker.fetch_sessions
    by_id = ctx.version >= FIRST_WITH_TOPIC_IDS
    name_of = names_for(ctx)
    named = _each_once(_named(request, name_of if by_id else None))
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != SESSIONLESS:
            sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH:
            session = sessions.open(named, by_topic_id=by_id, is_follower=ctx.is_from_broker)
        return session, [target for _, target in named], True
    session = sessions.resume(request.session_id, request.session_epoch, by_topic_id=by_id)
    if named or request.forgotten_topics_data:
        session.update(named, _forgotten(request, by_id))
    targets = session.targets()
    if not targets:  # the last partition was forgotten
        sessions.close(session.id)
        return None, [], True
    for target in targets:
        if target.error:  # the topic may have become known meanwhile
            _find_name(target, name_of)
    return session, targets, False


def _find_name(target: FetchTarget, name_of: Callable[[UUID], str]) -> None:
    if name := name_of(target.topic_id):
        target.partition = TopicPartition(name, target.partition.partition)
        target.error = ErrorCode.NONE


def names_for(ctx: RequestContext) -> Callable[[UUID], str]:
    """Names of topics for one request; empty for an unknown one. A follower may come before the metadata does: then the
    leader's own replicas know the topic, which are gone through once, however many topics are unknown."""
    known = ctx.broker.metadata.image.topic_names
    hosted: Mapping[UUID, str] | None = None

    def name_of(topic_id: UUID) -> str:
        nonlocal hosted
        if name := known.get(topic_id):
            return name
        if hosted is None:
            hosted = ctx.broker.replicas.topic_names()
        return hosted.get(topic_id, "")

    return name_of


def _each_once(named: Iterable[tuple[Hashable, FetchTarget]]) -> list[tuple[Hashable, FetchTarget]]:
    """Remove repeated partitions: the last one counts, as in Kafka, so that each is read, or converted, once."""
    return list(dict(named).items())


def _named(request: FetchRequest, name_of: Callable[[UUID], str] | None) -> Iterable[tuple[Hashable, FetchTarget]]:
    """`name_of` is given where topics come by their ids."""
    by_id = name_of is not None
    for topic in request.topics:
        name = topic.topic if name_of is None else name_of(topic.topic_id)
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id and not name else ErrorCode.NONE
        for asked in topic.partitions:
            yield (
                (topic.topic_id.int if by_id else name, asked.partition),
                FetchTarget(
                    TopicPartition(name, asked.partition),
                    topic.topic_id,
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    asked.last_fetched_epoch,
                    error,
                    asked.log_start_offset,
                ),
            )


def _forgotten(request: FetchRequest, by_id: bool) -> Iterable[Hashable]:
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield topic.topic_id.int if by_id else topic.topic, partition


# ---- the answer


def _response(
    ctx: RequestContext, request: FetchRequest, session: FetchSession | None, full: bool, outcomes: list[FetchOutcome]
) -> FetchResponse | bytes:
    is_limiting = ctx.broker.quotas.is_limiting
    if is_limiting and not ctx.is_from_broker and _is_over_quota(ctx, outcomes):
        return _nothing_for_now(ctx, session, full)
    by_id = ctx.header.api_version >= FIRST_WITH_TOPIC_IDS
    if session is not None:
        keyed = [
            ((o.target.topic_id.int if by_id else o.target.partition.topic, o.target.partition.partition), o)
            for o in outcomes
        ]
        outcomes = session.news(keyed, full=full)
    if compiled is not None and not is_limiting:  # else the time to wait has to be put into it
        session_id = SESSIONLESS if session is None else session.id
        frame = _usual_response(ctx.header, session_id, outcomes, request.isolation_level == READ_COMMITTED)
        if frame is not None:
            return frame
    topics = [
        FetchableTopicResponse(
            topic=name, topic_id=topic_id, partitions=[_partition(o, request, ctx) for o in of_topic]
        )
        for (name, topic_id), of_topic in groupby(outcomes, key=_topic_of)
    ]
    response = FetchResponse(session_id=session.id if session else SESSIONLESS, responses=topics)
    if ctx.version >= FIRST_WITH_LEADER and any(outcome.error in LEADERSHIP_ERRORS for outcome in outcomes):
        _tell_leaders(response, outcomes, ctx)
    return response


def _usual_response(
    header: RequestHeader, session_id: int, outcomes: list[FetchOutcome], is_committed: bool
) -> bytes | None:
    """The frame of partitions without errors whose records are copied into it; None for any others."""
    version = header.api_version
    if compiled is None or version < FIRST_FLEXIBLE:
        return None
    records: list[bytes] = []
    left = COPIED_BYTES_MAX
    for outcome in outcomes:
        found = outcome.found
        data, piece = b"", None if found is None else found.records
        if piece is not None and (size := piece.size):
            left -= size
            if left < 0:
                return None
            data = piece.read()
            if len(data) < size:
                return None
        records.append(data)
    return compiled.fetch_response(outcomes, records, session_id, header.correlation_id, version, is_committed)


def _is_over_quota(ctx: RequestContext, outcomes: list[FetchOutcome]) -> bool:
    """Return whether the client gets no records now. A client within its limit gets everything, and waits afterwards:
    so it can also read records that are larger than the limit.
    """
    quota = ctx.broker.quotas.fetch
    ctx.throttle_ms = quota.wait_ms(ctx.user, ctx.client_id)
    if ctx.throttle_ms:
        return True
    size = sum(o.found.records.size for o in outcomes if o.found is not None and o.found.records is not None)
    ctx.throttle_ms = quota.charge(ctx.user, ctx.client_id, size)
    return False


def _nothing_for_now(ctx: RequestContext, session: FetchSession | None, full: bool) -> FetchResponse:
    """Empty answer of a throttled fetch. A full fetch expects an answer for every partition: its session is closed."""
    if session is None or full:
        if session is not None:
            ctx.broker.fetch_sessions.close(session.id)
        return FetchResponse(session_id=SESSIONLESS)
    return FetchResponse(session_id=session.id)


def _tell_leaders(response: FetchResponse, outcomes: list[FetchOutcome], ctx: RequestContext) -> None:
    in_order = iter(outcomes)
    nodes = {}
    for topic in response.responses:
        for partition, outcome in zip(topic.partitions, in_order, strict=False):
            if outcome.error in LEADERSHIP_ERRORS:
                leader = current_leader(outcome.target.partition, ctx)
                partition.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
                nodes[leader.id] = leader_node(leader, ctx)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes.values() if node
    ]


def _topic_of(outcome: FetchOutcome) -> tuple[str, UUID]:
    return outcome.target.partition.topic, outcome.target.topic_id


def _partition(outcome: FetchOutcome, request: FetchRequest, ctx: RequestContext) -> PartitionData:
    index = outcome.target.partition.partition
    found = outcome.found
    if outcome.error or found is None:
        return PartitionData(partition_index=index, error_code=outcome.error, high_watermark=-1, records=b"")
    try:
        records = _in_format(found.records, outcome.target, ctx)
    except KafkaError as error:
        return PartitionData(partition_index=index, error_code=error.code, high_watermark=-1, records=b"")
    data = PartitionData(
        partition_index=index,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable_offset,
        log_start_offset=found.log_start_offset,
        aborted_transactions=(
            [AbortedTxn(producer_id=a.producer_id, first_offset=a.first_offset) for a in found.aborted]
            if request.isolation_level == READ_COMMITTED
            else None
        ),
        records=records,
    )
    if outcome.read_from >= 0:
        data.preferred_read_replica = outcome.read_from
    if outcome.diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=outcome.diverging.epoch, end_offset=outcome.diverging.end_offset)
    return data


def _in_format(records: FileSlice | None, target: FetchTarget, ctx: RequestContext) -> FileSlice | bytes:
    if records is None or not records.size:
        return b""
    if ctx.version >= FIRST_WITH_ZSTD:
        return records
    config = ctx.broker.replicas.find(target.partition).log.config
    if config.compression_type == "zstd":
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if ctx.version >= FIRST_WITH_BATCH_V2:
        return records
    if not config.message_downconversion_enable:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return down_convert(
        records.read(),
        magic=1 if ctx.version >= FIRST_WITH_MAGIC_1 else 0,
        first_offset=target.fetch_offset,
        max_decompressed=DEFAULT_MAX_DECOMPRESSED,
    )
