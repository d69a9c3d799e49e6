"""Every znode once: its path, and how its content is written and read.

The content is Apache Kafka 3.9's, key order included, so that brokers and tools of both kinds share one tree.
Reading accepts the older versions that a long-lived tree may hold. Pure functions over bytes; `store` and
`registration` perform the reads and writes.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from odradek.model.topology import (
    ZERO_UUID,
    Broker,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicAssignment,
    TopicPartition,
)
from odradek.model.uuid_text import uuid_from_text, uuid_to_text
from odradek.zk.json_form import properties_order, scala_map_order, to_json

T = TypeVar("T")

CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")
DEFAULT_ENTITY = "<default>"


class CorruptZnode(Exception):
    """A znode whose content can't be understood. Names the path and shows the content."""

    def __init__(self, path: str, content: bytes | None, reason: str) -> None:
        super().__init__(f"znode {path} can't be read ({reason}): {content!r}")
        self.path = path
        self.content = content


def _decoded(path: str, content: bytes | None, read: Callable[[dict[str, Any]], T]) -> T:
    """Runs a decoder on parsed JSON and turns whatever goes wrong into the one error."""
    if content is None:
        raise CorruptZnode(path, content, "it is empty")
    try:
        parsed = json.loads(content)
        if not isinstance(parsed, dict):
            raise TypeError("not a JSON object")
        return read(parsed)
    except KeyError as error:
        raise CorruptZnode(path, content, f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptZnode(path, content, str(error)) from error


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list of numbers")
    return tuple(_integer(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


# --- brokers ---------------------------------------------------------------------------------------------------


class BrokerIds:
    """Parent of the registrations of the live brokers."""

    path = "/brokers/ids"


class BrokerSequence:
    """Never has content: its version is the counter that generated broker ids come from."""

    path = "/brokers/seqid"


_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?\d+)")
_PROTOCOL_OF_DEFAULT_LISTENERS = {name: name for name in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")}


def endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


class BrokerRegistration:
    """Ephemeral: it is there as long as the broker's session. Its czxid is the broker's epoch."""

    @staticmethod
    def path(broker_id: int) -> str:
        return f"{BrokerIds.path}/{broker_id}"

    @staticmethod
    def encode(broker: Broker, timestamp_ms: int) -> bytes:
        # host and port at the top are for clients of the oldest versions, which know plaintext only
        plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
        return to_json(
            {
                "features": {},
                "listener_security_protocol_map": {e.listener: e.security_protocol for e in broker.endpoints},
                "endpoints": [endpoint_text(e) for e in broker.endpoints],
                **({} if broker.rack is None else {"rack": broker.rack}),
                "jmx_port": -1,
                "port": plaintext.port if plaintext else -1,
                "host": plaintext.host if plaintext else None,
                "version": 5,
                "timestamp": str(timestamp_ms),
            }
        )

    @classmethod
    def decode(cls, broker_id: int, content: bytes | None, czxid: int) -> Broker:
        def read(fields: dict[str, Any]) -> Broker:
            version = _integer(fields["version"])
            if version < 1:
                raise ValueError(f"unknown version {version}")
            if version == 1:
                endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", _text(fields["host"]), _integer(fields["port"]))
                return Broker(broker_id, (endpoint,), None, czxid)
            protocols = fields.get("listener_security_protocol_map", _PROTOCOL_OF_DEFAULT_LISTENERS)
            endpoints = tuple(cls._endpoint(text, protocols) for text in fields["endpoints"])
            return Broker(broker_id, endpoints, fields.get("rack"), czxid)

        return _decoded(cls.path(broker_id), content, read)

    @staticmethod
    def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not an endpoint")
        listener = match["listener"]
        host = match["v6"] if match["v6"] is not None else match["host"]
        return Endpoint(listener, _text(protocols[listener]), host, int(match["port"]))


# --- topics ----------------------------------------------------------------------------------------------------


class Topics:
    path = "/brokers/topics"


class Topic:
    """A topic's id and who holds its partitions; written before the partitions have any state."""

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
        """A node of version 1 or 2 has no topic id: it is read with the zero id."""

        def read(fields: dict[str, Any]) -> TopicAssignment:
            adding = fields.get("adding_replicas", {})
            removing = fields.get("removing_replicas", {})
            partitions = {
                int(number): ReplicaAssignment(
                    _integers(replicas), _integers(adding.get(number, [])), _integers(removing.get(number, []))
                )
                for number, replicas in fields["partitions"].items()
            }
            topic_id = uuid_from_text(fields["topic_id"]) if "topic_id" in fields else ZERO_UUID
            return TopicAssignment(topic, topic_id, dict(sorted(partitions.items())))

        return _decoded(cls.path(topic), content, read)


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
                "leader_epoch": state.leader_epoch,
                "isr": state.isr,
            }
        )

    @classmethod
    def decode(cls, partition: TopicPartition, content: bytes | None, zk_version: int) -> LeaderAndIsr:
        def read(fields: dict[str, Any]) -> LeaderAndIsr:
            return LeaderAndIsr(
                leader=_integer(fields["leader"]),
                leader_epoch=_integer(fields["leader_epoch"]),
                isr=_integers(fields["isr"]),
                controller_epoch=_integer(fields["controller_epoch"]),
                zk_version=zk_version,
            )

        return _decoded(cls.path(partition), content, read)


class DeletedTopic:
    """A topic somebody asked to delete; no content."""

    parent = "/admin/delete_topics"

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.parent}/{topic}"


