"""Claim of a log directory: created where it is missing, locked against other processes, its broker remembered."""

import fcntl
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.broker.log.directories.identity import read_broker_id
from odradek.broker.log.files.checkpoint import sync_directory

LOCK_FILE = ".lock"


def claim(directory: Path) -> FileIO:
    """Holds the directory until the file is closed. OSError: its disk doesn't work; FatalError: another holds it."""
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
    """The broker id that the directories were last used with, if any."""
    ids = {
        directory: broker_id
        for directory in directories
        if (broker_id := read_broker_id(directory, cluster_id)) is not None
    }
    if len(set(ids.values())) > 1:
        told = ", ".join(f"{directory} of broker {broker_id}" for directory, broker_id in ids.items())
        raise FatalError(f"log.dirs has directories of several brokers: {told}")
    return next(iter(ids.values()), None)
