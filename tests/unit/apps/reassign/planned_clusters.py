"""Clusters for planners: made by hand, and by chance."""

from random import Random

from hypothesis import strategies as st

from odradek.apps.reassign.core.goal import Balance, Goal
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.model.topology import TopicPartition

MB = 1 << 20


def a_view(
    *assignments: tuple[int, ...],
    brokers: int = 3,
    racks: str = "",
    sizes: tuple[int, ...] = (),
    topic: str = "orders",
) -> ClusterView:
    """One partition per assignment, led by its first replica; `racks` has a letter for each broker."""
    return ClusterView(
        {b: BrokerView(b, racks[b] if racks else None, 100_000 * MB, 90_000 * MB) for b in range(brokers)},
        {
            TopicPartition(topic, number): PartitionView(
                replicas, replicas[0], replicas, sizes[number] if sizes else MB
            )
            for number, replicas in enumerate(assignments)
        },
    )


@st.composite
def views(draw: st.DrawFn) -> ClusterView:
    """Its shape is drawn, its details are thrown: many small draws would take most of a test's time."""
    brokers = draw(st.integers(1, 7))
    with_racks = draw(st.booleans())
    topics = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    chance = Random(draw(st.integers(0, 2**32)))
    partitions = {}
    for topic, count in zip("abc", topics, strict=False):
        for number in range(count):
            replicas = tuple(chance.sample(range(brokers), chance.randint(1, min(4, brokers))))
            size = chance.randint(0, 1000) * MB
            partitions[TopicPartition(topic, number)] = PartitionView(replicas, replicas[0], replicas, size)
    return ClusterView(
        {b: BrokerView(b, chance.choice("xyz") if with_racks else None) for b in range(brokers)}, partitions
    )


@st.composite
def views_and_goals(draw: st.DrawFn) -> tuple[ClusterView, Goal]:
    """Goals that may or may not be reachable."""
    view = draw(views())
    some_brokers = st.frozensets(st.sampled_from(sorted(view.brokers)), min_size=1)
    topics = sorted({tp.topic for tp in view.partitions})
    return view, Goal(
        brokers=draw(st.none() | some_brokers),
        drain=draw(st.just(frozenset()) | some_brokers),
        replication_factor=draw(st.none() | st.integers(1, 4)),
        balance=draw(st.frozensets(st.sampled_from(Balance))),
        topics=draw(st.none() | st.frozensets(st.sampled_from(topics), min_size=1)),
    )
