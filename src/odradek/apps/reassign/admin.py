"""What planning and running ask of a cluster, over the wire. Any broker of it may be Odradek or Apache Kafka.

`Admin` says what a run needs; `WireAdmin` does it with Kafka's requests. What fails for a moment (a broker that died, a
controller that moves) raises `Unreachable`, and can be asked again.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from odradek.apps.reassign.core.throttles import BROKER, Entity, Settings
from odradek.base.errors import RETRIABLE, ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound=Response)

_RESOURCE_TYPES = {"topic": 2, "broker": 4}
_SET, _DELETE = 0, 1
_DYNAMIC = frozenset({1, 2})
"""Where a value comes from that was set for this topic, or for this broker alone."""


class Unreachable(Exception):
    """Not answered now; it may be later."""


class Admin(Protocol):
    def live_brokers(self) -> frozenset[int]: ...

    def assignments(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """Who holds each partition of these topics now."""

    def ongoing(self) -> dict[TopicPartition, ReplicaAssignment]: ...

    def alter(self, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[TopicPartition, str]:
        """Begins moves, or ends them where None is wanted. Those that were refused, and why."""

    def sizes(self, brokers: Iterable[int], tps: Iterable[TopicPartition]) -> dict[tuple[TopicPartition, int], int]:
        """Bytes of these partitions' replicas on these brokers, as far as they answer."""

    def settings(self, entities: Iterable[Entity]) -> dict[Entity, dict[str, str | None]]:
        """Their throttles; those that can't be asked are left out."""

    def set(self, settings: Settings) -> dict[Entity, str]:
        """Those that could not be set, and why."""


class WireAdmin:
    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def live_brokers(self) -> frozenset[int]:
        with _unreachable():
            return frozenset(self._client.brokers())

    def assignments(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        with _unreachable():
            found = self._client.topics(sorted(set(topics)))
        return {TopicPartition(t.name, p.partition): p.replicas for t in found.values() for p in t.partitions}

    def ongoing(self) -> dict[TopicPartition, ReplicaAssignment]:
        with _unreachable():
            return ongoing_reassignments(self._client)

    def alter(self, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[TopicPartition, str]:
        with _unreachable():
            answers = alter_reassignments(
                self._client, {tp: None if replicas is None else list(replicas) for tp, replicas in wanted.items()}
            )
        return {tp: reason or code.name for tp, (code, reason) in answers.items() if code}

    def sizes(self, brokers: Iterable[int], tps: Iterable[TopicPartition]) -> dict[tuple[TopicPartition, int], int]:
        topics: dict[str, list[int]] = {}
        for tp in tps:
            topics.setdefault(tp.topic, []).append(tp.partition)
        request = DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics.items()]
        )
        found: dict[tuple[TopicPartition, int], int] = {}
        for broker in brokers:
            try:
                answer = self._client.ask_broker(broker, request, DescribeLogDirsResponse)
            except (KafkaError, ConnectionFailed):
                continue
            for directory in answer.results:
                for topic in directory.topics:
                    for partition in topic.partitions:
                        if not partition.is_future_key:
                            found[TopicPartition(topic.name, partition.partition_index), broker] = (
                                partition.partition_size
                            )
        return found

    # --- settings ------------------------------------------------------------------------------------------------

    def settings(self, entities: Iterable[Entity]) -> dict[Entity, dict[str, str | None]]:
        found: dict[Entity, dict[str, str | None]] = {}
        for broker, group in _by_addressee(entities).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=_RESOURCE_TYPES[entity.kind],
                        resource_name=entity.name,
                        configuration_keys=list(entity.throttle_keys),
                    )
                    for entity in group
                ]
            )
            try:
                answer = self._ask(broker, request, DescribeConfigsResponse)
            except (KafkaError, ConnectionFailed):
                continue
            for result in answer.results:
                entity = _entity(result)
                if not result.error_code:
                    values = {c.name: c.value for c in result.configs if c.config_source in _DYNAMIC and c.value}
                    found[entity] = {key: values.get(key) for key in entity.throttle_keys}
        return found

    def set(self, settings: Settings) -> dict[Entity, str]:
        failed: dict[Entity, str] = {}
        for broker, group in _by_addressee(settings).items():
            request = IncrementalAlterConfigsRequest(resources=[_alteration(e, settings[e]) for e in group])
            try:
                answer = self._ask(broker, request, IncrementalAlterConfigsResponse)
            except (KafkaError, ConnectionFailed) as error:
                failed |= dict.fromkeys(group, str(error))
                continue
            for response in answer.responses:
                entity = _entity(response)
                code = ErrorCode(response.error_code)
                gone = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and all(
                    v is None for v in settings[entity].values()
                )
                if code and not gone:  # of a topic that was deleted there is nothing to clear
                    failed[entity] = response.error_message or code.name
        return failed

    def _ask(self, broker: int | None, request: Request, answer: type[R]) -> R:
        """A broker answers for its own settings only; for a topic's, anybody does."""
        if broker is None:
            return self._client.ask_any(request, answer)
        return self._client.ask_broker(broker, request, answer)


def _entity(result: DescribeConfigsResult | AlterConfigsResourceResponse) -> Entity:
    """Whom an answer is about; answers need not come in the order of the questions."""
    kind = next(kind for kind, number in _RESOURCE_TYPES.items() if number == result.resource_type)
    return Entity(kind, result.resource_name)


def _by_addressee(entities: Iterable[Entity]) -> dict[int | None, list[Entity]]:
    groups: dict[int | None, list[Entity]] = {}
    for entity in entities:
        groups.setdefault(int(entity.name) if entity.kind == BROKER else None, []).append(entity)
    return groups


def _alteration(entity: Entity, values: Mapping[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=_RESOURCE_TYPES[entity.kind],
        resource_name=entity.name,
        configs=[
            AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
            for key, value in values.items()
        ],
    )


@contextmanager
def _unreachable() -> Iterator[None]:
    try:
        yield
    except ConnectionFailed as error:
        raise Unreachable(str(error)) from error
    except KafkaError as error:
        if error.code not in RETRIABLE:
            raise
        raise Unreachable(error.message or error.code.name) from error
