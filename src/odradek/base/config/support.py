"""Support: whether a key of Kafka is obeyed by this broker, refused, or without effect, and why.

The last column of the tables in `keys/` says it in one word for each key:

    obeyed             code reads the value
    refused:REASON     another value than Kafka's default is refused: at start, and while the broker runs
    no-effect:REASON   a valid value is accepted and nothing reads it

When a key gets implemented, only this word changes to `obeyed`; a test asks for code that reads it, and `make
settings-page` writes the page anew. REASON is a name in `REFUSALS` or `NO_EFFECTS`.
"""

from collections.abc import Mapping
from enum import Enum

from odradek.base.value_classes import dataclass


class Support(Enum):
    OBEYED = "obeyed"
    REFUSED = "refused"
    NO_EFFECT = "no-effect"


@dataclass(frozen=True, slots=True)
class Refusal:
    lacks: str
    """Feature that the value asks for, and this broker doesn't have."""
    remedy: str
    """Advice, as a sentence."""


_REMOVE = "Remove the key."

REFUSALS: Mapping[str, Refusal] = {
    "authorizer": Refusal(
        "the authorizer keeps its ACLs in the ZooKeeper of zookeeper.connect, by the broker's own session",
        _REMOVE,
    ),
    "java-class": Refusal("Java classes can't run in this broker, it would go on without this one", _REMOVE),
    "jsse": Refusal("TLS is done by OpenSSL, providers and algorithms of Java can't be chosen", _REMOVE),
    "kraft": Refusal("this broker is coordinated by ZooKeeper, KRaft isn't supported", _REMOVE),
    "reporters": Refusal(
        "Java classes can't run in this broker, metrics would not be reported",
        "Remove the key, and read the metrics from the endpoint of odradek.metrics.port.",
    ),
    "tiered": Refusal("tiered storage isn't supported, all segments stay in log.dirs", _REMOVE),
    "unstable": Refusal("unstable versions of requests aren't supported", _REMOVE),
    "zk-revocation": Refusal("certificates of ZooKeeper's servers are not checked for revocation", _REMOVE),
}

NO_EFFECTS: Mapping[str, str] = {
    "authorizer": "the authorizer is ready before any listener opens",
    "format": "records are stored in message format 2, as by Kafka with inter.broker.protocol.version 3.0 or newer",
    "jmx": "there is no JVM and no JMX; metrics are served at odradek.metrics.port",
    "kerberos": "tickets for other brokers come from the keytab, by the Kerberos library, when they are needed",
    "kraft": "only KRaft mode reads it, in Kafka as well",
    "purgatory": "a completed operation leaves the purgatory at once, nothing is left to purge",
    "reporters": "there are no metrics reporters",
    "samples": "metrics at odradek.metrics.port are totals, current values and quantiles, without sample windows",
    "scheduler": "background tasks share one thread; long ones have their own",
    "tiered": "tiered storage can't be enabled; without it Kafka doesn't read the key either",
}


def read_support(word: str) -> tuple[Support, str]:
    """Support and the name of its reason, from the last column of a key's line."""
    kind, _, reason = word.partition(":")
    return Support(kind), reason
