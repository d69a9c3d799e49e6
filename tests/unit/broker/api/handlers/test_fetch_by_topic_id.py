"""Names of the topics that a Fetch names by id."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from odradek.broker.api.handlers.fetch import names_for

KNOWN, HOSTED = UUID(int=1), UUID(int=2)


def test_hosted_partitions_are_gone_through_once_for_any_number_of_unknown_topics() -> None:
    """A frame has room for millions of ids, and a broker for thousands of partitions."""
    looked: list[str] = []

    def topic_names() -> dict[UUID, str]:
        looked.append("all")
        return {HOSTED: "hosted"}

    broker = SimpleNamespace(
        metadata=SimpleNamespace(image=SimpleNamespace(topic_names={KNOWN: "known"})),
        replicas=SimpleNamespace(topic_names=topic_names),
    )
    ctx: Any = SimpleNamespace(broker=broker)
    name_of = names_for(ctx)
    assert name_of(KNOWN) == "known"
    assert not looked
    assert [name_of(UUID(int=number)) for number in range(3, 1000)] == [""] * 997
    assert name_of(HOSTED) == "hosted"
    assert len(looked) == 1
