"""Where the replicas of a new topic go. Pure: chance enters as `start` and `shift`.

With five brokers, ten partitions and three replicas, start 0 and shift 0, the leaders go round robin and each
further round shifts the followers by one more, so that a broker's load spreads over all others when it dies:

    broker-0  broker-1  broker-2  broker-3  broker-4
    p0        p1        p2        p3        p4         first replica
    p5        p6        p7        p8        p9         first replica
    p4        p0        p1        p2        p3         second replica
    p8        p9        p5        p6        p7         second replica
    p3        p4        p0        p1        p2         third replica
    p7        p8        p9        p5        p6         third replica
"""

from collections.abc import Sequence

from odradek.base.errors import ErrorCode, KafkaError

# A topic's assignment is one znode, which ZooKeeper limits to a megabyte.
PARTITIONS_MAX = 50_000


def place_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Partition number → its replicas, the preferred leader first. `brokers` are sorted live ids."""
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
    n = len(brokers)
    placed: dict[int, tuple[int, ...]] = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % n == 0:
            shift += 1
        first = (partition + start) % n
        followers = [brokers[(first + 1 + (shift + j) % (n - 1)) % n] for j in range(replication_factor - 1)]
        placed[partition] = (brokers[first], *followers)
    return placed
