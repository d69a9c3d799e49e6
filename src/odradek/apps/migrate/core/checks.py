"""Checks of a migration: replicas that are not in sync, settings and features that the successors lack. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from odradek.apps.migrate.core.survey import BrokerSettings, Survey
from odradek.base.config.definition import ConfigKey
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.config.support_checks import refuse_unsupported, without_effect
from odradek.base.errors import ConfigError
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition

MUST_AGREE = (
    "authorizer.class.name",
    "auto.create.topics.enable",
    "compression.type",
    "delete.topic.enable",
    "log.cleanup.policy",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.ms",
    "message.max.bytes",
    "min.insync.replicas",
    "offsets.retention.minutes",
    "unclean.leader.election.enable",
)
"""Keys that decide which records a broker keeps, refuses or deletes: they must have the same values on the
successor."""
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
_OWN = ("broker.id", "listener", "advertised.", "log.dir", "zookeeper.", "odradek.", "node.id", "broker.rack", "port")
_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class Finding:
    text: str
    is_problem: bool
    """A problem stops the migration until it is solved or accepted; other findings are notes."""

    @property
    def kind(self) -> str:
        return "problem" if self.is_problem else "note"


def findings(survey: Survey, pairs: Mapping[int, int], accepted: Collection[str] = ()) -> list[Finding]:
    """Check the migration; return findings, problems first. `accepted`: keys whose difference the operator accepts."""
    found = [Finding(text, is_problem=True) for text in _problems(survey, pairs, accepted)]
    return found + [Finding(text, is_problem=False) for text in _notes(survey, pairs)]


def _problems(survey: Survey, pairs: Mapping[int, int], accepted: Collection[str]) -> Iterator[str]:
    absent = sorted({*pairs, *pairs.values()} - survey.view.brokers.keys())
    if absent:
        yield f"broker {', '.join(map(str, absent))} is not in the cluster; start it first"
    yield from _replica_problems(survey)
    yield from _room_problems(survey, pairs)
    for old, new in pairs.items():
        if old in survey.brokers and new in survey.brokers:
            yield from _differences(old, new, survey.brokers[old], survey.brokers[new], accepted)
            if survey.brokers[new].is_odradek:
                yield from _lost_settings(f"broker {old}", _chosen(survey.brokers[old]), accepted)
    if any(new in survey.brokers and survey.brokers[new].is_odradek for new in pairs.values()):
        for topic, settings in survey.topics.items():
            yield from _lost_settings(f"topic {topic}", settings, accepted, TOPIC_KEYS)
    yield from _lost_apis(survey, pairs)


def _replica_problems(survey: Survey) -> Iterator[str]:
    partitions = survey.view.partitions.items()
    if leaderless := [tp for tp, partition in partitions if partition.leader < 0]:
        yield f"{_some(leaderless)}: no leader"
    if lagging := [tp for tp, partition in partitions if 0 <= len(partition.isr) < len(partition.replicas)]:
        yield f"{_some(lagging)}: not all replicas are in sync; wait for them, or mend their brokers"
    if moving := [tp for tp, partition in partitions if partition.is_moving]:
        yield f"{_some(moving)}: a reassignment is under way; see odradek reassign list"


def _room_problems(survey: Survey, pairs: Mapping[int, int]) -> Iterator[str]:
    for old, new in pairs.items():
        coming = sum(p.size_bytes for p in survey.view.partitions.values() if old in p.replicas)
        room = survey.view.brokers[new].usable_bytes if new in survey.view.brokers else None
        if room is not None and coming > room:
            yield f"broker {new} has room for {room:,} bytes, broker {old} holds {coming:,}"


def _differences(
    old: int, new: int, was: BrokerSettings, will_be: BrokerSettings, accepted: Collection[str]
) -> Iterator[str]:
    for key in MUST_AGREE:
        before, after = _effective(key, was.values), _effective(key, will_be.values)
        if key not in accepted and key in was.values and key in will_be.values and before != after:
            yield (
                f"{key} is {before or 'unset'} on broker {old} and {after or 'unset'} on its successor {new}; "
                f"set it alike, or accept the difference with --accept {key}"
            )


def _effective(key: str, values: Mapping[str, str | None]) -> str | None:
    if key != "log.retention.ms":
        return values.get(key) or None
    unit = next((name for name in _RETENTION if values.get(name)), None)
    if unit is None:
        return None
    value = int(values[unit] or "-1")
    return str(value * _MS[unit]) if value >= 0 else "-1"


def _lost_settings(
    whose: str, settings: Mapping[str, str], accepted: Collection[str], keys: Mapping[str, ConfigKey] | None = None
) -> Iterator[str]:
    """Settings which an Odradek broker would refuse. `keys`: the definitions, where they are not those of a broker."""
    for name, value in settings.items():
        if name in accepted:
            continue
        try:
            refuse_unsupported({name: value}, keys)
        except ConfigError as error:
            yield f"{whose}: {error} Or accept the loss with --accept {name}"


def _lost_apis(survey: Survey, pairs: Mapping[int, int]) -> Iterator[str]:
    """Producers depend on transactions: a successor that lacks them would break them."""
    add_partitions_to_txn = 24
    if TRANSACTIONS_TOPIC not in {tp.topic for tp in survey.view.partitions}:
        return
    lacking = sorted(
        n for n in pairs.values() if n in survey.brokers and add_partitions_to_txn not in survey.brokers[n].api_keys
    )
    if lacking:
        brokers = ", ".join(map(str, lacking))
        yield f"the cluster has transactions (__transaction_state), and broker {brokers} doesn't support them"


def _notes(survey: Survey, pairs: Mapping[int, int]) -> Iterator[str]:
    racks = survey.view.racks
    for old, new in pairs.items():
        if old in racks and new in racks and racks[old] != racks[new]:
            yield f"broker {old} is in rack {racks[old]}, its successor {new} in {racks[new]}"
    ineffective: dict[str, list[int]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for old, new in pairs.items():
        if old in survey.brokers and new in survey.brokers and survey.brokers[new].is_odradek:
            for name, reason in without_effect(_chosen(survey.brokers[old])).items():
                ineffective[name].append(old)
                reasons[name] = reason
    for name, brokers in sorted(ineffective.items()):
        yield f"{name} of broker {', '.join(map(str, brokers))} has no effect on Odradek: {reasons[name]}"
    if survey.controller in pairs:
        yield f"broker {survey.controller} is the controller: stop it last, then one of the successors is elected"


def _chosen(broker: BrokerSettings) -> dict[str, str]:
    """Settings chosen for the cluster, which a successor needs; settings of a single broker are left out."""
    return {
        name: value
        for name in sorted(broker.chosen)
        if (value := broker.values.get(name)) is not None and not name.startswith(_OWN)
    }


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:_SHOWN_MAX]))
    more = len(partitions) - _SHOWN_MAX
    return shown + (f" and {more} more" if more > 0 else "")
