"""ACL nodes: read at once or by pattern, written by version, announced to every broker."""

from collections.abc import Iterable

from kazoo.client import TransactionRequest
from kazoo.exceptions import BadArgumentsError, BadVersionError, NodeExistsError, NoNodeError

from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.zk.stores.access import ZnodeAccess, commit, failure, readable
from odradek.broker.zk.znodes.acls import AclChanges, ResourceAcls
from odradek.broker.zk.znodes.reading import CorruptZnode
from odradek.model.acls import (
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclEntry,
    PatternType,
    ResourcePattern,
)

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class VersionedAcls:
    """ACLs of one pattern; version None: there is no node. Entries None: the node can't be understood."""

    entries: frozenset[AclEntry] | None
    version: int | None


class AclNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_acls(self, patterns: Iterable[ResourcePattern] | None = None) -> dict[ResourcePattern, VersionedAcls]:
        """Return the ACLs of these patterns, or of all that have a node."""
        wanted = self._patterns() if patterns is None else list(patterns)
        nodes = self._access.read_all([ResourceAcls.path(pattern) for pattern in wanted])
        found = {}
        for pattern, node in zip(wanted, nodes, strict=True):
            if node is None:
                found[pattern] = VersionedAcls(frozenset(), None)
                continue
            try:
                found[pattern] = VersionedAcls(ResourceAcls.decode(pattern, node[0]), node[1].version)
            except CorruptZnode as error:
                log.error("unreadable ACLs: the resource is denied to all but super users", reason=str(error))
                found[pattern] = VersionedAcls(None, node[1].version)
        return found

    def _patterns(self) -> list[ResourcePattern]:
        parents = [(pattern_type, kind) for pattern_type in PATTERN_TYPES for kind in RESOURCE_TYPES]
        names = self._access.children_of_all([ResourceAcls.parent(*parent) for parent in parents])
        return [
            ResourcePattern(kind, name, pattern_type)
            for (pattern_type, kind), theirs in zip(parents, names, strict=True)
            for name in theirs
        ]

    def write_acls(self, pattern: ResourcePattern, entries: frozenset[AclEntry], version: int | None) -> bool:
        """Replace the ACLs that have this version (None: there are none), and notify every broker. False: another
        changed them meanwhile, or this was done and its answer was lost.

        One transaction: no broker may keep obeying ACLs of which it was not told that they changed. ValueError for a
        name that no node can have.
        """
        path, content = ResourceAcls.path(pattern), ResourceAcls.encode(entries)

        def fill(transaction: TransactionRequest) -> None:
            if version is None:
                transaction.create(path, content)
            elif entries:
                transaction.set_data(path, content, version)
            else:
                transaction.delete(path, version)
            notice = AclChanges.sequence_path(pattern.pattern)
            transaction.create(notice, AclChanges.encode(pattern), sequence=True)

        error = failure(self._access.call(commit(fill)))
        if isinstance(error, BadArgumentsError):
            raise ValueError(f"{pattern.name!r} can't be the name of a resource with ACLs") from error
        if error is not None and not isinstance(error, BadVersionError | NodeExistsError | NoNodeError):
            raise error
        return error is None

    def load_acl_changes(self, after: dict[PatternType, str]) -> tuple[list[ResourcePattern], dict[PatternType, str]]:
        """Patterns named by notices that came after these, and the newest notices. Unreadable ones are left out."""
        changed: dict[ResourcePattern, None] = {}
        newest = dict(after)
        for pattern_type, root in AclChanges.roots.items():
            names = [name for name in self._access.children(root) if name > after.get(pattern_type, "")]
            nodes = self._access.read_all([f"{root}/{name}" for name in names])
            for name, node in zip(names, nodes, strict=True):
                newest[pattern_type] = max(newest.get(pattern_type, ""), name)
                pattern = None if node is None else readable(AclChanges.decode, f"{root}/{name}", node[0])
                if pattern is not None:
                    changed[pattern] = None
        return list(changed), newest

    def purge_acl_changes(self, now_ms: int) -> None:
        """Remove notices that are old enough for every broker to have read them."""
        for root in AclChanges.roots.values():
            self._access.purge(root, now_ms, AclChanges.kept_ms)
