"""Design two, the coordinator: it watches a group, decides its assignment and writes the owners of its partitions.

Several processes may run for election; the one that creates the group's node coordinates until its session ends. Its
writes are checked against the number of its term, so that one that was replaced without noticing changes nothing.
"""

import threading
from collections.abc import Callable

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from odradek.apps.legacy.core.coordination import Group, Order, Steps, next_steps
from odradek.apps.legacy.core.znodes import (
    AssignedPartitions,
    Assignments,
    ConsumerIds,
    CoordinatorNode,
    CoordinatorTerms,
    MemberAssignment,
    Owner,
    Owners,
    checked_name,
)
from odradek.apps.legacy.group_tree import GroupTree
from odradek.apps.legacy.member import ZOOKEEPER_ERRORS
from odradek.apps.legacy.observer import Observer, Tally, What
from odradek.base.logs import get_logger
from odradek.broker.zk.session import Request, SessionEvent, ZkSession
from odradek.broker.zk.stores.access import failure, readable
from odradek.broker.zk.znodes import Topic

log = get_logger(__name__)

Fill = Callable[[TransactionRequest], None]

_TRY_AGAIN_S = 0.5
_STOP_S_MAX = 30.0
_CONNECTION_MS_MAX = 30_000


class NoLongerCoordinator(Exception):
    """Another process is coordinator by now."""


class GroupCoordinator:
    def __init__(
        self,
        zookeeper: str,
        group: str,
        *,
        name: str = "coordinator",
        session_timeout_ms: int = 6000,
        observer: Observer | None = None,
    ) -> None:
        self.name = name
        self.group = checked_name("group", group)
        self.observer: Observer = observer or Tally()
        self._session = ZkSession(
            zookeeper,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=_CONNECTION_MS_MAX,
            listener=self._on_session,
            on_znode=self._on_znode,
        )
        self._tree = GroupTree(group, self._session, self.observer)
        self._term: int | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"{name} of {group}", daemon=True)

    def start(self) -> None:
        self._session.start()
        self._session.ensure_paths(
            [ConsumerIds.path(self.group), Assignments.path(self.group), CoordinatorTerms.path(self.group)]
        )
        self._wake.set()
        self._thread.start()

    def close(self) -> None:
        """Resign; another candidate is elected."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S_MAX)
        self._session.close()

    @property
    def is_coordinator(self) -> bool:
        return self._term is not None

    # ---- its thread

    def _live(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._stopping.is_set():
                return
            try:
                term = self._term if self._term is not None else self._run_for_election()
                if term is not None:
                    self._coordinate(term)
            except NoLongerCoordinator:
                self._term = None
                self._wake.set()
            except ZOOKEEPER_ERRORS as error:
                log.info("coordinator could not go on", group=self.group, error=str(error))
                self._stopping.wait(_TRY_AGAIN_S)
                self._wake.set()

    def _run_for_election(self) -> int | None:
        """Return the term of a won election, else None: a watch tells when the node is gone."""
        node = CoordinatorNode.path(self.group)
        if self._tree.watch_nodes([node])[node] and not self._tree.is_own(node):
            return None
        if not self._tree.create_ephemeral(node, self.name.encode()) and not self._tree.is_own(node):
            self._wake.set()
            return None
        terms = CoordinatorTerms.path(self.group)
        (stat,) = self._tree.write([lambda zk: zk.set_async(terms, b"")], 1)
        if isinstance(stat, Exception):
            raise stat
        self._term = int(stat.version)
        log.info("coordinator elected", group=self.group, name=self.name, term=self._term)
        return self._term

    def _coordinate(self, term: int) -> None:
        """Read the group. Watches are set before, so that no later change is missed."""
        self._tree.watch_children([ConsumerIds.path(self.group)])
        members = self._tree.members()
        topics = sorted({topic for registration in members.members.values() for topic in registration.subscription})
        self._tree.watch_nodes([Topic.path(topic) for topic in topics])
        self._tree.watch_children([Owners.path(self.group, topic) for topic in topics])
        group = Group(
            members.members,
            members.registered,
            self._tree.partitions(topics),
            self._tree.owners(topics),
            self._assignments(),
        )
        self.observer.happened(self.name, What.DECIDED, view=members.version)
        self._take(next_steps(group), group, term)

    def _assignments(self) -> dict[str, AssignedPartitions]:
        names = self._tree.children(Assignments.path(self.group))
        nodes = self._tree.read([MemberAssignment.path(self.group, name) for name in names])
        return {
            name: readable(MemberAssignment.decode, self.group, name, node[0]) or AssignedPartitions(-1)
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }

    def _take(self, steps: Steps, group: Group, term: int) -> None:
        changes = [self._ordering(member, order, group) for member, order in steps.orders.items()]
        changes += [[_deletion(Owner.path(self.group, tp))] for tp in steps.release]
        changes += [[_deletion(MemberAssignment.path(self.group, member))] for member in steps.forget]
        requests = [self._fenced(fills, term) for fills in changes]
        for outcome in self._tree.write(requests, sum(len(fills) for fills in changes)):
            if isinstance(outcome, KazooException):
                raise outcome
            if isinstance(outcome[0], BadVersionError):
                raise NoLongerCoordinator
            error = failure(outcome)
            if isinstance(error, NodeExistsError | NoNodeError):
                self._wake.set()  # another process made or removed a node first: read again
            elif error is not None:
                raise error

    def _ordering(self, member: str, order: Order, group: Group) -> list[Fill]:
        fills: list[Fill] = []
        for tp, stream in order.own.items():
            write = _writing if tp in group.owners else _creation
            fills.append(write(Owner.path(self.group, tp), Owner.encode(stream)))
        if order.assignment is not None:
            write = _writing if member in group.assignments else _creation
            fills.append(write(MemberAssignment.path(self.group, member), MemberAssignment.encode(order.assignment)))
        return fills

    def _fenced(self, fills: list[Fill], term: int) -> Request:
        def start(zk: KazooClient) -> object:
            transaction = zk.transaction()
            transaction.check(CoordinatorTerms.path(self.group), term)
            for fill in fills:
                fill(transaction)
            return transaction.commit_async()

        return start

    # ---- on kazoo's threads

    def _on_znode(self, path: str) -> None:
        self.observer.happened(self.name, What.NOTIFIED)
        self._wake.set()

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.SESSION_RENEWED:
            self._term = None
            self._wake.set()


def _creation(path: str, content: bytes) -> Fill:
    return lambda transaction: transaction.create(path, content)


def _writing(path: str, content: bytes) -> Fill:
    return lambda transaction: transaction.set_data(path, content)


def _deletion(path: str) -> Fill:
    return lambda transaction: transaction.delete(path)
