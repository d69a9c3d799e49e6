"""Partitions that a controller names, and that can't be: their directories would lie elsewhere, or can't be made."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.leader_and_isr import leader_and_isr
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)


class Broker:
    """Becomes what it is told, and remembers it."""

    def __init__(self) -> None:
        self.id = 0
        self.authorizer = None
        self.config = SimpleNamespace(inter_broker_listener_name="PLAINTEXT")
        self.replicas = SimpleNamespace(partitions={})
        self.configs = SimpleNamespace(look_up=lambda topics: None, effective=None)
        self.control = SimpleNamespace(submit=lambda request, correlation_id, answer: answer(ErrorCode.NONE))
        self.roles = SimpleNamespace(become=self._become)
        self.became: list[str] = []

    def _become(self, directives: Any, config_of: Any, **_: int) -> dict[Any, ErrorCode]:
        self.became += [str(directive.partition) for directive in directives]
        return {directive.partition: ErrorCode.NONE for directive in directives}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\0b", "n" * 250, "x" * 32_000, "\N{SNOWMAN}"])
def test_a_partition_of_an_impossible_name_is_refused_and_the_others_are_not(name: str) -> None:
    broker, answers = Broker(), []
    ctx: Any = SimpleNamespace(
        broker=broker,
        header=SimpleNamespace(correlation_id=1),
        reply_with=lambda build: lambda refusal: answers.append(build(refusal)),
        version=4,
    )
    states = [
        LeaderAndIsrTopicState(
            topic_name=topic, partition_states=[LeaderAndIsrPartitionState(topic_name=topic, partition_index=index)]
        )
        for topic, index in ((name, 0), ("orders", -1), ("orders", 2))
    ]
    leader_and_isr(LeaderAndIsrRequest(topic_states=states), ctx)
    (answer,) = answers
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [each.error_code for each in answer.partition_errors] == [refused, refused, ErrorCode.NONE]
    assert broker.became == ["orders-2"]
