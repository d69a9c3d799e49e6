"""Creation, growth and deletion of topics for clients: writes the znodes, on which the controller acts.

The broker that is controller serves the requests. `done` gets the answer exactly once, on any thread, when this
broker's metadata image shows the change or the timeout has passed; no thread waits for it. Every broker can request
topics that clients create implicitly (`create_soon`).
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import validate_topic_overrides
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedExecutor
from odradek.broker.admin.new_topics import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    added_partitions,
    assignment_of,
    check_name,
    overrides_of,
    topic_made_by_asking,
)
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.topic_ids import draw_topic_id
from odradek.broker.purgatory.purgatory import DelayedOperation, Purgatory
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.zk.session import ZkUnavailable
from odradek.broker.zk.store import ControllerMoved, ZkStore
from odradek.model.metadata_image import MetadataCache, MetadataImage
from odradek.model.topic_names import name_fault
from odradek.model.topology import NO_LEADER, ControllerTerm, ReplicaAssignment, TopicAssignment
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.schema import Request

log = get_logger(__name__)

T = TypeVar("T")


class ImageWait(DelayedOperation, Generic[T]):
    """Wait for a metadata image. `missing` returns the parts that an image lacks; `answer` gets the parts still missing
    at the end."""

    KEY = "image"  # every image may complete a waiting request

    __slots__ = ("_answer", "_metadata", "_missing")

    def __init__(
        self,
        metadata: MetadataCache,
        missing: Callable[[MetadataImage], set[T]],
        timeout_ms: int,
        answer: Callable[[set[T]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._metadata = metadata
        self._missing = missing
        self._answer = answer

    def try_complete(self) -> bool:
        return not self._missing(self._metadata.image) and self.force_complete()

    def on_complete(self) -> None:
        self._answer(self._missing(self._metadata.image))


AUTO_CREATIONS_MAX = 1000
"""Most topics that wait for their automatic creation; beyond that the client has to ask again."""

Created: TypeAlias = CreatedTopic | KafkaError
Permit: TypeAlias = Callable[[int], None]
"""Check of a quota before that number of partitions is created or deleted; KafkaError: the client has to wait."""
Refusals: TypeAlias = dict[str, KafkaError | None]
"""The reason of each refused topic; None for a topic that was accepted."""


def free(partitions: int) -> None:
    """Permit changes without a quota."""


class TopicAdmin:
    def __init__(
        self,
        controller: Controller,
        config: BrokerConfig,
        store: ZkStore,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        send_to_controller: Callable[[Request], Any],
    ) -> None:
        self._controller = controller
        self._config = config
        self._store = store
        self._metadata = metadata
        self._send_to_controller = send_to_controller
        self._random = Random()
        self._writing = threading.Lock()  # of two requests for one name, or for a colliding one, the first wins
        self._waiting: Purgatory[str] = Purgatory("topic", reaper)
        metadata.on_publish.append(self._image_published)
        self._to_create: dict[str, None] = {}
        self._creator = SupervisedExecutor("topic-creator")

    def stop(self) -> None:
        self._creator.shutdown(wait=True, cancel_futures=True)

    def reconfigure(self, config: BrokerConfig) -> None:
        self._config = config

    # --- requests of clients -------------------------------------------------------------------------------------

    def create(
        self,
        topics: Sequence[NewTopic],
        *,
        validate_only: bool,
        timeout_ms: int,
        permit: Permit,
        done: Callable[[list[Created]], None],
    ) -> None:
        """Create topics; one answer per topic, in order. A failed one doesn't affect the others."""
        answers = self._create_all(topics, permit, validate_only=validate_only)
        if validate_only:
            done(answers)
            return
        written = {topic.name: topic for topic in answers if isinstance(topic, CreatedTopic)}

        def missing(image: MetadataImage) -> set[str]:
            return {name for name, topic in written.items() if not _is_led(image, name, topic.id, topic.partitions)}

        def answer(late: set[str]) -> None:
            done([_timed_out() if isinstance(a, CreatedTopic) and a.name in late else a for a in answers])

        self.when_shown(missing, timeout_ms, answer)

    def delete(
        self, names: Sequence[str], *, timeout_ms: int, permit: Permit, done: Callable[[Refusals], None]
    ) -> None:
        answers: Refusals = {}
        ids: dict[str, UUID] = {}
        for name in names:
            try:
                ids[name] = self._mark_for_deletion(name, permit)
                answers[name] = None
            except KafkaError as error:
                answers[name] = error

        def missing(image: MetadataImage) -> set[str]:
            return {name for name, topic_id in ids.items() if _has(image, name, topic_id)}

        self.when_shown(missing, timeout_ms, lambda late: done(_with_timeouts(answers, late)))

    def add_partitions(
        self,
        asked: Sequence[MorePartitions],
        *,
        validate_only: bool,
        timeout_ms: int,
        permit: Permit,
        done: Callable[[Refusals], None],
    ) -> None:
        answers: Refusals = {}
        grown: dict[str, TopicAssignment] = {}
        for topic in asked:
            try:
                grown[topic.name] = self._add_partitions(topic, permit, validate_only=validate_only)
                answers[topic.name] = None
            except KafkaError as error:
                answers[topic.name] = error
        if validate_only:
            done(answers)
            return

        def missing(image: MetadataImage) -> set[str]:
            return {name for name, t in grown.items() if not _is_led(image, name, t.topic_id, len(t.partitions))}

        self.when_shown(missing, timeout_ms, lambda late: done(_with_timeouts(answers, late)))

    def create_soon(self, name: str) -> bool:
        """Have a topic created, as the broker is configured for it. False: too many are waiting already."""
        if name not in self._to_create:
            if len(self._to_create) >= AUTO_CREATIONS_MAX:
                return False
            self._to_create[name] = None
            self._creator.submit(self._create_waiting)
        return True

    # --- the steps -----------------------------------------------------------------------------------------------

    def _create_all(self, topics: Sequence[NewTopic], permit: Permit, *, validate_only: bool) -> list[Created]:
        with self._writing:
            planned = self._plan(topics, free if validate_only else permit)
            valid = [plan for plan in planned if not isinstance(plan, KafkaError)]
            if validate_only or not valid:
                return [plan if isinstance(plan, KafkaError) else plan[0] for plan in planned]
            refusals = iter(self._write([(assignment, created.overrides) for created, assignment in valid]))
            return [plan if isinstance(plan, KafkaError) else next(refusals) or plan[0] for plan in planned]

    def _plan(
        self, topics: Sequence[NewTopic], permit: Permit
    ) -> list[tuple[CreatedTopic, TopicAssignment] | KafkaError]:
        """Return the planned topics, or their errors: checked against the cluster, and against each other."""
        image = self._metadata.image
        names = set(image.topics)
        plans: list[tuple[CreatedTopic, TopicAssignment] | KafkaError] = []
        try:
            self._term()
            marked = frozenset(_available(self._store.topics.load_topics_to_delete))
        except KafkaError as error:
            return [error for _ in topics]
        for topic in topics:
            try:
                check_name(topic.name, names)
                if topic.name in marked:
                    raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' is marked for deletion.")
                overrides = overrides_of(topic)
                placed = assignment_of(topic, image.brokers, self._random)
                validate_topic_overrides(overrides, self._config.topic_defaults)
                permit(len(placed))
            except KafkaError as error:
                plans.append(error)
                continue
            names.add(topic.name)
            created = CreatedTopic(topic.name, draw_topic_id(), len(placed), len(placed[0]), overrides)
            partitions = {p: ReplicaAssignment(replicas) for p, replicas in placed.items()}
            plans.append((created, TopicAssignment(topic.name, created.id, partitions)))
        return plans

    def _write(self, topics: Sequence[tuple[TopicAssignment, Mapping[str, str]]]) -> list[KafkaError | None]:
        try:
            refusals: list[KafkaError | None] = _available(lambda: self._store.topics.create_topics(topics))
        except KafkaError as error:
            return [error for _ in topics]
        for (topic, config), refusal in zip(topics, refusals, strict=True):
            if refusal is None:
                log.info("topic created", topic=topic.topic, partitions=len(topic.partitions), config=config)
        return refusals

    def _mark_for_deletion(self, name: str, permit: Permit) -> UUID:
        self._term()
        if not self._config.delete_topic_enable:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled (delete.topic.enable).")
        topic_id = self._known(name)
        permit(len(self._metadata.image.topics[name].partitions))
        _available(lambda: self._store.topics.mark_for_deletion(name))
        log.info("topic marked for deletion", topic=name)
        return topic_id

    def _add_partitions(self, asked: MorePartitions, permit: Permit, *, validate_only: bool) -> TopicAssignment:
        term, name = self._term(), asked.name
        if name_fault(name):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if name in _available(self._store.topics.load_topics_to_delete):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        with self._writing:
            held = _available(lambda: self._store.topics.load_topics([name])).get(name)
            if held is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            placed = added_partitions(held, asked.count, asked.assignments, self._metadata.image.brokers)
            if validate_only:
                return held
            permit(len(placed))
            added = {p: ReplicaAssignment(replicas) for p, replicas in placed.items()}
            log.info("partitions added", topic=name, partitions=asked.count)
            return _available(lambda: self._store.topics.add_partitions(name, added, term))

    def _create_waiting(self) -> None:
        """Create all waiting topics in one go. After a failure, a client that still needs them requests them again."""
        topics = [topic_made_by_asking(name, self._config) for name in list(self._to_create)]
        try:
            if not topics:
                return
            if self._controller.is_active:
                for topic, answer in zip(topics, self._create_all(topics, free, validate_only=False), strict=True):
                    if isinstance(answer, KafkaError) and answer.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                        log.warning("automatic topic creation failed", topic=topic.name, error=str(answer))
            else:
                self._send_to_controller(_request_for(topics, self._config.request_timeout_ms))
        except Exception as error:
            log.warning("automatic topic creation failed", topics=len(topics), error=str(error))
        finally:
            for topic in topics:
                self._to_create.pop(topic.name, None)

    def _term(self) -> ControllerTerm:
        term = self._controller.term
        if term is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
        return term

    def _known(self, name: str) -> UUID:
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return topic.id

    # --- waiting for the image -----------------------------------------------------------------------------------

    def when_shown(
        self, missing: Callable[[MetadataImage], set[T]], timeout_ms: int, answer: Callable[[set[T]], None]
    ) -> None:
        """Call `answer` once: when an image contains all of them, or with the missing ones after the timeout."""
        wait = ImageWait(self._metadata, missing, timeout_ms, answer)
        self._waiting.try_complete_else_watch(wait, [ImageWait.KEY])

    def _image_published(self, image: MetadataImage) -> None:
        self._waiting.check_and_complete(ImageWait.KEY)


def _is_led(image: MetadataImage, name: str, topic_id: UUID, partitions: int) -> bool:
    topic = image.topics.get(name)
    if topic is None or topic.id != topic_id or len(topic.partitions) < partitions:
        return False
    return all(partition.leader != NO_LEADER for partition in topic.partitions.values())


def _has(image: MetadataImage, name: str, topic_id: UUID) -> bool:
    topic = image.topics.get(name)
    return topic is not None and topic.id == topic_id


def _timed_out() -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _with_timeouts(answers: Refusals, late: set[str]) -> Refusals:
    return {name: _timed_out() if name in late else error for name, error in answers.items()}


def _available(action: Callable[[], T]) -> T:
    """Turn ZooKeeper's errors into one that a client understands."""
    try:
        return action()
    except ZkUnavailable as error:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
    except ControllerMoved as error:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error


def _request_for(topics: Sequence[NewTopic], timeout_ms: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
    )
