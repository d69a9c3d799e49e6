"""Leaders and ISRs. Every change is conditional on the version of the node that it was decided on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from odradek.broker.zk.stores.access import ZnodeAccess, conditional_set, creation, raise_unless, readable, writing
from odradek.broker.zk.znodes import Partitions, PartitionState
from odradek.model.topology import ControllerTerm, LeaderAndIsr, TopicPartition


class PartitionStateNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_partition_states(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """Return the states; a partition that never had a leader has none, and a corrupt one is left out."""
        wanted = list(partitions)
        found = self._access.read_all([PartitionState.path(tp) for tp in wanted])
        nodes = ((tp, node) for tp, node in zip(wanted, found, strict=True) if node is not None)
        states = (
            (tp, readable(PartitionState.decode, tp, content, stat.version, stat.mzxid))
            for tp, (content, stat) in nodes
        )
        return {tp: state for tp, state in states if state is not None}

    def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], term: ControllerTerm
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Gives new partitions their first state. Returns what the nodes hold, also where one existed before.

        One that is missing has a node that can't be understood, or its topic is gone.
        """
        parents = [(Partitions.path(topic), b"") for topic in dict.fromkeys(tp.topic for tp in states)]
        raise_unless(
            (NodeExistsError, NoNodeError), self._access.fenced([creation(parent) for parent in parents], term)
        )
        created = [
            creation((Partitions.partition_path(tp), b""), (PartitionState.path(tp), PartitionState.encode(state)))
            for tp, state in states.items()
        ]
        outcomes = self._access.fenced(created, term)
        raise_unless((NodeExistsError, NoNodeError), outcomes)
        present = [tp for tp, error in zip(states, outcomes, strict=True) if isinstance(error, NodeExistsError)]
        held = {tp: replace(state, zk_version=0) for tp, state in states.items()}
        for tp, error in zip(states, outcomes, strict=True):
            if error is not None:
                del held[tp]
        return held | self._complete({tp: states[tp] for tp in present}, term)

    def _complete(
        self, states: Mapping[TopicPartition, LeaderAndIsr], term: ControllerTerm
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Create states of partitions whose node exists. A controller that failed may have left a node without one."""
        if not states:
            return {}
        creations = [creation((PartitionState.path(tp), PartitionState.encode(state))) for tp, state in states.items()]
        raise_unless((NodeExistsError, NoNodeError), self._access.fenced(creations, term))
        return self.load_partition_states(states)

    def update_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], term: ControllerTerm
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Writes each state if its node still has the version it was read with.

        Returns the written ones with their new versions; for an omitted one the decision must be repeated with the
        current state.
        """
        updates = [
            writing(PartitionState.path(tp), PartitionState.encode(state), state.zk_version)
            for tp, state in states.items()
        ]
        outcomes = self._access.fenced(updates, term)
        raise_unless((BadVersionError, NoNodeError), outcomes)
        refused = {tp for tp, error in zip(states, outcomes, strict=True) if error is not None}
        now = self.load_partition_states(refused)
        written = {tp: replace(state, zk_version=state.zk_version + 1) for tp, state in states.items()}
        # A write whose answer was lost with the connection was sent twice: the node refuses the second, and holds it.
        return {tp: state for tp, state in written.items() if tp not in refused or now.get(tp) == state}

    def update_partition_state_as_leader(self, tp: TopicPartition, state: LeaderAndIsr) -> int | None:
        """The leader's own change of its ISR, not fenced by a term: the version does that.

        Returns the node's new version, or None when another broker wrote it: the leader waits for the controller.
        """
        path, content = PartitionState.path(tp), PartitionState.encode(state)
        try:
            return int(self._access.call(conditional_set(path, content, state.zk_version)).version)
        except (BadVersionError, NoNodeError):
            written = replace(state, zk_version=state.zk_version + 1)
            return written.zk_version if self.load_partition_states([tp]).get(tp) == written else None
