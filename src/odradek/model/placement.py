"""Placement of the replicas of a new topic. Pure: random numbers are passed as `start` and `shift`.

With five brokers, ten partitions and three replicas, start 0 and shift 0, the leaders go round robin and each
further round shifts the followers by one more, so that a broker's load spreads over all others when it dies:

    broker-0  broker-1  broker-2  broker-3  broker-4
    p0        p1        p2        p3        p4         first replica
    p5        p6        p7        p8        p9         first replica
    p4        p0        p1        p2        p3         second replica
    p8        p9        p5        p6        p7         second replica
    p3        p4        p0        p1        p2         third replica
    p7        p8        p9        p5        p6         third replica

Where brokers have racks, the round goes from rack to rack (with racks a: 0 1 2, b: 3 4 5, c: 6 7 8 it is
0 3 6 1 4 7 2 5 8), and a follower is never put into a rack that has a replica while another rack has none.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, zip_longest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import Broker

# A topic's assignment is one znode, which ZooKeeper limits to a megabyte.
PARTITIONS_MAX = 50_000


def place_replicas(
    brokers: Mapping[int, Broker],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Partition number → its replicas, the preferred leader first. `brokers` are the live ones."""
    if partitions <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if first_partition + partitions > PARTITIONS_MAX:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"A topic can have at most {PARTITIONS_MAX} partitions.")
    if replication_factor <= 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.",
        )
    racks = _racks(brokers)
    order = _rack_alternated(racks) if racks else sorted(brokers)
    placed: dict[int, tuple[int, ...]] = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        first = (partition + start) % len(order)
        if racks:
            placed[partition] = _spread_over_racks(order, racks, first, shift, replication_factor)
        else:
            followers = _followers(order, first, shift)
            placed[partition] = (order[first], *(next(followers) for _ in range(replication_factor - 1)))
    return placed


def _followers(order: Sequence[int], first: int, shift: int) -> Iterator[int]:
    """Yield the brokers after the leader, round and round."""
    n = len(order)
    return (order[(first + 1 + (shift + j) % (n - 1)) % n] for j in count())


def _spread_over_racks(
    order: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    all_racks = len(set(racks.values()))
    replicas = [order[first]]
    used = {racks[order[first]]}
    followers = _followers(order, first, shift * all_racks)
    while len(replicas) < replication_factor:
        broker = next(followers)
        if broker not in replicas and (racks[broker] not in used or len(used) == all_racks):
            replicas.append(broker)
            used.add(racks[broker])
    return tuple(replicas)


def _racks(brokers: Mapping[int, Broker]) -> dict[int, str]:
    """Broker → rack; empty when none has one."""
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        without = sorted(brokers.keys() - racks.keys())
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Not all brokers have rack information for replica rack aware assignment: {without} have no broker.rack. "
            "Give all of them one, or none, or assign the replicas yourself.",
        )
    return racks


def _rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack in turn, racks and brokers in order."""
    by_rack: dict[str, list[int]] = {}
    for broker_id, rack in sorted(racks.items()):
        by_rack.setdefault(rack, []).append(broker_id)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker_id for one_of_each in rounds for broker_id in one_of_each if broker_id is not None]
