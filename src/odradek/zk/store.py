"""Typed reads and writes of the cluster's znodes. Bulk work is pipelined; writes are conditional.

The only place, with `registration`, that knows how operations on znodes are combined. What only the controller may
write is fenced: it is one transaction with a check of /controller_epoch's version, so that a controller that has been
replaced without noticing changes nothing and learns of it by `ControllerMoved`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import Broker, ControllerTerm, LeaderAndIsr, TopicAssignment, TopicPartition
from odradek.zk.session import Request, ZkSession
from odradek.zk.znodes import (
    BrokerIds,
    BrokerRegistration,
    ConfigChanges,
    Controller,
    ControllerEpoch,
    DeletedTopic,
    EntityConfig,
    Partitions,
    PartitionState,
    ProducerIdBlock,
    ProducerIds,
    Topic,
    Topics,
)

PRODUCER_ID_BLOCK_SIZE = 1000


class ControllerMoved(Exception):
    """Another broker has become controller since: this one has to stop acting."""


class ZkStore:
    def __init__(self, session: ZkSession) -> None:
        self._session = session

    # --- reading ---------------------------------------------------------------------------------------------

    def load_brokers(self) -> dict[int, Broker]:
        ids = [int(name) for name in self._children(BrokerIds.path)]
        found = self._read_all([BrokerRegistration.path(broker_id) for broker_id in ids])
        return {
            broker_id: BrokerRegistration.decode(broker_id, node[0], node[1].czxid)
            for broker_id, node in zip(ids, found, strict=True)
            if node is not None
        }

    def load_topics(self) -> dict[str, TopicAssignment]:
        names = self._children(Topics.path)
        found = self._read_all([Topic.path(name) for name in names])
        return {name: Topic.decode(name, node[0]) for name, node in zip(names, found, strict=True) if node is not None}

    def load_partition_states(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """Those that have a state; a partition that was never led has none."""
        wanted = list(partitions)
        found = self._read_all([PartitionState.path(partition) for partition in wanted])
        return {
            partition: PartitionState.decode(partition, node[0], node[1].version)
            for partition, node in zip(wanted, found, strict=True)
            if node is not None
        }

    def load_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        names = self._children(EntityConfig.parent(entity_type))
        found = self._read_all([EntityConfig.path(entity_type, name) for name in names])
        return {
            name: EntityConfig.decode(entity_type, name, node[0])
            for name, node in zip(names, found, strict=True)
            if node is not None
        }

    def load_topics_to_delete(self) -> list[str]:
        return self._children(DeletedTopic.parent)

    # --- topics ----------------------------------------------------------------------------------------------

    def create_topic(self, assignment: TopicAssignment, config: Mapping[str, str]) -> None:
        """Configuration first, so that whoever sees the topic sees it configured."""
        topic, content = assignment.topic, Topic.encode(assignment)
        if self._session.call(lambda zk: zk.exists_async(Topic.path(topic))) is not None:
            raise _already_exists(topic)
        self._write("topics", topic, config)
        try:
            self._session.call(lambda zk: zk.create_async(Topic.path(topic), content))
        except NodeExistsError:
            if not self._holds(Topic.path(topic), content):
                raise _already_exists(topic) from None

    def set_assignment(self, assignment: TopicAssignment, term: ControllerTerm) -> None:
        """Replaces who holds the topic's partitions: more partitions, or a reassignment."""

        def operations(transaction: TransactionRequest) -> None:
            transaction.set_data(Topic.path(assignment.topic), Topic.encode(assignment))

        (error,) = self._fenced([operations], term)
        if isinstance(error, NoNodeError):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{assignment.topic}' does not exist.")
        if error is not None:
            raise error

    def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], term: ControllerTerm
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Gives new partitions their first state. Returns what the nodes hold, also where one existed before."""
        parents = [(Partitions.path(topic), b"") for topic in dict.fromkeys(tp.topic for tp in states)]
        self._raise_unless(NodeExistsError, self._fenced([_creation(parent) for parent in parents], term))
        outcomes = self._fenced(
            [
                _creation((Partitions.partition_path(tp), b""), (PartitionState.path(tp), PartitionState.encode(state)))
                for tp, state in states.items()
            ],
            term,
        )
        self._raise_unless(NodeExistsError, outcomes)
        existing = self.load_partition_states(tp for tp, e in zip(states, outcomes, strict=True) if e is not None)
        return {tp: existing.get(tp, replace(state, zk_version=0)) for tp, state in states.items()}

    def update_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], term: ControllerTerm
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Writes each state if its node still has the version it was read with.

        Returns the written ones with their new versions; one that is missing has to be read again and decided anew.
        """

        def update(tp: TopicPartition, state: LeaderAndIsr) -> Any:
            path, content = PartitionState.path(tp), PartitionState.encode(state)
            return lambda transaction: transaction.set_data(path, content, state.zk_version)

        outcomes = self._fenced([update(tp, state) for tp, state in states.items()], term)
        self._raise_unless((BadVersionError, NoNodeError), outcomes)
        refused = {tp for tp, error in zip(states, outcomes, strict=True) if error is not None}
        now = self.load_partition_states(refused)
        written = {tp: replace(state, zk_version=state.zk_version + 1) for tp, state in states.items()}
        # A write whose answer was lost with the connection was sent twice: the node refuses the second, and holds it.
        return {tp: state for tp, state in written.items() if tp not in refused or now.get(tp) == state}

    def mark_for_deletion(self, topic: str) -> None:
        try:
            self._session.call(lambda zk: zk.create_async(DeletedTopic.path(topic), None))
        except NodeExistsError:
            return

    def delete_topic(self, topic: str, term: ControllerTerm) -> None:
        """Removes every node of the topic, the mark for deletion last: a crash on the way is found and finished."""
        numbers = self._children(Partitions.path(topic))
        partitions = [TopicPartition(topic, int(number)) for number in numbers]
        paths = [PartitionState.path(tp) for tp in partitions]
        paths += [Partitions.partition_path(tp) for tp in partitions]
        paths += [Partitions.path(topic), Topic.path(topic)]
        paths += [EntityConfig.path("topics", topic), DeletedTopic.path(topic)]
        outcomes = self._fenced([_deletion(path) for path in paths], term)
        self._raise_unless(NoNodeError, outcomes)

    # --- configuration ---------------------------------------------------------------------------------------

    def set_config(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        """Replaces all that is set for the entity, and tells every broker."""
        self._write(entity_type, name, config)
        notice = ConfigChanges.encode(entity_type, name)
        self._session.call(lambda zk: zk.create_async(ConfigChanges.sequence_path, notice, sequence=True))

    def _write(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        path, content = EntityConfig.path(entity_type, name), EntityConfig.encode(config)
        try:
            self._session.call(lambda zk: zk.set_async(path, content))
        except NoNodeError:
            self._session.call(lambda zk: zk.create_async(path, content))

    # --- the cluster -----------------------------------------------------------------------------------------

    def elect_controller(self, broker_id: int, now_ms: int) -> ControllerTerm | None:
        """Creates /controller and raises the epoch in one transaction; None when somebody else was first."""
        self._create_if_missing(ControllerEpoch.path, ControllerEpoch.encode(0))
        content, stat = self._session.call(lambda zk: zk.get_async(ControllerEpoch.path))
        epoch = ControllerEpoch.decode(content) + 1

        def election(zk: KazooClient) -> Any:
            transaction = zk.transaction()
            transaction.create(Controller.path, Controller.encode(broker_id, now_ms), ephemeral=True)
            transaction.set_data(ControllerEpoch.path, ControllerEpoch.encode(epoch), stat.version)
            return transaction.commit_async()

        results = self._session.call(election)
        if _failure(results) is None or self._won_unheard(epoch):
            return ControllerTerm(epoch, stat.version + 1)
        return None

    def current_controller(self) -> int | None:
        (node,) = self._read_all([Controller.path])
        return None if node is None else Controller.decode(node[0])

    def allocate_producer_ids(self, broker_id: int) -> ProducerIds:
        """The next block of ids, which no other broker will get."""
        while True:
            content, stat = self._session.call(lambda zk: zk.get_async(ProducerIdBlock.path))
            first = ProducerIdBlock.decode(content).last + 1 if content else 0
            block = ProducerIds(broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)
            try:
                self._session.call(_conditional_set(ProducerIdBlock.path, ProducerIdBlock.encode(block), stat.version))
            except BadVersionError:
                continue
            return block

    def _won_unheard(self, epoch: int) -> bool:
        """Whether an election that looks lost was ours after all: its answer went with the connection."""
        seat, counter = self._read_all([Controller.path, ControllerEpoch.path])
        if seat is None or counter is None:
            return False
        owner = seat[1].ephemeralOwner
        return bool(owner == self._session.session_id) and ControllerEpoch.decode(counter[0]) == epoch

    # --- building blocks -------------------------------------------------------------------------------------

    def _children(self, path: str) -> list[str]:
        try:
            return sorted(self._session.call(lambda zk: zk.get_children_async(path)))
        except NoNodeError:
            return []

    def _read_all(self, paths: Sequence[str]) -> list[tuple[bytes | None, Any] | None]:
        """Content and stat per path, or None where there is no node."""
        outcomes = self._session.pipeline([_get(path) for path in paths])
        self._raise_unless(NoNodeError, outcomes)
        return [None if isinstance(outcome, NoNodeError) else outcome for outcome in outcomes]

    def _holds(self, path: str, content: bytes) -> bool:
        (node,) = self._read_all([path])
        return node is not None and node[0] == content

    def _create_if_missing(self, path: str, content: bytes) -> None:
        try:
            self._session.call(lambda zk: zk.create_async(path, content))
        except NodeExistsError:
            return

    def _fenced(self, operations: Sequence[Any], term: ControllerTerm) -> list[Exception | None]:
        """One transaction per entry, pipelined, each checked against the term; per entry its error."""

        def request(fill: Any) -> Request:
            def start(zk: KazooClient) -> Any:
                transaction = zk.transaction()
                transaction.check(ControllerEpoch.path, term.zk_version)
                fill(transaction)
                return transaction.commit_async()

            return start

        outcomes = self._session.pipeline([request(fill) for fill in operations])
        for results in outcomes:
            if isinstance(results, list) and isinstance(results[0], BadVersionError | NoNodeError):
                raise ControllerMoved(f"this broker was controller with epoch {term.epoch}, another one is now")
        return [outcome if isinstance(outcome, Exception) else _failure(outcome) for outcome in outcomes]

    @staticmethod
    def _raise_unless(expected: type[Exception] | tuple[type[Exception], ...], outcomes: Iterable[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, expected):
                raise outcome


def _failure(results: Iterable[Any]) -> Exception | None:
    """Why a transaction was refused: the one error that isn't a consequence of another."""
    consequences = (RolledBackError, RuntimeInconsistency)
    return next((r for r in results if isinstance(r, Exception) and not isinstance(r, consequences)), None)


def _get(path: str) -> Request:
    return lambda zk: zk.get_async(path)


def _conditional_set(path: str, content: bytes, version: int) -> Request:
    return lambda zk: zk.set_async(path, content, version)


def _creation(*nodes: tuple[str, bytes]) -> Any:
    def fill(transaction: TransactionRequest) -> None:
        for path, content in nodes:
            transaction.create(path, content)

    return fill


def _deletion(path: str) -> Any:
    return lambda transaction: transaction.delete(path)


def _already_exists(topic: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
