"""Settings of a local cluster: its defaults, and what `odradek up --set` and `--unset` change, checked first.

Pure. A setting that no broker could start with must not reach the file: every later `up` would fail with it.
"""

from collections.abc import Collection, Mapping

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.listeners import SecurityProtocol
from odradek.base.config.support_checks import without_effect
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

_CHOSEN_HERE = {
    "broker.id": "each broker has its own, which odradek up gives it",
    "log.dir": "set log.dirs, which comes before it",
    "node.id": "each broker has its own, which odradek up gives it",
    "zookeeper.connect": "give the ensemble with --zookeeper",
}
_ONE_FOR_EACH_BROKER = ("advertised.listeners", "listeners", "log.dirs", "odradek.metrics.port")
_ANY_PORT = ("0", "-1")
_ANONYMOUS = "User:ANONYMOUS"
_REPLICAS_MAX = 3
_INTERNAL_PARTITIONS = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
_INTERNAL_PARTITIONS_COUNT = 5


def local_defaults(brokers: int, *, is_new: bool, is_alone: bool = False) -> dict[str, str]:
    """Defaults of a cluster on one machine, where Kafka's own are for a large one.

    A crash is noticed within seconds. Topics have three replicas if there are brokers for them, of which one may be
    away. A consumer group doesn't wait for more members before its first rebalance, as in the server.properties that
    Kafka ships. Internal topics of a new cluster have few partitions; those of an older one stay as many as they are. A
    new cluster on a ZooKeeper of its own (`is_alone`) has no brokers of Apache Kafka: producers are offered version 2
    of transactions.
    """
    defaults = {
        "zookeeper.session.timeout.ms": "6000",
        "group.initial.rebalance.delay.ms": "0",
        **_by_number(brokers),
    }
    if is_new:
        defaults |= dict.fromkeys(_INTERNAL_PARTITIONS, str(_INTERNAL_PARTITIONS_COUNT))
    if is_new and is_alone:
        defaults["odradek.transaction.version"] = "2"
    return defaults


def shared_settings(of_first: Mapping[str, str]) -> dict[str, str]:
    """Settings that a new broker takes over from the first one, such as those that an earlier --set gave."""
    own = {*_CHOSEN_HERE, *_ONE_FOR_EACH_BROKER, "broker.rack"}
    return {key: text for key, text in of_first.items() if key not in own}


def outgrown(kept: Collection[Mapping[str, str]], brokers: int) -> list[frozenset[str]]:
    """Keys of each broker, in order, with a default for the fewer brokers that the cluster had earlier.

    Such a value is the default for as many brokers as there are now in `kept`, or for fewer than another broker's. One
    that somebody gave on purpose is the same on every broker.
    """
    wanted = _by_number(brokers)
    defaults = [_by_number(count) for count in range(1, brokers)]
    before = _by_number(len(kept))

    def is_outgrown(key: str, text: str) -> bool:
        others = [settings.get(key) for settings in kept]
        is_default = any(known.get(key) == text for known in defaults) and text != wanted.get(key)
        has_grown = len(kept) < brokers and text == before.get(key)
        return is_default and (has_grown or any(other not in (None, text) for other in others))

    return [frozenset(key for key, text in settings.items() if is_outgrown(key, text)) for settings in kept]


def _by_number(brokers: int) -> dict[str, str]:
    """Defaults that depend on the number of brokers."""
    replicas = min(_REPLICAS_MAX, brokers)
    defaults = {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(1, replicas - 1)),
    }
    if replicas > 1:
        defaults |= {"default.replication.factor": str(replicas), "min.insync.replicas": str(replicas - 1)}
    return defaults


@dataclass(frozen=True, slots=True)
class SettingChanges:
    given: Mapping[str, str]
    """Settings that are set, and kept."""
    removed: frozenset[str] = frozenset()
    """Settings that go back to their defaults."""

    def check_for(self, brokers: int) -> None:
        """Raise ConfigError if these can't be the settings of so many brokers."""
        for key, why in _CHOSEN_HERE.items():
            if key in self.given:
                raise ConfigError(f"{key} can't be set for a local cluster: {why}")
        for key in _ONE_FOR_EACH_BROKER:
            if brokers > 1 and self.given.get(key, _ANY_PORT[0]) not in _ANY_PORT:
                raise ConfigError(
                    f"{key}={self.given[key]} can't hold for {brokers} brokers at once: write it into the "
                    "server.properties of each"
                )


def checked(before: Mapping[str, str], after: Mapping[str, str], file: object) -> BrokerConfig:
    """The configuration with the changes. Raises ConfigError, which tells if the fault was in the file before them."""
    try:
        config = BrokerConfig.from_properties(after)
        if not before.get("authorizer.class.name"):  # later there may be ACLs for brokers
            _refuse_denied_brokers(config)
        return config
    except ConfigError as error:
        if before and _is_faulty(before):
            raise ConfigError(
                f"{file}: {error} (correct the file, or take a setting back with: odradek up --unset KEY)"
            ) from error
        raise


def _refuse_denied_brokers(config: BrokerConfig) -> None:
    """Raise ConfigError if an authorizer would deny what brokers ask of each other: the cluster would never serve."""
    protocols = {listener.name: listener.security_protocol for listener in config.listeners}
    is_anonymous = protocols.get(config.inter_broker_listener_name) is SecurityProtocol.PLAINTEXT
    allowed = {name.strip() for name in config.super_users.split(";")}
    is_open = not config.authorizer_class_name or config.allow_everyone_if_no_acl_found
    if is_anonymous and not is_open and _ANONYMOUS not in allowed:
        raise ConfigError(
            f"authorizer.class.name would deny the brokers themselves, which are {_ANONYMOUS} on a PLAINTEXT listener: "
            f"add {_ANONYMOUS} to super.users, or make a secure cluster with: odradek up --secure"
        )


def _is_faulty(properties: Mapping[str, str]) -> bool:
    try:
        BrokerConfig.from_properties(properties)
    except ConfigError:
        return True
    return False


def remarks(config: BrokerConfig, given: Mapping[str, str]) -> list[str]:
    """Sentences about unknown and deprecated settings, and about given ones that have no effect."""
    ineffective = without_effect(given)
    return [*config.warnings, *(f"{key} has no effect: {reason}" for key, reason in ineffective.items())]
