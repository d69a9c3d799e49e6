"""Files with the identity of directories: the broker of a log directory, the topic id of a partition's directory.

`odradek.format.directory_identity` has their names and their text.
"""

import fcntl
import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from uuid import UUID

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.broker.log.files.checkpoint import replace_file, sync_directory
from odradek.format.directory_identity import (
    BROKER_ID_KEY,
    CLUSTER_ID_KEY,
    META_PROPERTIES,
    NODE_ID_KEY,
    PARTITION_METADATA,
    VERSION_KEY,
    parse_topic_id,
    partition_metadata_text,
)

LOCK_FILE = ".lock"


def claim(directory: Path) -> FileIO:
    """Lock the directory until the file is closed. OSError: its disk doesn't work; FatalError: another broker has the
    lock."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        sync_directory(directory.parent)
    file = FileIO(directory / LOCK_FILE, "a+")
    try:
        fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise FatalError(
            f"Log directory {directory} is in use by another broker (its .lock is held): stop that one, or "
            "give this one other log.dirs"
        ) from None
    return file


def agreed_id(directories: Iterable[Path], cluster_id: str) -> int | None:
    """Return the broker id that the directories were last used with, if any."""
    ids = {
        directory: broker_id
        for directory in directories
        if (broker_id := read_broker_id(directory, cluster_id)) is not None
    }
    if len(set(ids.values())) > 1:
        owners = ", ".join(f"{directory} of broker {broker_id}" for directory, broker_id in ids.items())
        raise FatalError(f"log.dirs has directories of several brokers: {owners}")
    return next(iter(ids.values()), None)


log = get_logger(__name__)


def read_broker_id(directory: Path, cluster_id: str) -> int | None:
    """Read the broker id of the directory; FatalError if it belongs to another cluster."""
    properties = _meta_properties(directory)
    if properties.get(VERSION_KEY, "0") not in ("0", "1"):
        raise FatalError(f"{directory / META_PROPERTIES} has version {properties[VERSION_KEY]}, this broker knows 0")
    known = properties.get(CLUSTER_ID_KEY)
    if known is not None and known != cluster_id:
        raise FatalError(
            f"The cluster id {cluster_id} doesn't match the cluster id {known} in {directory / META_PROPERTIES}: "
            "the broker is trying to join the wrong cluster. Check zookeeper.connect and log.dirs"
        )
    broker_id = properties.get(BROKER_ID_KEY, properties.get(NODE_ID_KEY))
    try:
        return None if broker_id is None else int(broker_id)
    except ValueError:
        raise FatalError(f"{directory / META_PROPERTIES} has broker.id={broker_id}, which is not a number") from None


def write_broker_id(directory: Path, broker_id: int, cluster_id: str) -> None:
    known = _meta_properties(directory)
    wanted = {**known, BROKER_ID_KEY: str(broker_id), CLUSTER_ID_KEY: cluster_id, VERSION_KEY: "0"}
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
    """Return the topic id; None if it is unknown, until the controller sends it again."""
    try:
        return parse_topic_id((directory / PARTITION_METADATA).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        log.warning("partition.metadata ignored", directory=str(directory), reason=str(error))
        return None


def write_topic_id(directory: Path, topic_id: UUID) -> None:
    """Write partition.metadata without an fsync: a thousand new partitions would wait for a thousand of them."""
    path = directory / PARTITION_METADATA
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(partition_metadata_text(topic_id).encode())
    temporary.replace(path)


def make_topic_id_durable(directory: Path) -> None:
    """Sync the file. A directory that was deleted meanwhile needs it no more."""
    try:
        with open(directory / PARTITION_METADATA, "rb") as file:
            os.fsync(file.fileno())
        sync_directory(directory)
    except FileNotFoundError:
        return
