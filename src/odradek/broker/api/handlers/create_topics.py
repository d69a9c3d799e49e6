"""CreateTopics (key 19): new topics, with a number of partitions or with an assignment of one's own.

Versions 0-7. v1 can validate only; v4 takes -1 for the broker's defaults; v5 answers with the configuration, v7 with
the topic's id; v6+ is refused with THROTTLING_QUOTA_EXCEEDED where the client makes and deletes too many. Not done:
nothing.
"""

from collections import Counter

from odradek.base.config.describe import describe_topic
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.new_topics import CreatedTopic, NewTopic
from odradek.broker.api.authorization import NONE_DENIED, authorized_on_cluster, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.mutation_permits import permit_for
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.primitives import ZERO_UUID

DEFAULT = -1


@handles(ApiKey.CREATE_TOPICS, versions="0-7", may_block=True)
def create_topics(request: CreateTopicsRequest, ctx: RequestContext) -> Outcome:
    times_named = Counter(topic.name for topic in request.topics)
    unique = [topic for topic in request.topics if times_named[topic.name] == 1]
    names = [topic.name for topic in unique]
    denied, hidden = NONE_DENIED, NONE_DENIED
    if ctx.broker.authorizer is not None:
        if not authorized_on_cluster(ctx, AclOperation.CREATE, log_denied=False):
            denied = denied_topics(ctx, AclOperation.CREATE, names)
        hidden = denied_topics(ctx, AclOperation.DESCRIBE_CONFIGS, names, log_denied=False)
    allowed = [topic for topic in unique if topic.name not in denied]

    def created(topic: CreatedTopic) -> CreatableTopicResult:
        result = _created(topic, ctx) if topic.name not in hidden else _without_configs(topic)
        if request.validate_only:  # only created topics have ids
            result.topic_id = ZERO_UUID
        return result

    def response(outcomes: list[CreatedTopic | KafkaError]) -> CreateTopicsResponse:
        results = [_refused(name, _named_twice(name)) for name, times in times_named.items() if times > 1]
        results += [_denied(topic.name, is_hidden=topic.name in hidden) for topic in unique if topic.name in denied]
        for topic, outcome in zip(allowed, outcomes, strict=True):
            results.append(_refused(topic.name, outcome) if isinstance(outcome, KafkaError) else created(outcome))
        return CreateTopicsResponse(topics=results)

    ctx.broker.topics.create(
        [_new_topic(topic, ctx) for topic in allowed],
        validate_only=request.validate_only,
        timeout_ms=request.timeout_ms,
        permit=permit_for(ctx, strict_since=6),
        done=ctx.reply_with(response),
    )
    return LATER


def _named_twice(name: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Create topics request from client named {name} twice.")


def _new_topic(topic: CreatableTopic, ctx: RequestContext) -> NewTopic:
    config = ctx.broker.config
    return NewTopic(
        name=topic.name,
        partitions=config.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions,
        replication_factor=(
            config.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
        ),
        counts_given=topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT,
        assignments={a.partition_index: tuple(a.broker_ids) for a in topic.assignments},
        configs=[(entry.name, entry.value) for entry in topic.configs],
    )


def _created(topic: CreatedTopic, ctx: RequestContext) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in describe_topic(ctx.broker.live, topic.overrides)
        ],
    )


def _without_configs(topic: CreatedTopic) -> CreatableTopicResult:
    """Answer a principal that may create the topic and not see its configuration."""
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=-1,
        replication_factor=-1,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _denied(name: str, *, is_hidden: bool) -> CreatableTopicResult:
    result = _refused(name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    if is_hidden:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return result


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message or None)
