"""Whose a directory is: `meta.properties` in each log directory, `partition.metadata` in each partition's.

meta.properties      version=0, broker.id, cluster.id; what else stands there (Kafka's directory.id) is kept
partition.metadata   version: 0, topic_id: 22 characters of URL-safe base64
"""

import os
from pathlib import Path
from uuid import UUID

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.broker.log.files.checkpoint import replace_file, sync_directory
from odradek.model.uuid_text import uuid_from_text, uuid_to_text

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

log = get_logger(__name__)


def read_broker_id(directory: Path, cluster_id: str) -> int | None:
    """The broker that the directory belongs to; FatalError when it belongs to another cluster."""
    properties = _meta_properties(directory)
    if properties.get("version", "0") not in ("0", "1"):
        raise FatalError(f"{directory / META_PROPERTIES} has version {properties['version']}, this broker knows 0")
    known = properties.get("cluster.id")
    if known is not None and known != cluster_id:
        raise FatalError(
            f"The cluster id {cluster_id} doesn't match the cluster id {known} in {directory / META_PROPERTIES}: "
            "the broker is trying to join the wrong cluster. Check zookeeper.connect and log.dirs"
        )
    broker_id = properties.get("broker.id", properties.get("node.id"))
    try:
        return None if broker_id is None else int(broker_id)
    except ValueError:
        raise FatalError(f"{directory / META_PROPERTIES} has broker.id={broker_id}, which is no number") from None


def write_broker_id(directory: Path, broker_id: int, cluster_id: str) -> None:
    known = _meta_properties(directory)
    wanted = {**known, "broker.id": str(broker_id), "cluster.id": cluster_id, "version": "0"}
    if wanted != known:
        replace_file(directory / META_PROPERTIES, format_properties(wanted).encode())


def _meta_properties(directory: Path) -> dict[str, str]:
    path = directory / META_PROPERTIES
    try:
        return parse_properties(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise FatalError(f"{path} is damaged ({error}): restore it, or delete it to have it written anew") from None


def read_topic_id(directory: Path) -> UUID | None:
    """None when it isn't known; the controller says it again."""
    try:
        lines = (directory / PARTITION_METADATA).read_text("utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        return uuid_from_text(fields["topic_id"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        log.warning("partition.metadata ignored", directory=str(directory), reason=str(error))
        return None


def write_topic_id(directory: Path, topic_id: UUID) -> None:
    """Without waiting for the disk, for which a thousand new partitions would wait a thousand times."""
    path = directory / PARTITION_METADATA
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode())
    temporary.replace(path)


def make_topic_id_durable(directory: Path) -> None:
    """Waits for the disk. A directory that has gone meanwhile needs it no more."""
    try:
        with open(directory / PARTITION_METADATA, "rb") as file:
            os.fsync(file.fileno())
        sync_directory(directory)
    except FileNotFoundError:
        return
