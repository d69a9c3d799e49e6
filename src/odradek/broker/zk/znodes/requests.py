"""/admin: requests to the controller that tools write as znodes."""

from collections.abc import Iterable, Mapping
from typing import Any

from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import decoded, integer, integers, text
from odradek.model.topology import TopicPartition


class DeletedTopic:
    """A topic to be deleted; no content."""

    parent = "/admin/delete_topics"

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.parent}/{topic}"


class Reassignments:
    """Target replicas of partitions; rewritten as moves finish and removed after the last."""

    path = "/admin/reassign_partitions"

    @staticmethod
    def encode(wanted: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
        moves = [{"topic": tp.topic, "partition": tp.partition, "replicas": r} for tp, r in wanted.items()]
        return to_json({"version": 1, "partitions": moves})

    @classmethod
    def decode(cls, content: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
        def read(fields: dict[str, Any]) -> dict[TopicPartition, tuple[int, ...]]:
            return {_partition(move): integers(move["replicas"]) for move in fields["partitions"]}

        return decoded(cls.path, content, read)


class PreferredElection:
    """Partitions that shall be led by their preferred replica; removed when it was tried."""

    path = "/admin/preferred_replica_election"

    @staticmethod
    def encode(partitions: Iterable[TopicPartition]) -> bytes:
        return to_json({"version": 1, "partitions": partition_list(partitions)})

    @classmethod
    def decode(cls, content: bytes | None) -> set[TopicPartition]:
        return decoded(cls.path, content, partitions_of)


def partition_list(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]


def partitions_of(fields: dict[str, Any]) -> set[TopicPartition]:
    return {_partition(entry) for entry in fields["partitions"]}


def _partition(entry: dict[str, Any]) -> TopicPartition:
    return TopicPartition(text(entry["topic"]), integer(entry["partition"]))
