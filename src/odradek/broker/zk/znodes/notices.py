"""Sequential nodes with which brokers notify each other of changes; each is read and then removed."""

from collections.abc import Iterable
from typing import Any

from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import decoded, integer, text
from odradek.broker.zk.znodes.requests import partition_list, partitions_of
from odradek.model.topology import TopicPartition


class ConfigChanges:
    """Tell every broker which entity's configuration changed. Removed a quarter of an hour later by any broker."""

    path = "/config/changes"
    sequence_path = f"{path}/config_change_"
    kept_ms = 15 * 60 * 1000

    @classmethod
    def child(cls, name: str) -> str:
        return f"{cls.path}/{name}"

    @staticmethod
    def encode(entity_type: str, name: str) -> bytes:
        return to_json({"version": 2, "entity_path": f"{entity_type}/{name}"})

    @classmethod
    def decode(cls, node: str, content: bytes | None) -> tuple[str, str]:
        """The entity's type and its name, which may itself be a path: users/USER/clients/CLIENT."""

        def read(fields: dict[str, Any]) -> tuple[str, str]:
            version = integer(fields["version"])
            if version == 1:
                return text(fields["entity_type"]), text(fields["entity_name"])
            if version != 2:
                raise ValueError(f"unknown version {version}")
            entity_type, slash, name = text(fields["entity_path"]).partition("/")
            if not slash:
                raise ValueError("entity_path has no name")
            return entity_type, name

        return decoded(cls.child(node), content, read)


class IsrChanges:
    """Notification for the controller: a leader changed its ISR itself, in ZooKeeper."""

    path = "/isr_change_notification"
    sequence_path = f"{path}/isr_change_"

    @classmethod
    def child(cls, name: str) -> str:
        return f"{cls.path}/{name}"

    @staticmethod
    def encode(partitions: Iterable[TopicPartition]) -> bytes:
        return to_json({"version": 1, "partitions": partition_list(partitions)})

    @classmethod
    def decode(cls, node: str, content: bytes | None) -> set[TopicPartition]:
        return decoded(cls.child(node), content, partitions_of)


class LogDirFailures:
    """A broker tells the controller that it lost a directory."""

    path = "/log_dir_event_notification"
    sequence_path = f"{path}/log_dir_event_"

    @classmethod
    def child(cls, name: str) -> str:
        return f"{cls.path}/{name}"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        return to_json({"version": 1, "broker": broker_id, "event": 1})

    @classmethod
    def decode(cls, node: str, content: bytes | None) -> int:
        return decoded(cls.child(node), content, lambda fields: integer(fields["broker"]))
