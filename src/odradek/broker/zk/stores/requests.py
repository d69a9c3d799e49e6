"""Requests of tools under /admin, and notices of brokers to the controller as sequential nodes."""

from collections.abc import Iterable, Mapping

from kazoo.exceptions import NodeExistsError, NoNodeError

from odradek.broker.zk.stores.access import ZnodeAccess, creation, raise_unless, readable, writing
from odradek.broker.zk.znodes import IsrChanges, LogDirFailures, PreferredElection, Reassignments
from odradek.model.topology import ControllerTerm, TopicPartition


class RequestNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    # --- /admin ------------------------------------------------------------------------------------------------

    def read_reassignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the moves of /admin/reassign_partitions; none without the node, or when it is corrupt."""
        node = self._access.read(Reassignments.path)
        return {} if node is None else readable(Reassignments.decode, node[0]) or {}

    def write_reassignments(self, remaining: Mapping[TopicPartition, tuple[int, ...]], term: ControllerTerm) -> None:
        """Write the remaining moves; without any, delete the node."""
        path = Reassignments.path
        if not remaining:
            self._access.drop_all([path], term)
            return
        content = Reassignments.encode(remaining)
        (error,) = self._access.fenced([writing(path, content)], term)
        if isinstance(error, NoNodeError):
            (error,) = self._access.fenced([creation((path, content))], term)
        raise_unless(NodeExistsError, [error])

    def read_preferred_elections(self) -> set[TopicPartition]:
        node = self._access.read(PreferredElection.path)
        return set() if node is None else readable(PreferredElection.decode, node[0]) or set()

    def drop_preferred_elections(self, term: ControllerTerm) -> None:
        self._access.drop_all([PreferredElection.path], term)

    # --- ISR changes -------------------------------------------------------------------------------------------

    def notify_isr_change(self, tps: Iterable[TopicPartition]) -> None:
        self._access.create_sequential(IsrChanges.sequence_path, IsrChanges.encode(tps))

    def read_isr_notifications(self) -> tuple[list[str], set[TopicPartition]]:
        """The names of all notices, readable or not, and what they tell of."""
        names = self._access.children(IsrChanges.path)
        found = self._access.read_all([IsrChanges.child(name) for name in names])
        nodes = ((name, node) for name, node in zip(names, found, strict=True) if node is not None)
        contents = (readable(IsrChanges.decode, name, node[0]) for name, node in nodes)
        return names, set().union(*(tps for tps in contents if tps is not None))

    def drop_isr_notifications(self, names: Iterable[str], term: ControllerTerm) -> None:
        self._access.drop_all([IsrChanges.child(name) for name in names], term)

    # --- failed log directories --------------------------------------------------------------------------------

    def notify_log_dir_failure(self, broker_id: int) -> None:
        self._access.create_sequential(LogDirFailures.sequence_path, LogDirFailures.encode(broker_id))

    def read_log_dir_notifications(self) -> tuple[list[str], set[int]]:
        """The names of all notices, readable or not, and the brokers that lost a directory."""
        names = self._access.children(LogDirFailures.path)
        found = self._access.read_all([LogDirFailures.child(name) for name in names])
        nodes = ((name, node) for name, node in zip(names, found, strict=True) if node is not None)
        brokers = (readable(LogDirFailures.decode, name, node[0]) for name, node in nodes)
        return names, {broker for broker in brokers if broker is not None}

    def drop_log_dir_notifications(self, names: Iterable[str], term: ControllerTerm) -> None:
        self._access.drop_all([LogDirFailures.child(name) for name in names], term)