# --- configuration ---------------------------------------------------------------------------------------------


class EntityConfig:
    """What was set for one topic, or one broker (or `DEFAULT_ENTITY`), over the defaults."""

    @staticmethod
    def parent(entity_type: str) -> str:
        return f"/config/{entity_type}"

    @classmethod
    def path(cls, entity_type: str, name: str) -> str:
        return f"{cls.parent(entity_type)}/{name}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        return to_json({"version": 1, "config": {key: config[key] for key in properties_order(config)}})

    @classmethod
    def decode(cls, entity_type: str, name: str, content: bytes | None) -> dict[str, str]:
        if not content:
            return {}

        def read(fields: dict[str, Any]) -> dict[str, str]:
            return {key: _text(value) for key, value in fields["config"].items()}

        return _decoded(cls.path(entity_type, name), content, read)


class ConfigChanges:
    """Sequential nodes that tell every broker which entity's configuration changed."""

    path = "/config/changes"
    sequence_path = f"{path}/config_change_"

    @staticmethod
    def encode(entity_type: str, name: str) -> bytes:
        return to_json({"version": 2, "entity_path": f"{entity_type}/{name}"})


# --- the cluster -----------------------------------------------------------------------------------------------


class ClusterId:
    path = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return to_json({"version": "1", "id": cluster_id})

    @classmethod
    def decode(cls, content: bytes | None) -> str:
        return _decoded(cls.path, content, lambda fields: _text(fields["id"]))


class Controller:
    """Ephemeral: whoever creates it is the controller."""

    path = "/controller"

    @staticmethod
    def encode(broker_id: int, timestamp_ms: int) -> bytes:
        return to_json(
            {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
        )

    @classmethod
    def decode(cls, content: bytes | None) -> int:
        return _decoded(cls.path, content, lambda fields: _integer(fields["brokerid"]))


class ControllerEpoch:
    """How many controllers there were; a plain number, and the one node not in JSON."""

    path = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return str(epoch).encode()

    @classmethod
    def decode(cls, content: bytes | None) -> int:
        try:
            return int(content or b"")
        except ValueError as error:
            raise CorruptZnode(cls.path, content, "not a number") from error


@dataclass(frozen=True, slots=True)
class ProducerIds:
    """A block of producer ids that one broker may hand out, both ends included."""

    broker_id: int
    first: int
    last: int


class ProducerIdBlock:
    """The block handed out last; empty until the first."""

    path = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIds) -> bytes:
        return to_json(
            {
                "version": 1,
                "broker": block.broker_id,
                "block_start": str(block.first),
                "block_end": str(block.last),
            }
        )

    @classmethod
    def decode(cls, content: bytes | None) -> ProducerIds:
        def read(fields: dict[str, Any]) -> ProducerIds:
            return ProducerIds(_integer(fields["broker"]), int(fields["block_start"]), int(fields["block_end"]))

        return _decoded(cls.path, content, read)


PERSISTENT_ROOTS = (
    "/consumers",
    BrokerIds.path,
    Topics.path,
    ConfigChanges.path,
    DeletedTopic.parent,
    BrokerSequence.path,
    "/isr_change_notification",
    ProducerIdBlock.path,
    "/log_dir_event_notification",
    *(EntityConfig.parent(entity_type) for entity_type in CONFIG_TYPES),
)
