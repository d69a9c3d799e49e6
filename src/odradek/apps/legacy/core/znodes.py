"""The znodes under /consumers: their paths, and how their contents are written and read.

Paths and contents are those of Kafka 0.8 to 1.1's consumer, so that members of both kinds share a group. What design
two adds, the coordinator's node and the members' assignments, lies beside them, where that consumer doesn't look.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.base.errors import ConfigError
from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import decoded, integer, integers, text
from odradek.model.topic_names import is_internal
from odradek.model.topology import TopicPartition

STREAMS_MAX = 10_000
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"


def checked_name(kind: str, name: str) -> str:
    """Check a name of a group or client by Kafka's rule. ConfigError unless it can be part of a path."""
    if not _LEGAL_NAME.fullmatch(name) or name in (".", ".."):
        raise ConfigError(f"{kind} {name!r} is illegal: only letters, digits, '.', '_' and '-' are allowed")
    return name


@dataclass(frozen=True, slots=True)
class Registration:
    """Registration of a member: how many streams it wants of each topic, or of topics by pattern."""

    subscription: Mapping[str, int] = field(default_factory=dict)
    pattern: str = STATIC

    def resolved(self, topics: Iterable[str]) -> "Registration":
        """Registration with the names of the topics that the pattern matches; internal topics never match."""
        if self.pattern == STATIC or not self.subscription:
            return self
        ((expression, count),) = self.subscription.items()
        matches = re.compile(expression.replace(",", "|").replace(" ", "").strip("\"'")).fullmatch
        wanted = self.pattern == WHITE_LIST
        found = (topic for topic in topics if bool(matches(topic)) == wanted and not is_internal(topic))
        return Registration(dict.fromkeys(found, count))


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Design two: the partitions of one registration of a member, as its coordinator assigns them."""

    registration: int
    partitions: frozenset[TopicPartition] = frozenset()
    """Partitions to read."""
    release: frozenset[TopicPartition] = frozenset()
    """Partitions to release: it owns them, or would own them after a notification in time."""


class ConsumerIds:
    @staticmethod
    def path(group: str) -> str:
        return f"/consumers/{group}/ids"


class ConsumerId:
    """Ephemeral: it is there as long as the member's session."""

    @staticmethod
    def path(group: str, member: str) -> str:
        return f"{ConsumerIds.path(group)}/{member}"

    @staticmethod
    def encode(registration: Registration, timestamp_ms: int) -> bytes:
        return to_json(
            {
                "version": 1,
                "subscription": dict(registration.subscription),
                "pattern": registration.pattern,
                "timestamp": str(timestamp_ms),
            }
        )

    @classmethod
    def decode(cls, group: str, member: str, content: bytes | None) -> Registration:
        def read(fields: dict[str, Any]) -> Registration:
            subscription = {text(topic): _stream_count(count) for topic, count in fields["subscription"].items()}
            registration = Registration(subscription, text(fields["pattern"]))
            if registration.pattern not in (STATIC, WHITE_LIST, BLACK_LIST):
                raise ValueError(f"unknown subscription pattern {registration.pattern!r}")
            try:
                registration.resolved(())
            except re.error as error:
                raise ValueError(f"{subscription} holds no regular expression: {error}") from error
            return registration

        return decoded(cls.path(group, member), content, read)


class Owners:
    @staticmethod
    def path(group: str, topic: str) -> str:
        return f"/consumers/{group}/owners/{topic}"


class Owner:
    """Owner of a partition: a member's stream, `MEMBER-NUMBER`. Ephemeral in design one."""

    @staticmethod
    def path(group: str, tp: TopicPartition) -> str:
        return f"{Owners.path(group, tp.topic)}/{tp.partition}"

    @staticmethod
    def encode(stream: str) -> bytes:
        return stream.encode()

    @staticmethod
    def decode(content: bytes | None) -> str:
        return (content or b"").decode(errors="replace")


class CoordinatorNode:
    """Design two. Ephemeral: its creator coordinates the group."""

    @staticmethod
    def path(group: str) -> str:
        return f"/consumers/{group}/coordinator"


class CoordinatorTerms:
    """Design two. Never has content: its version counts the coordinators, and fences their writes."""

    @staticmethod
    def path(group: str) -> str:
        return f"/consumers/{group}/coordinator_terms"


class Assignments:
    @staticmethod
    def path(group: str) -> str:
        return f"/consumers/{group}/assignments"


class MemberAssignment:
    """Design two. The partitions that the coordinator lets a member read; only that member watches it.

    It is meant for one registration, named by its czxid: a member that lost its session and came back gets another.
    """

    @staticmethod
    def path(group: str, member: str) -> str:
        return f"{Assignments.path(group)}/{member}"

    @staticmethod
    def encode(assigned: AssignedPartitions) -> bytes:
        return to_json(
            {
                "version": 1,
                "registration": assigned.registration,
                "partitions": _by_topic(assigned.partitions),
                "release": _by_topic(assigned.release),
            }
        )

    @classmethod
    def decode(cls, group: str, member: str, content: bytes | None) -> AssignedPartitions:
        def read(fields: dict[str, Any]) -> AssignedPartitions:
            return AssignedPartitions(
                integer(fields["registration"]), _flat(fields["partitions"]), _flat(fields["release"])
            )

        return decoded(cls.path(group, member), content, read)


def _stream_count(value: Any) -> int:
    if not 1 <= integer(value) <= STREAMS_MAX:
        raise ValueError(f"{value} is not a number of streams")
    return integer(value)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return by_topic


def _flat(by_topic: Mapping[str, Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(text(topic), n) for topic, numbers in by_topic.items() for n in integers(numbers))
