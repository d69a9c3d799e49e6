"""The topics of the cluster: kept in ZooKeeper, led here, known to clients through the metadata image.

This is the control path of a cluster of one broker: the broker holds /controller, so that no other takes part, and
leads whatever it hosts, through the same door by which a controller's LeaderAndIsr requests come in. Changes are made
one at a time, under `_lock`, in the order: ZooKeeper, replicas, metadata image.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Protocol
from uuid import uuid4

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig, validate_topic_overrides
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.controller.new_topics import (
    CreatedTopic,
    NewTopic,
    added_partitions,
    assignment_of,
    check_name,
    overrides_of,
    topic_made_by_asking,
)
from odradek.model.metadata_image import MetadataCache, PartitionImage, TopicImage
from odradek.model.topology import (
    NO_LEADER,
    ZERO_UUID,
    ControllerTerm,
    LeaderAndIsr,
    PartitionDirective,
    ReplicaAssignment,
    TopicAssignment,
    TopicPartition,
)
from odradek.zk.session import ZkUnavailable
from odradek.zk.store import ZkStore

log = get_logger(__name__)

AUTO_CREATIONS_MAX = 1000
"""How many topics may wait to be created by asking for them; beyond that the client is told to ask again."""


class LocalReplicas(Protocol):
    """The replicas on this broker, as the control path sees them."""

    def apply(
        self, directives: Iterable[PartitionDirective], config: TopicConfig
    ) -> dict[TopicPartition, ErrorCode]: ...

    def stop(self, tps: Iterable[TopicPartition], *, delete: bool) -> None: ...

    def update_config(self, tps: Iterable[TopicPartition], config: TopicConfig) -> None: ...


class Topics:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        store: ZkStore,
        replicas: LocalReplicas,
        metadata: MetadataCache,
        clock: Clock,
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._store = store
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._random = Random()
        self._lock = threading.Lock()
        self._term = ControllerTerm(0, 0)
        self._overrides: dict[str, dict[str, str]] = {}
        self._to_create: set[str] = set()
        self._creator = ThreadPoolExecutor(max_workers=1, thread_name_prefix="topic-creator")

    def stop(self) -> None:
        self._creator.shutdown(wait=True, cancel_futures=True)

    # ---- start: read ZooKeeper once, lead what is hosted here

    def take_control(self) -> None:
        """Become the controller, or say who is."""
        term = self._store.elect_controller(self._broker_id, self._clock.now_ms())
        if term is None:
            raise FatalError(
                f"broker {self._store.current_controller()} already controls this cluster, and this version runs one "
                "broker per cluster. Give this broker a zookeeper.connect path of its own, such as "
                "127.0.0.1:2181/odradek"
            )
        self._term = term
        log.info("became controller", epoch=term.epoch)

    def load(self) -> None:
        with self._lock:
            assignments = self._store.load_topics()
            self._overrides = self._store.load_configs("topics")
            for name in self._store.load_topics_to_delete():
                if (deleted := assignments.pop(name, None)) is not None:
                    self._remove(name, deleted.partitions)
            assignments = {name: self._with_id(topic) for name, topic in assignments.items()}
            states = self._store.load_partition_states(
                TopicPartition(name, partition) for name, topic in assignments.items() for partition in topic.partitions
            )
            for topic in assignments.values():
                self._lead(topic, topic.partitions, states)

    def _with_id(self, topic: TopicAssignment) -> TopicAssignment:
        """A topic from before topic ids gets one now."""
        if topic.topic_id != ZERO_UUID:
            return topic
        topic = replace(topic, topic_id=uuid4())
        self._store.set_assignment(topic, self._term)
        return topic

    # ---- what clients ask

    def create(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic | KafkaError]:
        """One answer per topic, in order; one that fails doesn't hinder the others."""
        answers: list[CreatedTopic | KafkaError] = []
        for topic in topics:
            try:
                with self._lock:
                    answers.append(self._create(topic, validate_only=validate_only))
            except KafkaError as error:
                answers.append(error)
            except ZkUnavailable as error:
                answers.append(KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)))
        return answers

    def create_soon(self, name: str) -> bool:
        """Create a topic in the background, with the broker's defaults. False: too many are waiting already."""
        if name not in self._to_create:
            if len(self._to_create) >= AUTO_CREATIONS_MAX:
                return False
            self._to_create.add(name)
            self._creator.submit(self._create_now, name)
        return True

    def delete(self, name: str) -> None:
        with self._lock:
            topic = self._existing(name)
            try:
                self._store.mark_for_deletion(name)
                self._remove(name, topic.partitions)
            except ZkUnavailable as error:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error

    def add_partitions(
        self, name: str, count: int, assignments: Sequence[tuple[int, ...]] | None, *, validate_only: bool
    ) -> None:
        with self._lock:
            topic = self._existing(name)
            partitions = {p: ReplicaAssignment(image.replicas) for p, image in topic.partitions.items()}
            held = TopicAssignment(name, topic.id, partitions)
            added = added_partitions(held, count, assignments, self._metadata.image.brokers)
            if validate_only:
                return
            partitions = partitions | {p: ReplicaAssignment(replicas) for p, replicas in added.items()}
            assignment = TopicAssignment(name, topic.id, partitions)
            try:
                self._store.set_assignment(assignment, self._term)
                self._lead(assignment, added, {})
            except ZkUnavailable as error:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error

    # ---- configuration

    def configs(self, name: str) -> dict[str, str]:
        """What was set for the topic over the broker's defaults."""
        self._existing(name)
        return dict(self._overrides.get(name, {}))

    def set_configs(self, name: str, overrides: Mapping[str, str]) -> None:
        """Replace all that was set, in ZooKeeper and in the open logs."""
        with self._lock:
            topic = self._existing(name)
            try:
                self._store.set_config("topics", name, overrides)
            except ZkUnavailable as error:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
            self._overrides[name] = dict(overrides)
            tps = [TopicPartition(name, index) for index in topic.partitions]
            self._replicas.update_config(tps, self._effective_config(name))

    def _effective_config(self, name: str) -> TopicConfig:
        return TopicConfig.of(self._config, self._overrides.get(name))

    # ---- the steps, under the lock

    def _existing(self, name: str) -> TopicImage:
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return topic

    def _create(self, topic: NewTopic, *, validate_only: bool) -> CreatedTopic:
        image = self._metadata.image
        check_name(topic.name, image.topics)
        overrides = overrides_of(topic)
        validate_topic_overrides(overrides, self._config.topic_defaults)
        placed = assignment_of(topic, image.brokers, self._random)
        created = CreatedTopic(topic.name, uuid4(), len(placed), len(placed[0]), overrides)
        if not validate_only:
            partitions = {p: ReplicaAssignment(replicas) for p, replicas in placed.items()}
            assignment = TopicAssignment(topic.name, created.id, partitions)
            self._store.create_topic(assignment, overrides)
            self._overrides[topic.name] = overrides
            self._lead(assignment, partitions, {})
            log.info("topic created", topic=topic.name, partitions=len(placed), config=overrides)
        return created

    def _create_now(self, name: str) -> None:
        (answer,) = self.create([topic_made_by_asking(name, self._config)])
        if isinstance(answer, KafkaError) and answer.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            log.warning("topic can't be created automatically", topic=name, error=str(answer))
        self._to_create.discard(name)

    def _remove(self, name: str, partitions: Mapping[int, object]) -> None:
        self._metadata.image = self._metadata.image.without_topics([name])
        self._replicas.stop([TopicPartition(name, p) for p in partitions], delete=True)
        self._store.delete_topic(name, self._term)
        self._overrides.pop(name, None)
        log.info("topic deleted", topic=name)

    def _lead(
        self,
        topic: TopicAssignment,
        partitions: Mapping[int, object],
        known: Mapping[TopicPartition, LeaderAndIsr],
    ) -> None:
        """Elect, write, obey, tell: the path of every partition from New to Online."""
        name = topic.topic
        replicas = {TopicPartition(name, p): topic.partitions[p].replicas for p in partitions}
        first = {tp: self._first_state() for tp, r in replicas.items() if tp not in known and self._broker_id in r}
        again = {tp: self._next_state(known[tp]) for tp in replicas if tp in known and self._can_lead(known[tp])}
        states = self._store.create_partition_states(first, self._term) if first else {}
        states |= self._store.update_partition_states(again, self._term) if again else {}
        directives = [
            PartitionDirective(tp, topic.topic_id, state, replicas[tp], is_new=tp in first)
            for tp, state in states.items()
        ]
        self._replicas.apply(directives, self._effective_config(name))
        images = {tp.partition: self._image(states.get(tp) or known.get(tp), r) for tp, r in replicas.items()}
        before = self._metadata.image.topics.get(name)
        whole = TopicImage(name, topic.topic_id, {**(before.partitions if before else {}), **images})
        self._metadata.image = self._metadata.image.with_topics([whole])

    def _can_lead(self, state: LeaderAndIsr) -> bool:
        return self._broker_id in state.isr

    def _first_state(self) -> LeaderAndIsr:
        return LeaderAndIsr(self._broker_id, 0, (self._broker_id,), self._term.epoch)

    def _next_state(self, state: LeaderAndIsr) -> LeaderAndIsr:
        return LeaderAndIsr(
            self._broker_id, state.leader_epoch + 1, (self._broker_id,), self._term.epoch, state.zk_version
        )

    def _image(self, state: LeaderAndIsr | None, replicas: tuple[int, ...]) -> PartitionImage:
        dead = tuple(r for r in replicas if r != self._broker_id)
        if state is None or state.leader != self._broker_id:
            return PartitionImage(NO_LEADER, state.leader_epoch if state else -1, replicas, (), dead)
        return PartitionImage(state.leader, state.leader_epoch, replicas, state.isr, dead)
