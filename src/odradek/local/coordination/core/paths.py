"""Paths of znodes: which are valid, and whose child one is. The root's path is "/", and "" as somebody's parent."""

import re

from odradek.local.coordination.core.protocol import Code, KeeperError

RESERVED = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
_INVALID_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def validate(path: str) -> None:
    """Raise BAD_ARGUMENTS for a path that no node can have. (Java's strings hold characters beyond the 16-bit range as
    surrogates, which are refused.)"""
    if path == "/":
        return
    valid = path.startswith("/") and not path.endswith("/") and not _INVALID_CHARACTER.search(path)
    if not valid or any(name in ("", ".", "..") for name in path[1:].split("/")):
        raise KeeperError(Code.BAD_ARGUMENTS)


def parent_for_create(path: str) -> str:
    parent, slash, _ = path.rpartition("/")
    if not slash or "\0" in path:
        raise KeeperError(Code.BAD_ARGUMENTS)
    return parent


def parent_for_delete(path: str) -> str:
    if path in RESERVED:
        raise KeeperError(Code.BAD_ARGUMENTS)
    return parent_for_create(path)


def split(path: str) -> tuple[str, str]:
    """The parent's path and the child's name."""
    parent, _, name = path.rpartition("/")
    return parent, name
