"""Checkpoint files on disk; `odradek.format.checkpoints` has their names and their text.

A checkpoint is replaced, never edited: temporary file, fsync, rename, fsync of the directory. So a reader sees the old
one or the new one. A missing or corrupt one reads as empty, because everything in it can be computed again from the
log.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.base.logs import get_logger
from odradek.format.checkpoints import epochs_text, offsets_text, parse_epochs, parse_offsets
from odradek.model.topology import TopicPartition

log = get_logger(__name__)


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    replace_file(path, offsets_text(offsets).encode())


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    try:
        return parse_offsets(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        log.warning("checkpoint ignored", path=str(path), reason=str(error))
        return {}


def write_epochs(path: Path, entries: Iterable[tuple[int, int]]) -> None:
    replace_file(path, epochs_text(entries).encode())


def read_epochs(path: Path) -> list[tuple[int, int]]:
    try:
        return parse_epochs(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        log.warning("checkpoint ignored", path=str(path), reason=str(error))
        return []


def replace_file(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically: a crash leaves the old content or the new."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes creations, renames and removals in the directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
