"""Controller election: the /controller node, and the epoch that fences earlier controllers."""

from kazoo.client import TransactionRequest

from odradek.base.logs import get_logger
from odradek.broker.zk.stores.access import ControllerMoved, ZnodeAccess, commit, failure, readable
from odradek.broker.zk.stores.partition_states import PartitionStateNodes
from odradek.broker.zk.znodes import Controller, ControllerEpoch, Partitions, Topics
from odradek.model.topology import ControllerTerm, TopicPartition

log = get_logger(__name__)


class ControllerElectionStore:
    def __init__(self, access: ZnodeAccess, partition_states: PartitionStateNodes) -> None:
        self._access = access
        self._partition_states = partition_states

    def elect_controller(self, broker_id: int, now_ms: int) -> ControllerTerm | None:
        """Create /controller and raise the epoch in one transaction; None if another broker was first.

        A /controller node of this broker, left by an earlier session or by an answer that was lost, is replaced.
        """
        while True:
            epoch, version = self._next_epoch()
            if self._create_controller_node(broker_id, now_ms, epoch, version):
                return ControllerTerm(epoch, version + 1)
            if not self._delete_own_controller_node():
                return None

    def current_controller(self) -> int | None:
        node = self._access.read(Controller.path)
        return None if node is None else readable(Controller.decode, node[0])

    def resign_controller(self, term: ControllerTerm) -> None:
        """Delete /controller, unless another broker has been elected already."""
        try:
            self._access.drop_all([Controller.path], term)
        except ControllerMoved:
            log.debug("controller election lost", epoch=term.epoch)

    def _next_epoch(self) -> tuple[int, int]:
        """Return the epoch of the next controller, and the version of the node with the last epoch."""
        while (node := self._access.read(ControllerEpoch.path)) is None:
            self._access.create_if_missing(ControllerEpoch.path, ControllerEpoch.encode(self._epoch_in_states()))
        content, stat = node
        epoch = readable(ControllerEpoch.decode, content)
        if epoch is None:
            # each election raises epoch and version by one, so the version is at least the epoch that was lost
            epoch = max(self._epoch_in_states(), int(stat.version))
            log.error("controller epoch missing in ZooKeeper, restored", found=content, epoch=epoch + 1)
        return epoch + 1, int(stat.version)

    def _epoch_in_states(self) -> int:
        """The highest epoch of a controller that ever gave a partition its leader."""
        topics = self._access.children(Topics.path)
        numbers = self._access.children_of_all([Partitions.path(topic) for topic in topics])
        partitions = [
            TopicPartition(topic, int(number))
            for topic, listed in zip(topics, numbers, strict=True)
            for number in listed
            if number.isdigit()
        ]
        return max(
            (state.controller_epoch for state in self._partition_states.load_partition_states(partitions).values()),
            default=0,
        )

    def _create_controller_node(self, broker_id: int, now_ms: int, epoch: int, version: int) -> bool:
        def election(transaction: TransactionRequest) -> None:
            transaction.create(Controller.path, Controller.encode(broker_id, now_ms), ephemeral=True)
            transaction.set_data(ControllerEpoch.path, ControllerEpoch.encode(epoch), version)

        return failure(self._access.call(commit(election))) is None or self._won_without_answer(epoch)

    def _won_without_answer(self, epoch: int) -> bool:
        """Return whether an election that looks lost was won: its answer went with the connection."""
        controller, counter = self._access.read_all([Controller.path, ControllerEpoch.path])
        if controller is None or counter is None or controller[1].ephemeralOwner != self._access.session.session_id:
            return False
        return counter[0] == ControllerEpoch.encode(epoch)

    def _delete_own_controller_node(self) -> bool:
        """Return whether the election may be tried again: /controller is free, or it was this broker's own and is
        deleted now.

        The epoch's version is read before /controller: a broker elected since has changed it, and is left alone.
        """
        counter, controller = self._access.read_all([ControllerEpoch.path, Controller.path])
        if controller is None or counter is None:
            return True
        owner = controller[1].ephemeralOwner
        if not self._access.session.is_own(owner):
            return False
        try:
            self._access.drop_all([Controller.path], ControllerTerm(-1, counter[1].version))
        except ControllerMoved:
            return False
        log.info("/controller of an earlier session deleted, standing again", session=f"{owner:#x}")
        return True
