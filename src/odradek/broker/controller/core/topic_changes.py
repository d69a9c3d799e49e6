"""Changes of topics: compares /brokers/topics with the context; topics can be created, grow or disappear.

A topic whose node can't be parsed is skipped until the node is written again; it is watched.
"""

from collections.abc import Iterable
from dataclasses import replace

from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState
from odradek.broker.controller.core.effects import (
    Decision,
    DrawTopicId,
    ReadTopicNames,
    ReadTopics,
    Report,
    Watch,
    WriteAssignment,
)
from odradek.broker.controller.core.election import ElectionStrategy
from odradek.broker.controller.core.events import (
    TopicAssignmentChanged,
    TopicConfigsChanged,
    TopicsChanged,
    UncleanElectionDefaultChanged,
)
from odradek.broker.controller.core.partition_state_machine import elect_missing_leaders, move_partitions
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.zk.znodes import Topic, Topics
from odradek.model.topology import ZERO_UUID, TopicAssignment, TopicPartition


def topics_changed(context: ControllerContext, event: TopicsChanged) -> Decision[None]:
    yield Watch(children=(Topics.path,))
    names: set[str] = yield ReadTopicNames()
    for vanished in sorted(context.topics.keys() - names):
        yield Report(f"the node of topic {vanished} has gone; the topic is forgotten")
        context.forget_topic(vanished)
    yield from _take_up(context, names - context.topics.keys())


def topic_assignment_changed(context: ControllerContext, event: TopicAssignmentChanged) -> Decision[None]:
    """Handle a written node. The controller's own writes cause this event too, without a change. Old tools write nodes
    without an id."""
    topic = event.topic
    if topic not in context.topics:
        names: set[str] = yield ReadTopicNames()
        yield from _take_up(context, {topic} & names)
        return
    yield watch_topics((topic,))
    found: dict[str, TopicAssignment] = yield ReadTopics(frozenset((topic,)))
    written = found.get(topic)
    if written is None:
        yield Report(f"the node of topic {topic} has gone or can't be understood; what is known of it stays")
        return
    if context.is_being_deleted(topic):
        if written.partitions.keys() - context.topics[topic].keys():
            yield Report(f"topic {topic} is being deleted and gets no more partitions")
        return
    if written.topic_id not in (ZERO_UUID, context.topic_ids[topic]):
        yield Report(f"topic {topic} is another one now: it was deleted and created outside the controller")
        context.forget_topic(topic)
        yield from _take_up(context, (topic,))
        return
    added = [TopicPartition(topic, number) for number in written.partitions if number not in context.topics[topic]]
    for tp in added:
        context.set_assignment(tp, written.partitions[tp.partition])
    if written.topic_id == ZERO_UUID:
        yield WriteAssignment(context.topic_assignment(topic))
    yield from _create_partitions(context, added)


def topic_configs_changed(context: ControllerContext, event: TopicConfigsChanged) -> Decision[None]:
    """Elect missing leaders, because unclean elections may be allowed now, for these topics or, if none is named, for
    all."""
    named = [tp for topic in sorted(event.topics) for tp in context.partitions_of(topic)]
    yield from elect_missing_leaders(context, named if event.topics else None)


def unclean_election_default_changed(
    context: ControllerContext, event: UncleanElectionDefaultChanged
) -> Decision[None]:
    context.unclean_election_default = event.enabled
    if event.enabled:
        yield from elect_missing_leaders(context, None)


def watch_topics(topics: Iterable[str]) -> Watch:
    return Watch(nodes=tuple(Topic.path(topic) for topic in sorted(topics)))


def load_topics(context: ControllerContext, topics: Iterable[str]) -> Decision[list[TopicPartition]]:
    """Read topics into the context, and give an id to topics without one. Return their partitions."""
    names = sorted(topics)
    if not names:
        return []
    yield watch_topics(names)
    found: dict[str, TopicAssignment] = yield ReadTopics(frozenset(names))
    partitions: list[TopicPartition] = []
    for name in names:
        assignment = found.get(name)
        if assignment is None:
            yield Report(f"the node of topic {name} has gone or can't be understood; the topic is left out")
            continue
        if assignment.topic_id == ZERO_UUID:
            assignment = replace(assignment, topic_id=(yield DrawTopicId()))
            yield WriteAssignment(assignment)
        context.add_topic(assignment)
        partitions += context.partitions_of(name)
    return partitions


def _take_up(context: ControllerContext, topics: Iterable[str]) -> Decision[None]:
    partitions = yield from load_topics(context, topics)
    yield from _create_partitions(context, partitions)


def _create_partitions(context: ControllerContext, tps: list[TopicPartition]) -> Decision[None]:
    if not tps:
        return
    replicas = context.replicas_of(tps)
    yield from move_partitions(context, tps, PartitionState.NEW)
    yield from move_replicas(context, replicas, ReplicaState.NEW)
    yield from move_partitions(context, tps, PartitionState.ONLINE, ElectionStrategy.OFFLINE)
    yield from move_replicas(context, replicas, ReplicaState.ONLINE)
