"""Every server.properties key of Kafka 3.9 in ZooKeeper mode once, and every topic key; one table per area.

The tables hold facts only; `definition` has their notation, `support` that of the last column. The documentation of the
keys is in the package `docs`, which is loaded on first use.
"""

from odradek.base.config.definition import ConfigKey, read_table
from odradek.base.config.keys import (
    authorizer,
    dynamic,
    general,
    groups,
    internal,
    kraft,
    log,
    network,
    odradek,
    quotas,
    replication,
    security,
    tiered_storage,
    topic,
    transactions,
    zookeeper,
)

BROKER_KEYS: dict[str, ConfigKey] = read_table(
    general.TABLE,
    network.TABLE,
    zookeeper.TABLE,
    log.TABLE,
    replication.TABLE,
    groups.TABLE,
    transactions.TABLE,
    quotas.TABLE,
    security.TABLE,
    odradek.TABLE,
    kraft.TABLE,
    tiered_storage.TABLE,
)
DYNAMIC_ONLY_KEYS: dict[str, ConfigKey] = read_table(dynamic.TABLE)
TOPIC_KEYS: dict[str, ConfigKey] = read_table(topic.TABLE)
INTERNAL_KEYS: dict[str, ConfigKey] = read_table(internal.TABLE)
AUTHORIZER_KEYS: dict[str, ConfigKey] = read_table(authorizer.TABLE)
STATIC_KEYS: dict[str, ConfigKey] = BROKER_KEYS | INTERNAL_KEYS | AUTHORIZER_KEYS
"""Keys of server.properties."""
