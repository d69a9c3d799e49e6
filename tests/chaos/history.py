"""Operations and observations of the clients of a story, in the order of each client.

Written by many client threads, each of which only appends, and read by the judge when they have ended. An
acknowledgement counts only if the client library reported success; what timed out is indefinite and may have happened
or not.
"""

import time
from dataclasses import dataclass, field
from itertools import pairwise

from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Sent:
    """One record that a producer handed in; `number` rises with each."""

    producer: str
    number: int
    partition: TopicPartition

    @property
    def value(self) -> str:
        return f"{self.producer}-{self.number}"


UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """`offset` is UNKNOWN_OFFSET where the client was not told it: librdkafka takes the acknowledgement of a batch for
    that of every batch before it."""

    sent: Sent
    offset: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed send. `definite`: the record was surely not written, so that no reader may ever see it."""

    sent: Sent
    error: str
    definite: bool


@dataclass(frozen=True, slots=True)
class Polled:
    """One record that a consumer was given, and the end of what it could see of the partition when it was."""

    consumer: str
    partition: TopicPartition
    offset: int
    value: str


@dataclass(slots=True)
class History:
    sent: list[Sent] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    polled: list[Polled] = field(default_factory=list)

    def record_sent(self, sent: Sent) -> None:
        self.sent.append(sent)

    def record_acknowledged(self, sent: Sent, offset: int) -> None:
        self.acknowledged.append(Acknowledged(sent, offset, time.monotonic()))

    def record_failed(self, sent: Sent, error: str, *, definite: bool) -> None:
        self.failed.append(Failed(sent, error, definite))

    def record_polled(self, polled: Polled) -> None:
        self.polled.append(polled)

    def acknowledged_count(self) -> int:
        return len(self.acknowledged)

    def longest_silence_s(self) -> float:
        """The longest time without any acknowledgement: how long the cluster could not be written to."""
        moments = sorted(ack.at_s for ack in self.acknowledged)
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)
