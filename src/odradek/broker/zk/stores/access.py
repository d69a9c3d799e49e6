"""Operations on znodes: pipelined reads, and writes that are fenced by the controller's term.

Writes that only the controller may make are transactions with a check of /controller_epoch's version, so that a
replaced controller changes nothing and gets `ControllerMoved`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency

from odradek.base.logs import get_logger
from odradek.broker.zk.session import Request, ZkSession
from odradek.broker.zk.znodes import ControllerEpoch, CorruptZnode
from odradek.model.topology import ControllerTerm

log = get_logger(__name__)

# A message of ZooKeeper may have a megabyte; a thousand operations as large as a topic's node would not fit.
_GROUP_MAX = 50

T = TypeVar("T")
Node: TypeAlias = tuple[bytes | None, Any]
"""A node's content and its stat."""
Fill: TypeAlias = Callable[[TransactionRequest], None]
"""Puts operations into a transaction."""


class ControllerMoved(Exception):
    """Another broker has become controller since: this one has to stop acting."""


class ZnodeAccess:
    """Calls wait for ZooKeeper with `until_available`; else they raise `ZkUnavailable` after the connection timeout."""

    def __init__(self, session: ZkSession, *, until_available: bool = False) -> None:
        self.session = session
        self._until_available = until_available

    def call(self, request: Request) -> Any:
        return self.session.call(request, until_available=self._until_available)

    def pipeline(self, requests: Sequence[Request]) -> list[Any]:
        return self.session.pipeline(requests, until_available=self._until_available)

    def children(self, path: str) -> list[str]:
        (names,) = self.children_of_all([path])
        return names

    def children_of_all(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the sorted names of each node's children; none for a missing node."""
        outcomes = self.pipeline([_list(path) for path in paths])
        raise_unless(NoNodeError, outcomes)
        return [[] if isinstance(outcome, NoNodeError) else sorted(outcome) for outcome in outcomes]

    def read_all(self, paths: Sequence[str]) -> list[Node | None]:
        """Return each node, or None for a missing one."""
        outcomes = self.pipeline([_get(path) for path in paths])
        raise_unless(NoNodeError, outcomes)
        return [None if isinstance(outcome, NoNodeError) else outcome for outcome in outcomes]

    def read(self, path: str) -> Node | None:
        (node,) = self.read_all([path])
        return node

    def holds(self, path: str, content: bytes) -> bool:
        node = self.read(path)
        return node is not None and node[0] == content

    def create_if_missing(self, path: str, content: bytes | None) -> None:
        try:
            self.call(lambda zk: zk.create_async(path, content))
        except NodeExistsError:
            return

    def put(self, path: str, content: bytes) -> None:
        """Write the node, create it if necessary, and its missing parents."""
        while True:
            try:
                self.call(lambda zk: zk.set_async(path, content))
                return
            except NoNodeError:
                pass
            try:
                self.call(lambda zk: zk.create_async(path, content, makepath=True))
                return
            except NodeExistsError:
                continue  # another broker's, or our own whose answer was lost

    def create_sequential(self, path: str, content: bytes) -> None:
        """Create a sequential node; sent twice, because its answer was lost, it makes two nodes with the
        same content."""
        self.call(lambda zk: zk.create_async(path, content, sequence=True))

    def purge(self, parent: str, now_ms: int, kept_ms: int) -> None:
        """Remove the children that are older than that."""
        paths = [f"{parent}/{name}" for name in self.children(parent)]
        nodes = zip(paths, self.read_all(paths), strict=True)
        old = [path for path, node in nodes if node is not None and now_ms - node[1].ctime > kept_ms]
        raise_unless(NoNodeError, self.pipeline([_delete(path) for path in old]))

    def fenced(self, operations: Sequence[Fill], term: ControllerTerm) -> list[Exception | None]:
        """Execute entries, each atomically and fenced by the term; return the error of each.

        Many share a transaction, for ZooKeeper's work is per transaction. When one of them is refused so are the
        others, and these are then tried one by one.
        """
        groups = [operations[start : start + _GROUP_MAX] for start in range(0, len(operations), _GROUP_MAX)]
        if len(operations) == 1:
            return self._commit(groups, term)
        errors: list[Exception | None] = []
        for group, error in zip(groups, self._commit(groups, term), strict=True):
            errors += [None] * len(group) if error is None else self._commit([[fill] for fill in group], term)
        return errors

    def _commit(self, groups: Sequence[Sequence[Fill]], term: ControllerTerm) -> list[Exception | None]:
        """Send one transaction per group, pipelined; return the error of each."""

        def checked(group: Sequence[Fill]) -> Fill:
            def fill_all(transaction: TransactionRequest) -> None:
                transaction.check(ControllerEpoch.path, term.zk_version)
                for fill in group:
                    fill(transaction)

            return fill_all

        outcomes = self.pipeline([commit(checked(group)) for group in groups])
        for results in outcomes:
            if isinstance(results, list) and isinstance(results[0], BadVersionError | NoNodeError):
                raise ControllerMoved(f"this broker was controller with epoch {term.epoch}, another one is now")
        return [outcome if isinstance(outcome, Exception) else failure(outcome) for outcome in outcomes]

    def drop_all(self, paths: Iterable[str], term: ControllerTerm) -> None:
        """Delete the nodes; missing ones are fine."""
        raise_unless(NoNodeError, self.fenced([deletion(path) for path in paths], term))


def readable(decode: Callable[..., T], *content: Any) -> T | None:
    """Decode the node; None, and a log line, when it is corrupt."""
    try:
        return decode(*content)
    except CorruptZnode as error:
        log.warning("corrupt znode ignored", path=error.path, reason=str(error))
        return None


def raise_unless(expected: type[Exception] | tuple[type[Exception], ...], outcomes: Iterable[Any]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, expected):
            raise outcome


def failure(results: Iterable[Any]) -> Exception | None:
    """Return the reason why a transaction was refused: the one error that isn't a consequence of another."""
    consequences = (RolledBackError, RuntimeInconsistency)
    return next((r for r in results if isinstance(r, Exception) and not isinstance(r, consequences)), None)


def conditional_set(path: str, content: bytes, version: int) -> Request:
    return lambda zk: zk.set_async(path, content, version)


def commit(fill: Fill) -> Request:
    def start(zk: KazooClient) -> Any:
        transaction = zk.transaction()
        fill(transaction)
        return transaction.commit_async()

    return start


def creation(*nodes: tuple[str, bytes]) -> Fill:
    def fill(transaction: TransactionRequest) -> None:
        for path, content in nodes:
            transaction.create(path, content)

    return fill


def writing(path: str, content: bytes, version: int = -1) -> Fill:
    def fill(transaction: TransactionRequest) -> None:
        transaction.set_data(path, content, version)

    return fill


def deletion(path: str) -> Fill:
    def fill(transaction: TransactionRequest) -> None:
        transaction.delete(path)

    return fill


def _list(path: str) -> Request:
    return lambda zk: zk.get_children_async(path)


def _get(path: str) -> Request:
    return lambda zk: zk.get_async(path)


def _delete(path: str) -> Request:
    return lambda zk: zk.delete_async(path)
