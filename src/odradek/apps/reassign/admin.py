"""Requests of planning and running to a cluster, over the wire. Any broker of it may be Odradek or Apache Kafka.

`Admin` is the interface that a run needs; `WireAdmin` implements it with Kafka's requests. Temporary failures (a dead
broker, a new controller) raise `Unreachable`, and can be retried.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from odradek.apps.reassign.core.throttles import BROKER, TOPIC, Entity, Settings
from odradek.base.config.definition import ConfigSource
from odradek.base.errors import RETRIABLE, ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, ask_alteration, ask_configs
from odradek.client.log_dir_admin import ask_log_dirs
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.protocol.messages.describe_configs import ConfigResourceType, DescribeConfigsResult
from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse

_RESOURCE_TYPES = {TOPIC: ConfigResourceType.TOPIC, BROKER: ConfigResourceType.BROKER}
_DYNAMIC = frozenset({ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG})
"""Source of a value that was set for this topic, or for this broker alone."""


class Unreachable(Exception):
    """The broker did not answer; it may answer later."""


class Admin(Protocol):
    def live_brokers(self) -> frozenset[int]: ...

    def assignments(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas of each partition of these topics."""

    def ongoing(self) -> dict[TopicPartition, ReplicaAssignment]: ...

    def alter(self, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[TopicPartition, str]:
        """Start moves, or cancel them for None. Return the refused ones with the reasons."""

    def sizes(self, brokers: Iterable[int], tps: Iterable[TopicPartition]) -> dict[tuple[TopicPartition, int], int]:
        """Return the bytes of these partitions' replicas on these brokers, as far as they answer."""

    def settings(self, entities: Iterable[Entity]) -> dict[Entity, dict[str, str | None]]:
        """Return their throttles; entities that can't be asked are left out."""

    def set(self, settings: Settings) -> dict[Entity, str]:
        """Set the values; return the entities that failed, with the reason."""


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
        wanted = list(tps)
        found: dict[tuple[TopicPartition, int], int] = {}
        for broker in brokers:
            try:
                directories = ask_log_dirs(self._client, broker, wanted)
            except (KafkaError, ConnectionFailed):
                continue
            for replica in (replica for directory in directories for replica in directory.replicas):
                if not replica.is_future:
                    found[replica.tp, broker] = replica.size
        return found

    # --- settings ------------------------------------------------------------------------------------------------

    def settings(self, entities: Iterable[Entity]) -> dict[Entity, dict[str, str | None]]:
        found: dict[Entity, dict[str, str | None]] = {}
        for group in _by_addressee(entities):
            try:
                results = ask_configs(self._client, {_resource(entity): entity.throttle_keys for entity in group})
            except (KafkaError, ConnectionFailed):
                continue
            for result in results:
                entity = _entity(result)
                if not result.error_code:
                    values = {c.name: c.value for c in result.configs if c.config_source in _DYNAMIC and c.value}
                    found[entity] = {key: values.get(key) for key in entity.throttle_keys}
        return found

    def set(self, settings: Settings) -> dict[Entity, str]:
        failed: dict[Entity, str] = {}
        for group in _by_addressee(settings):
            try:
                responses = ask_alteration(self._client, {_resource(entity): settings[entity] for entity in group})
            except (KafkaError, ConnectionFailed) as error:
                failed |= dict.fromkeys(group, str(error))
                continue
            for response in responses:
                entity = _entity(response)
                code = ErrorCode(response.error_code)
                gone = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and all(
                    v is None for v in settings[entity].values()
                )
                if code and not gone:  # a deleted topic has nothing to clear
                    failed[entity] = response.error_message or code.name
        return failed


def _resource(entity: Entity) -> Resource:
    return Resource(_RESOURCE_TYPES[entity.kind], entity.name)


def _entity(result: DescribeConfigsResult | AlterConfigsResourceResponse) -> Entity:
    """Return the entity of an answer; answers need not come in the order of the questions."""
    kind = next(kind for kind, number in _RESOURCE_TYPES.items() if number == result.resource_type)
    return Entity(kind, result.resource_name)


def _by_addressee(entities: Iterable[Entity]) -> list[list[Entity]]:
    """Group entities by the broker to ask: a broker for its own settings, any broker for all topics."""
    groups: dict[str | None, list[Entity]] = {}
    for entity in entities:
        groups.setdefault(entity.name if entity.kind == BROKER else None, []).append(entity)
    return list(groups.values())


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
