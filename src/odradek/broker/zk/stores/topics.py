"""Topics: the replicas of their partitions, creation, growth and deletion."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kazoo.exceptions import BadVersionError, NoNodeError

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.zk.stores.access import Fill, ZnodeAccess, commit, creation, failure, readable, writing
from odradek.broker.zk.znodes import DeletedTopic, EntityConfig, Partitions, Topic, Topics
from odradek.model.topology import ZERO_UUID, ControllerTerm, ReplicaAssignment, TopicAssignment


class TopicNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_topic_names(self) -> list[str]:
        return self._access.children(Topics.path)

    def load_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicAssignment]:
        """Load the assignments of these topics, or of all. A node that can't be parsed is reported and left out."""
        wanted = self._access.children(Topics.path) if names is None else list(names)
        found = self._access.read_all([Topic.path(name) for name in wanted])
        nodes = ((name, node) for name, node in zip(wanted, found, strict=True) if node is not None)
        topics = (readable(Topic.decode, name, node[0]) for name, node in nodes)
        return {topic.topic: topic for topic in topics if topic is not None}

    def load_topics_to_delete(self) -> list[str]:
        return self._access.children(DeletedTopic.parent)

    def create_topic(self, assignment: TopicAssignment, config: Mapping[str, str]) -> None:
        """KafkaError TOPIC_ALREADY_EXISTS when there is one of that name."""
        (refusal,) = self.create_topics([(assignment, config)])
        if refusal is not None:
            raise refusal

    def create_topics(self, topics: Sequence[tuple[TopicAssignment, Mapping[str, str]]]) -> list[KafkaError | None]:
        """Create each topic together with its configuration, so that no broker sees it without; return the refusal of
        each."""
        outcomes = self._access.pipeline([commit(_with_config(*topic)) for topic in topics])
        return [
            self._settle_creation(*topic) if isinstance(outcome, Exception) or failure(outcome) is not None else None
            for topic, outcome in zip(topics, outcomes, strict=True)
        ]

    def _settle_creation(self, assignment: TopicAssignment, config: Mapping[str, str]) -> KafkaError | None:
        topic, content = assignment.topic, Topic.encode(assignment)
        path = Topic.path(topic)
        if self._access.read(path) is None:
            # a topic of that name left its configuration behind
            self._access.put(EntityConfig.path("topics", topic), EntityConfig.encode(config))
            self._access.create_if_missing(path, content)
        # the id is in the content: a creation whose answer was lost is distinguished from another's
        if self._access.holds(path, content):
            return None
        return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")

    def set_assignment(self, assignment: TopicAssignment, term: ControllerTerm) -> None:
        """Replace the assignment of these partitions. Partitions that were added to the node meanwhile stay.

        KafkaError UNKNOWN_TOPIC_OR_PARTITION when the topic is gone, or another one of that name is there.
        """

        def change(held: TopicAssignment | None) -> TopicAssignment:
            if held is None:
                return assignment
            if held.topic_id not in (assignment.topic_id, ZERO_UUID):
                raise _unknown(assignment.topic)
            return replace(assignment, partitions=_ordered({**held.partitions, **assignment.partitions}))

        self._change(assignment.topic, change, term)

    def add_partitions(
        self, topic: str, added: Mapping[int, ReplicaAssignment], term: ControllerTerm
    ) -> TopicAssignment:
        """Add partitions to the topic; the existing ones, and their reassignments, stay. Returns what it has now.

        KafkaError UNKNOWN_TOPIC_OR_PARTITION when the topic is gone or its node can't be understood.
        """

        def change(held: TopicAssignment | None) -> TopicAssignment:
            if held is None:
                raise _unknown(topic)
            return replace(held, partitions=_ordered({**added, **held.partitions}))

        return self._change(topic, change, term)

    def _change(
        self, topic: str, change: Callable[[TopicAssignment | None], TopicAssignment], term: ControllerTerm
    ) -> TopicAssignment:
        """Read, change and write if the node has not changed in between; otherwise repeat."""
        path = Topic.path(topic)
        while (node := self._access.read(path)) is not None:
            changed = change(readable(Topic.decode, topic, node[0]))
            content = Topic.encode(changed)
            (error,) = self._access.fenced([writing(path, content, node[1].version)], term)
            if error is None or (isinstance(error, BadVersionError) and self._access.holds(path, content)):
                return changed
            if not isinstance(error, BadVersionError | NoNodeError):
                raise error
        raise _unknown(topic)

    def mark_for_deletion(self, topic: str) -> None:
        self._access.create_if_missing(DeletedTopic.path(topic), None)

    def drop_deletion_marks(self, topics: Iterable[str], term: ControllerTerm) -> None:
        self._access.drop_all([DeletedTopic.path(topic) for topic in topics], term)

    def delete_topic(self, topic: str, term: ControllerTerm) -> None:
        """Delete every node of the topic, the mark for deletion last, so that an interrupted deletion is found and
        finished."""
        partitions = [f"{Partitions.path(topic)}/{name}" for name in self._access.children(Partitions.path(topic))]
        paths = [f"{partition}/state" for partition in partitions]
        paths += [*partitions, Partitions.path(topic), Topic.path(topic), EntityConfig.path("topics", topic)]
        self._access.drop_all(paths, term)
        self.drop_deletion_marks([topic], term)


def _with_config(assignment: TopicAssignment, config: Mapping[str, str]) -> Fill:
    topic = assignment.topic
    return creation(
        (EntityConfig.path("topics", topic), EntityConfig.encode(config)), (Topic.path(topic), Topic.encode(assignment))
    )


def _ordered(partitions: Mapping[int, ReplicaAssignment]) -> dict[int, ReplicaAssignment]:
    return dict(sorted(partitions.items()))


def _unknown(topic: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic}' does not exist.")
