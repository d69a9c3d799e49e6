"""/brokers/topics: replicas, leader and ISR of each partition."""

from typing import Any

from odradek.broker.zk.json_form import scala_map_order, to_json
from odradek.broker.zk.znodes.reading import decoded, integer, integers
from odradek.model.topology import ZERO_UUID, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition
from odradek.model.uuid_text import uuid_from_text, uuid_to_text


class Topics:
    path = "/brokers/topics"


class Topic:
    """A topic's id and the replicas of its partitions; written before the partitions have any state."""

    @staticmethod
    def path(topic: str) -> str:
        return f"{Topics.path}/{topic}"

    @staticmethod
    def encode(assignment: TopicAssignment) -> bytes:
        by_partition = {str(number): replicas for number, replicas in assignment.partitions.items()}
        ordered = [(key, by_partition[key]) for key in scala_map_order(by_partition)]
        adding = {key: r.adding for key, r in ordered if r.adding}
        removing = {key: r.removing for key, r in ordered if r.removing}
        return to_json(
            {
                "partitions": {key: r.replicas for key, r in ordered},
                "topic_id": uuid_to_text(assignment.topic_id),
                "adding_replicas": {key: adding[key] for key in scala_map_order(adding)},
                "removing_replicas": {key: removing[key] for key in scala_map_order(removing)},
                "version": 3,
            }
        )

    @classmethod
    def decode(cls, topic: str, content: bytes | None) -> TopicAssignment:
        """Decode a node; versions 1 and 2 have no topic id and get the zero id."""

        def read(fields: dict[str, Any]) -> TopicAssignment:
            adding = fields.get("adding_replicas", {})
            removing = fields.get("removing_replicas", {})
            partitions = {
                int(number): ReplicaAssignment(
                    integers(replicas), integers(adding.get(number, [])), integers(removing.get(number, []))
                )
                for number, replicas in fields["partitions"].items()
            }
            topic_id = uuid_from_text(fields["topic_id"]) if "topic_id" in fields else ZERO_UUID
            return TopicAssignment(topic, topic_id, dict(sorted(partitions.items())))

        return decoded(cls.path(topic), content, read)


class Partitions:
    """Parent of the partitions' nodes, which are parents of their states; both without content."""

    @staticmethod
    def path(topic: str) -> str:
        return f"{Topic.path(topic)}/partitions"

    @classmethod
    def partition_path(cls, partition: TopicPartition) -> str:
        return f"{cls.path(partition.topic)}/{partition.partition}"


class PartitionState:
    """Leader, ISR and their epochs. Its znode version guards every change."""

    @staticmethod
    def path(partition: TopicPartition) -> str:
        return f"{Partitions.partition_path(partition)}/state"

    @staticmethod
    def encode(state: LeaderAndIsr) -> bytes:
        return to_json(
            {
                "controller_epoch": state.controller_epoch,
                "leader": state.leader,
                "version": 1,
                **({"leader_recovery_state": 1} if state.recovering else {}),
                "leader_epoch": state.leader_epoch,
                "isr": state.isr,
            }
        )

    @classmethod
    def decode(
        cls, partition: TopicPartition, content: bytes | None, zk_version: int, written_zxid: int = -1
    ) -> LeaderAndIsr:
        def read(fields: dict[str, Any]) -> LeaderAndIsr:
            return LeaderAndIsr(
                leader=integer(fields["leader"]),
                leader_epoch=integer(fields["leader_epoch"]),
                isr=integers(fields["isr"]),
                controller_epoch=integer(fields["controller_epoch"]),
                zk_version=zk_version,
                recovering=integer(fields.get("leader_recovery_state", 0)) == 1,
                written_zxid=written_zxid,
            )

        return decoded(cls.path(partition), content, read)
