"""Convergence of a simulated cluster in which nothing fails any more.

Every replica is in sync and equal, every metadata cache right, every reassignment and deletion done, all that clients
had to send acknowledged, and the group has read and committed everything.
"""

from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.record_checks import LogKind, check_producer, read_values
from odradek.sim.checkers.transaction_history import committed_values
from odradek.sim.clients.group_member import GROUP
from odradek.sim.clients.group_membership import OFFSETS
from odradek.sim.cluster import SimulatedCluster


def difference(cluster: SimulatedCluster) -> str | None:
    """Return the first difference from a healthy cluster; None if there is none."""
    for tp in cluster.all_partitions():
        if (missing := _missing_in(cluster, tp)) is not None:
            return f"{tp}: {missing}, {cluster.state(tp)}"
    if cluster.world.znodes.to_delete:
        return f"topics to delete: {sorted(cluster.world.znodes.to_delete)}"
    if waiting := [p.number for p in cluster.producers.values() if p.batch is not None]:
        return f"producers {waiting} have something to send"
    if waiting := [p.number for p in cluster.pipelined if not p.is_done]:
        return f"producers {waiting} have something to send"
    for broker in cluster.brokers.values():
        if (missing := _missing_in_metadata(cluster, broker)) is not None:
            return missing
        if others := [tp for tp in broker.coordinated() if not broker.leads(tp)]:
            return f"broker {broker.id} coordinates for {others}, which it doesn't lead"
        if broker.is_loading:
            return f"broker {broker.id} loads what it coordinates"
    return _missing_in_group(cluster) or _missing_in_transactions(cluster) or cluster.bank.missing()


def _missing_in(cluster: SimulatedCluster, tp: TopicPartition) -> str | None:
    state, assignment = cluster.state(tp), cluster.replicas_of(tp)
    if assignment.is_reassigning:
        return f"reassignment under way, {assignment}"
    if state is None or set(state.isr) != set(assignment.replicas):
        return "replicas out of sync"
    others = [broker for broker in cluster.brokers.values() if broker.id not in assignment.replicas]
    if strays := [broker.id for broker in others if tp in broker.logs.table.logs]:
        return f"brokers {strays} have a stray replica"
    ends = set()
    for broker_id in assignment.replicas:
        replica = cluster.brokers[broker_id].replicas.partitions.get(tp)
        if replica is None:
            return f"broker {broker_id} has no replica"
        ends |= {replica.log.log_end_offset, replica.high_watermark}
    return None if len(ends) == 1 else f"replicas end at {sorted(ends)}"


def _missing_in_metadata(cluster: SimulatedCluster, broker: SimulatedBroker) -> str | None:
    """Return the first difference of the broker's metadata from ZooKeeper."""
    image = broker.metadata.image
    if image.brokers.keys() != set(cluster.broker_ids):
        return f"broker {broker.id} knows brokers {sorted(image.brokers)}"
    if image.topics.keys() != cluster.world.znodes.topics.keys():
        return f"broker {broker.id} knows topics {sorted(image.topics)}"
    for tp in cluster.all_partitions():
        known, state = image.partition(tp), cluster.state(tp)
        known_state = (known.leader, known.leader_epoch, known.isr) if known is not None else None
        if state is not None and known_state != (state.leader, state.leader_epoch, state.isr):
            return f"broker {broker.id} knows {known_state} of {tp}, which is {state}"
    return None


def _missing_in_group(cluster: SimulatedCluster) -> str | None:
    if not cluster.members:
        return None
    owned: dict[TopicPartition, int] = {}
    for member in cluster.members:
        if not member.is_done:
            return f"member {member.number} is {member.state.name}, at {member.positions}"
        owned |= member.committed
    for tp in cluster.consumed:
        leader = cluster.elected_leader(tp)
        end = leader.replicas.partitions[tp].high_watermark if leader is not None else -1
        if owned.get(tp) != end:
            return f"the group is at {owned.get(tp)} of {tp}, which ends at {end}"
    return None


def _missing_in_transactions(cluster: SimulatedCluster) -> str | None:
    """Return a transaction that is not over, if need be by its timeout, or a reader of committed records held back."""
    if waiting := [p.number for p in cluster.transactional if not p.is_done]:
        return f"transactional producers {waiting} have something to end"
    for tp, position in cluster.committed_reader.positions.items():
        leader = cluster.elected_leader(tp)
        end = leader.replicas.partitions[tp].high_watermark if leader is not None else -1
        if position != end:
            return f"a reader of committed records is at {position} of {tp}, which ends at {end}"
    return cluster.copying.missing()


def check_end(cluster: SimulatedCluster) -> None:
    """Check the guarantees of a cluster that has converged."""
    if cluster.members:
        _check_committed(cluster)
    _check_transactions_end(cluster)
    cluster.bank.check_end()
    for tp in cluster.all_partitions():
        replicas = cluster.replicas_of(tp).replicas
        logs = {broker_id: cluster.brokers[broker_id].replicas.partitions[tp].log for broker_id in replicas}
        cluster.histories[tp].check_end(logs)
        if tp not in cluster.consumed:
            continue
        for broker_id, log in logs.items():
            values = read_values(log)
            kind = LogKind(is_whole=log.log_start_offset == 0, is_compacted=cluster.histories[tp].is_compacted)
            for producer in cluster.pipelined:
                check_producer(producer, tp, values, kind, where=f"broker {broker_id}")


def _check_committed(cluster: SimulatedCluster) -> None:
    """Check the offsets that the coordinator has of the group."""
    coordinator = cluster.elected_leader(OFFSETS)
    assert coordinator is not None
    for tp, found in coordinator.groups.offsets.committed(GROUP, list(cluster.consumed)).items():
        cluster.group.answered(tp, 0 if found is None else found.offset)
    cluster.group.check()


def _check_transactions_end(cluster: SimulatedCluster) -> None:
    ledger = list(cluster.committed_reader.positions)
    for broker_id in cluster.broker_ids:
        logs = {tp: cluster.brokers[broker_id].logs.table.get(tp) for tp in ledger}
        held = {tp: committed_values(log) for tp, log in logs.items() if log is not None}
        if held.keys() == set(ledger):
            cluster.transactions.check_end(held, f"broker {broker_id}")
    leaders = {tp: cluster.elected_leader(tp) for tp in ledger}
    read = {tp: committed_values(b.replicas.partitions[tp].log) for tp, b in leaders.items() if b is not None}
    cluster.transactions.check_end(read, "the leaders")
    cluster.transactions.check_read(read)
    cluster.copying.check_end()
