"""Conflicts between a commit and the commits that others made before it."""

from collections.abc import Iterable

from odradek.apps.pipeline.tables.core.actions import Action


class AlreadyCommitted(Exception):
    """Another process has committed this batch of this writer."""


class TableChanged(Exception):
    """Another commit changed what this one relies on: the table is to be opened again."""


def check_follows(mine: Iterable[Action], theirs: Iterable[Action]) -> None:
    """Raise if `mine` can't be committed after `theirs`."""
    mine, theirs = list(mine), list(theirs)
    writers = {action["txn"]["appId"]: action["txn"]["version"] for action in mine if "txn" in action}
    for action in theirs:
        if "txn" in action and action["txn"]["appId"] in writers:
            if action["txn"]["version"] >= writers[action["txn"]["appId"]]:
                raise AlreadyCommitted
            raise TableChanged("another process writes the same sink")
        if "protocol" in action or ("metaData" in action and any("metaData" in own for own in mine)):
            raise TableChanged("another process changed the table's schema or protocol")
    removed = {action["remove"]["path"] for action in theirs if "remove" in action}
    if any(action["remove"]["path"] in removed for action in mine if "remove" in action):
        raise TableChanged("another process removed the same files")
