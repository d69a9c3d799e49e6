"""Every default that differs from Kafka 3.9's, in one place.

Kafka's values are mostly unbounded, which is unsafe for a broker that strangers can reach. The tables in `keys/` hold
our defaults.
"""

from odradek.base.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    kafka_default: str
    reason: str


DEVIATIONS: dict[str, Deviation] = {
    "max.connections": Deviation(
        "2147483647", "descriptors and memory are bounded before the machine's limits are hit"
    ),
    "max.connections.per.ip": Deviation("2147483647", "one client that leaks connections can't take all of them"),
    "queued.max.request.bytes": Deviation(
        "-1", "half-sent large requests on many connections must not fill the memory"
    ),
    "replica.socket.receive.buffer.bytes": Deviation(
        "65536", "the kernel's own sizing lets a follower receive as fast as the network and the leader allow"
    ),
    "socket.receive.buffer.bytes": Deviation(
        "102400", "a producer's whole request arrives at once: fewer turns and an eighth less processor time"
    ),
    "socket.send.buffer.bytes": Deviation(
        "102400", "sendfile hands over more at once: fewer turns and a fifth less processor time per fetch"
    ),
    "socket.listen.backlog.size": Deviation(
        "50", "when many clients connect at once, those beyond it wait a second for the system's next try"
    ),
    "zookeeper.max.in.flight.requests": Deviation(
        "10", "a controller reads the state of ten thousand partitions in seconds, instead of one small group at a time"
    ),
}
