"""A simulated cluster at one moment, as values for people who watch it."""

from dataclasses import dataclass

from odradek.sim.cluster import START_MS, SimulatedCluster


@dataclass(frozen=True, slots=True)
class ReplicaView:
    partition: str
    is_leader: bool
    leader_epoch: int
    high_watermark: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class BrokerView:
    broker_id: int
    is_alive: bool
    is_frozen: bool
    is_cut_off: bool
    has_session: bool
    is_controller: bool
    replicas: tuple[ReplicaView, ...]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """State of a partition in ZooKeeper."""

    name: str
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    ms: int
    controller: int | None
    controller_epoch: int
    brokers: tuple[BrokerView, ...]
    partitions: tuple[PartitionView, ...]
    messages: int
    acknowledged: int


def view_of(cluster: SimulatedCluster) -> ClusterView:
    context = cluster.world.context
    return ClusterView(
        cluster.clock.now_ms() - START_MS,
        None if context is None else context.broker_id,
        cluster.world.controller_epoch,
        tuple(_broker(cluster, broker_id) for broker_id in cluster.broker_ids),
        tuple(
            PartitionView(str(tp), state.leader, state.leader_epoch, tuple(state.isr))
            for tp, state in sorted(cluster.world.znodes.states.items())
        ),
        len(cluster.network.messages),
        cluster.acknowledged_records,
    )


def _broker(cluster: SimulatedCluster, broker_id: int) -> BrokerView:
    broker, context = cluster.brokers.get(broker_id), cluster.world.context
    return BrokerView(
        broker_id,
        is_alive=broker is not None,
        is_frozen=broker_id in cluster.network.frozen,
        is_cut_off=broker_id in cluster.network.cut_off,
        has_session=broker_id in cluster.world.znodes.registered,
        is_controller=context is not None and context.broker_id == broker_id,
        replicas=tuple(
            ReplicaView(str(tp), each.is_leader, each.leader_epoch, each.high_watermark, each.log.log_end_offset)
            for tp, each in (sorted(broker.replicas.partitions.items()) if broker is not None else ())
        ),
    )
