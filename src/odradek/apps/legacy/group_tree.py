"""Znodes of a group, and the znodes of the cluster that its members need, through one session. Every operation is
counted.

Reads are pipelined. A claim or a registration whose answer was lost with the connection is recognised as done.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from odradek.apps.legacy.core.range_assignment import member_of
from odradek.apps.legacy.core.znodes import (
    STATIC,
    ConsumerId,
    ConsumerIds,
    Owner,
    Owners,
    Registration,
)
from odradek.apps.legacy.observer import Observer
from odradek.broker.zk.session import Request, ZkSession
from odradek.broker.zk.stores.access import readable
from odradek.broker.zk.znodes import BrokerIds, BrokerRegistration, ConsumerOffset, Topic, Topics
from odradek.model.topology import Endpoint, TopicPartition

Node = tuple[bytes | None, Any]
"""Content and stat."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Members of the group, as one server has them. A later list has a higher version."""

    version: int
    members: Mapping[str, Registration]
    registered: Mapping[str, int]
    """Czxid of each member's registration: a later one under the same name has a higher number."""


class GroupTree:
    def __init__(self, group: str, session: ZkSession, observer: Observer) -> None:
        self.group = group
        self._session = session
        self._observer = observer

    # ---- the group

    def prepare(self, topics: Iterable[str]) -> None:
        """Create the parents of all other nodes."""
        parents = [ConsumerIds.path(self.group), *(Owners.path(self.group, topic) for topic in topics)]
        self._observer.asked_zookeeper(writes=len(parents))
        self._session.ensure_paths(parents)

    def register(self, member: str, registration: Registration, timestamp_ms: int) -> bool:
        """Register a member. False: another member, or an earlier session of this one, has the name."""
        path = ConsumerId.path(self.group, member)
        return self.create_ephemeral(path, ConsumerId.encode(registration, timestamp_ms)) or self.is_own(path)

    def unregister(self, member: str) -> None:
        self.delete([ConsumerId.path(self.group, member)])

    def members(self) -> Membership:
        """Read the members; one that is deleted during the read is left out."""
        path = ConsumerIds.path(self.group)
        self._observer.asked_zookeeper(reads=2)
        node, children = self._session.pipeline([_get(path), _children(path)])
        if isinstance(node, Exception) or isinstance(children, Exception):
            raise node if isinstance(node, Exception) else children
        names = sorted(children)
        nodes = self.read([ConsumerId.path(self.group, name) for name in names])
        members: dict[str, Registration] = {}
        registered: dict[str, int] = {}
        for name, found in zip(names, nodes, strict=True):
            registration = found and readable(ConsumerId.decode, self.group, name, found[0])
            if found and registration:
                members[name], registered[name] = registration, found[1].czxid
        return Membership(node[1].cversion, self._by_name(members), registered)

    def _by_name(self, members: Mapping[str, Registration]) -> Mapping[str, Registration]:
        if all(registration.pattern == STATIC for registration in members.values()):
            return members
        topics = self.children(Topics.path)
        return {member: registration.resolved(topics) for member, registration in members.items()}

    def owners(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """Read the owners of partitions: the stream of each; partitions without an owner are left out."""
        names = list(topics)
        listed = self._request([_children(Owners.path(self.group, topic)) for topic in names])
        owned = [
            TopicPartition(topic, int(child))
            for topic, children in zip(names, listed, strict=True)
            for child in (() if isinstance(children, NoNodeError) else children)
            if child.isdecimal()
        ]
        nodes = self.read([Owner.path(self.group, tp) for tp in owned])
        return {tp: Owner.decode(node[0]) for tp, node in zip(owned, nodes, strict=True) if node is not None}

    def claim(self, claims: Mapping[TopicPartition, str]) -> set[TopicPartition]:
        """Create the owners' nodes. Return the partitions that are ours now."""
        ours: set[TopicPartition] = set()
        self._observer.asked_zookeeper(writes=len(claims))
        requests = [_creation(Owner.path(self.group, tp), Owner.encode(stream)) for tp, stream in claims.items()]
        for tp, outcome in zip(claims, self._session.pipeline(requests), strict=True):
            if isinstance(outcome, NodeExistsError):
                if self.is_own(Owner.path(self.group, tp)):
                    ours.add(tp)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                ours.add(tp)
        return ours

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        self.delete([Owner.path(self.group, tp) for tp in partitions])

    def release_own(self, partitions: Sequence[TopicPartition], member: str, assignment: tuple[str, int]) -> None:
        """Release the partitions that name the member, while its assignment has this path and version."""
        nodes = self.read([Owner.path(self.group, tp) for tp in partitions])
        found = zip(partitions, nodes, strict=True)
        own = [tp for tp, node in found if node is not None and member_of(Owner.decode(node[0])) == member]
        self._observer.asked_zookeeper(writes=len(own))
        for outcome in self._session.pipeline(
            [_checked_deletion(Owner.path(self.group, tp), *assignment) for tp in own]
        ):
            if isinstance(outcome, Exception):
                raise outcome

    def offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets; a partition without a readable one is left out."""
        nodes = self.read([ConsumerOffset.path(self.group, tp) for tp in partitions])
        found = {
            tp: readable(ConsumerOffset.decode, self.group, tp, node[0])
            for tp, node in zip(partitions, nodes, strict=True)
            if node is not None
        }
        return {tp: offset for tp, offset in found.items() if offset is not None}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit an offset; the last commit wins, since ZooKeeper does not know the owner of a partition."""
        nodes = {ConsumerOffset.path(self.group, tp): ConsumerOffset.encode(o) for tp, o in offsets.items()}
        outcomes = self._request([_writing(path, content) for path, content in nodes.items()], are_writes=True)
        missing = [path for path, outcome in zip(nodes, outcomes, strict=True) if isinstance(outcome, NoNodeError)]
        if missing:
            self._session.ensure_paths(missing)
            self._request([_writing(path, nodes[path]) for path in missing], are_writes=True)

    # ---- the cluster

    def brokers(self) -> dict[int, Endpoint]:
        """Return the plain-text addresses of the live brokers."""
        children = self._request([_children(BrokerIds.path)])[0]
        ids = [] if isinstance(children, NoNodeError) else sorted(int(name) for name in children if name.isdecimal())
        nodes = self.read([BrokerRegistration.path(broker_id) for broker_id in ids])
        endpoints: dict[int, Endpoint] = {}
        for broker_id, node in zip(ids, nodes, strict=True):
            broker = node and readable(BrokerRegistration.decode, broker_id, node[0], node[1].czxid)
            plain = [e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"] if broker else []
            if plain:
                endpoints[broker_id] = plain[0]
        return endpoints

    def partitions(self, topics: Iterable[str]) -> dict[str, Collection[int]]:
        """Read the numbers of partitions; none for a topic that doesn't exist."""
        names = list(topics)
        nodes = self.read([Topic.path(topic) for topic in names])
        assignments = {
            topic: node and readable(Topic.decode, topic, node[0]) for topic, node in zip(names, nodes, strict=True)
        }
        return {topic: tuple(found.partitions) if found else () for topic, found in assignments.items()}

    # ---- the operations

    def watch_children(self, paths: Sequence[str]) -> None:
        self._observer.asked_zookeeper(reads=len(paths))
        self._session.watch_children(paths)

    def watch_nodes(self, paths: Sequence[str]) -> dict[str, bool]:
        self._observer.asked_zookeeper(reads=len(paths))
        return self._session.watch_nodes(paths)

    def read(self, paths: Sequence[str]) -> list[Node | None]:
        """Read content and stat of each node; None for a missing node."""
        outcomes = self._request([_get(path) for path in paths])
        return [None if isinstance(outcome, NoNodeError) else outcome for outcome in outcomes]

    def children(self, path: str) -> list[str]:
        """Return the children; None if there is no such node."""
        (names,) = self._request([_children(path)])
        return [] if isinstance(names, NoNodeError) else sorted(names)

    def create_ephemeral(self, path: str, content: bytes) -> bool:
        self._observer.asked_zookeeper(writes=1)
        (outcome,) = self._session.pipeline([_creation(path, content)])
        if isinstance(outcome, Exception) and not isinstance(outcome, NodeExistsError):
            raise outcome
        return not isinstance(outcome, NodeExistsError)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete nodes; missing ones are no error."""
        self._request([_deletion(path) for path in paths], are_writes=True)

    def catch_up(self, path: str) -> None:
        """Wait until the server of the session has all earlier writes."""
        self._observer.asked_zookeeper(reads=1)
        self._session.call(lambda zk: zk.sync_async(path))

    def write(self, requests: Sequence[Request], writes: int) -> list[Any]:
        """Send requests of the caller, which write this number of nodes; return one outcome each."""
        self._observer.asked_zookeeper(writes=writes)
        return self._session.pipeline(requests)

    def is_own(self, path: str) -> bool:
        (node,) = self.read([path])
        return node is not None and node[1].ephemeralOwner == self._session.session_id

    def _request(self, requests: Sequence[Request], *, are_writes: bool = False) -> list[Any]:
        """Return each answer, or None for a missing node; any other error is raised."""
        count = len(requests)
        self._observer.asked_zookeeper(reads=0 if are_writes else count, writes=count if are_writes else 0)
        outcomes = self._session.pipeline(requests)
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, NoNodeError):
                raise outcome
        return outcomes


def _get(path: str) -> Request:
    return lambda zk: zk.get_async(path)


def _children(path: str) -> Request:
    return lambda zk: zk.get_children_async(path)


def _creation(path: str, content: bytes) -> Request:
    return lambda zk: zk.create_async(path, content, ephemeral=True)


def _writing(path: str, content: bytes) -> Request:
    return lambda zk: zk.set_async(path, content)


def _deletion(path: str) -> Request:
    return lambda zk: zk.delete_async(path)


def _checked_deletion(path: str, guard: str, version: int) -> Request:
    def start(zk: KazooClient) -> object:
        transaction = zk.transaction()
        transaction.check(guard, version)
        transaction.delete(path)
        return transaction.commit_async()

    return start
