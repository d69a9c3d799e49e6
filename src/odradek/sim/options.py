"""Options of a story, drawn from its seed: the cluster, its topics, the faults and how often they happen.

Swarm testing: every story leaves some faults out and has others more often than usual. A story in which everything
happens at once hides what a single fault does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from odradek.client.topic_admin import MIN_ISR
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

WEIGHTS: Mapping[str, int] = {
    "messages_arrive": 60,
    "follower_fetches": 40,
    "producer_sends": 25,
    "librdkafka_sends": 25,
    "java_producer_sends": 12,
    "controller_acts": 12,
    "leader_asks_for_isr": 8,
    "consumer_reads": 5,
    "consumer_asks_for_end": 5,
    "time_passes": 4,
    "broker_returns": 8,
    "broker_thaws": 4,
    "broker_writes_checkpoints": 2,
    "broker_flushes": 1,
    "log_is_cleaned": 3,
    "retention_runs": 3,
    "message_is_released": 6,
    "pipe_drains": 6,
    "cut_off_broker_is_reached": 3,
    "zookeeper_server_catches_up": 4,
}
"""Steps of every story, and how often; some do nothing without a group or a compacted log."""

FAULTS: Mapping[str, int] = {
    "message_is_lost": 2,
    "connection_breaks": 2,
    "librdkafka_connection_breaks": 2,
    "java_connection_breaks": 1,
    "controller_changes": 4,
    "session_expires": 4,
    "leaders_are_rebalanced": 2,
    "broker_is_killed": 2,
    "broker_loses_power": 2,
    "broker_leaves": 1,
    "broker_freezes": 1,
    "directory_fails": 2,
    "partition_is_reassigned": 2,
    "topic_is_created": 2,
    "topic_is_deleted": 2,
    "member_dies": 1,
    "time_jumps": 1,
    "clock_jumps": 1,
    "message_is_held_back": 2,
    "message_is_delayed": 2,
    "pipe_is_full": 2,
    "zookeeper_server_lags": 4,
    "leader_is_cut_off": 1,
    "joining_broker_reboots": 4,
    "member_stalls": 3,
}
"""Faults and changes, and how often unless the seed says otherwise."""

_HARDSHIPS = {"disk_is_slow": 3, "disk_is_fast": 6, "write_fails": 3, "former_controller_acts": 10}
"""Further faults, of some stories."""
_GROUP_WEIGHTS = {"group_member_acts": 70, "coordinator_loads": 10}
_NO_GROUP_WEIGHTS = dict.fromkeys(_GROUP_WEIGHTS, 0)
_TRANSACTION_WEIGHTS = {
    "transactional_producer_acts": 40,
    "committed_reader_reads": 6,
    "transactional_producer_dies": 1,
    "message_is_held_back": 16,
    "message_is_delayed": 8,
    "message_is_released": 12,
    "transformer_acts": 20,
    "transformer_is_replaced": 3,
    "coordinator_loads": 10,
    "everything_moves": 120,
    "producer_sends": 8,
    "librdkafka_sends": 8,
    "java_producer_sends": 4,
}
_CALM_WEIGHTS = {
    "everything_moves": 240,
    "session_of_dead_broker_expires": 60,
    "controller_acts": 60,
    "controller_changes": 12,
    "leader_asks_for_isr": 40,
    "broker_returns": 40,
    "broker_thaws": 20,
    "time_passes": 12,
}
"""Faults end sooner than in other stories: a transfer, or a rebalance of a group, needs many steps in a row."""
_CALM_GROUP_WEIGHTS = {**_CALM_WEIGHTS, "everything_moves": 100, "member_stalls": 10}
_BANK_WEIGHTS = {**_CALM_WEIGHTS, "teller_acts": 40, "teller_is_replaced": 2, "balances_are_read": 6}
_COPIES_IN_GROUP_WEIGHTS = {
    **_CALM_WEIGHTS,
    "transformer_is_replaced": 12,
    "paused_member_is_expelled": 30,
    "producer_sends": 60,
    "time_passes": 4,
    "time_jumps": 0,
}
"""A member loses its partition when its session has passed, while its transaction is open: no more time may pass."""
LEDGER = "ledger"
"""The topic of transactions; no other producer writes to it."""
COPIES = "copies"
"""The topic of a program that consumes, transforms and produces in transactions."""
ACCOUNTS = "accounts"
"""The topic of tellers, which transfer money in transactions."""
LOOSE = "loose"
"""The topic whose leaders may be elected from outside of the ISR."""
UNCLEAN = "unclean.leader.election.enable"
_COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
_INCIDENTS, _INCIDENTS_WITH_TRANSACTIONS = 2, 3
"""Number of incidents of a story, if so many are possible."""
_WITH_HARDSHIPS = 0.3
_COMPACTED_LEDGER = 0.35
_WITH_LATE_VERIFICATION = 0.5
_LEFT_OUT = 0.25
_ALL_IN_SYNC = 0.1
_FACTORS = (1, 1, 1, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_compacted(self) -> bool:
        return self.config.get("cleanup.policy") == "compact"

    @property
    def is_unclean(self) -> bool:
        return self.config.get(UNCLEAN) == "true"


@dataclass(frozen=True, slots=True)
class Options:
    brokers: int = 3
    racks: int = 1
    directories: int = 1
    steps: int = 800
    max_lag_ms: int = 10_000
    topics: tuple[TopicPlan, ...] = (TopicPlan("orders", 1, 3, {MIN_ISR: "2", "segment.bytes": "600"}),)
    groups: bool = False
    transactions: bool = False
    transaction_version: int = 1
    copies_in_group: bool = False
    """Flag of copying by two members of a group, instead of one program and its successors."""
    records_max: int = 3
    """Number of records of a batch, at most, of producers without transactions."""
    race: float = 0.1
    """Share of librdkafka's chances for its race (`clients/librdkafka_producer.py`) that it takes."""
    weights: Mapping[str, int] = field(default_factory=lambda: WEIGHTS)
    incidents: tuple[str, ...] = ()
    """Incidents after the faults, each in a cluster that has healed (`incidents`)."""

    @classmethod
    def draw(cls, seed: int) -> "Options":
        drawn, chance = cls._drawn(seed)._with_sizes(Random(f"sizes of {seed}")), Random(f"incidents of {seed}")
        if chance.random() < _WITH_HARDSHIPS:
            drawn = replace(drawn, weights={**drawn.weights, **_HARDSHIPS})
        if drawn.transactions and chance.random() < _COMPACTED_LEDGER:
            drawn = drawn._with_compacted_ledger()
        possible = drawn._possible_incidents()
        number = min(_INCIDENTS_WITH_TRANSACTIONS if drawn.transactions else _INCIDENTS, len(possible))
        incidents = tuple(chance.sample(possible, number))
        if drawn.transactions and chance.random() < _WITH_LATE_VERIFICATION:
            incidents += ("verified_batch_waits",)
        return replace(drawn, incidents=incidents)

    @classmethod
    def _drawn(cls, seed: int) -> "Options":
        chance = Random(f"options of {seed}")
        brokers = chance.choice((3, 3, 3, 4, 5))
        groups = chance.random() < 0.35
        drawn = cls(
            brokers=brokers,
            racks=chance.choice((1, 1, 3)),
            directories=chance.choice((1, 2)),
            steps=chance.choice((500, 800, 800, 1_100)),
            max_lag_ms=chance.choice((5_000, 10_000, 10_000, 30_000)),
            topics=tuple(_topics(chance, groups=groups)),
            groups=groups,
            race=chance.choice((0.1, 0.1, 0.5)),
            weights={**WEIGHTS, **(_GROUP_WEIGHTS if groups else _NO_GROUP_WEIGHTS), **_faults(chance)},
        )
        if chance.random() >= 0.3:
            is_calm = groups and Random(f"group of {seed}").random() < 0.5
            return replace(drawn, weights={**drawn.weights, **_CALM_GROUP_WEIGHTS}) if is_calm else drawn
        drawn, luck = drawn._with_transactions(chance), Random(f"bank of {seed}")
        if Random(f"copies of {seed}").random() < 0.6:
            drawn = drawn._with_copies_in_group()
        return drawn._with_bank(luck) if luck.random() < 0.5 else drawn

    def _with_sizes(self, chance: Random) -> "Options":
        """Draw the size of batches. In some stories, all replicas have to be in sync: any fault stops writes."""
        sizes = replace(self, records_max=chance.choice((1, 3, 3, 3, 8)))
        if chance.random() >= _ALL_IN_SYNC:
            return sizes
        topics = (
            replace(p, config={**p.config, MIN_ISR: "3"}) if p.config.get(MIN_ISR) == "2" else p for p in self.topics
        )
        return replace(sizes, topics=tuple(topics))

    def _with_transactions(self, chance: Random) -> "Options":
        common = {key: self.topics[0].config[key] for key in (MIN_ISR, "segment.bytes")}
        kept = {**common, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        if chance.random() < 0.5:
            kept["delete.retention.ms"] = "0"  # markers and tombstones go with the second cleaning
        state = {**kept, "max.message.bytes": "1000"}  # ids that expire together are more than one batch
        plans = [TopicPlan(LEDGER, chance.choice((1, 2, 2, 3)), 3, common), TopicPlan(TRANSACTIONS_TOPIC, 1, 3, state)]
        version = chance.choice((1, 1, 2))
        weights = {**self.weights, **_TRANSACTION_WEIGHTS}
        if chance.random() < 0.85:
            plans.append(TopicPlan(COPIES, chance.choice((1, 2)), 3, {**common, "segment.bytes": "20000"}))
            if not self.groups:
                plans.append(TopicPlan(OFFSETS_TOPIC, 1, 3, kept))
        else:
            weights |= {"transformer_acts": 0, "transformer_is_replaced": 0}
        topics = (*self.topics, *plans)
        return replace(self, topics=topics, transactions=True, transaction_version=version, weights=weights)

    def _with_copies_in_group(self) -> "Options":
        if not any(plan.name == COPIES for plan in self.topics):
            return self
        return replace(self, copies_in_group=True, weights={**self.weights, **_COPIES_IN_GROUP_WEIGHTS})

    def _with_bank(self, chance: Random) -> "Options":
        common = {key: self.topics[0].config[key] for key in (MIN_ISR, "segment.bytes")}
        plan = TopicPlan(ACCOUNTS, chance.choice((1, 2, 2, 3)), 3, common)
        return replace(self, topics=(*self.topics, plan), weights={**self.weights, **_BANK_WEIGHTS})

    def _with_compacted_ledger(self) -> "Options":
        """Give each record of the ledger a key: compaction takes markers, and the records of aborted transactions."""
        topics = (replace(p, config={**p.config, **_COMPACTED}) if p.name == LEDGER else p for p in self.topics)
        return replace(self, topics=tuple(topics), weights={**self.weights, "log_is_cleaned": 15})

    def _possible_incidents(self) -> list[str]:
        possible = ["deleting_broker_returns"]
        if self.groups or self.transactions:
            possible += ["coordinator_moves_away_and_back", "logs_are_cleaned"]
        if self.transactions:
            possible += ["epochs_run_out", "transactional_ids_expire", "topic_is_deleted_in_transaction"]
        if any(plan.name == COPIES for plan in self.topics):
            possible += ["late_offset_arrives"] if self.transaction_version < 2 else []
            possible += ["owner_is_expelled"] if self.copies_in_group else []
        return possible

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(self.brokers))

    def plan(self, topic: str) -> TopicPlan:
        """Return the plan of a topic; a topic that is created by the story has that of the first one."""
        return next((plan for plan in self.topics if plan.name == topic), self.topics[0])

    def shown(self) -> dict[str, object]:
        """A line each, for people."""
        named = {
            name: getattr(self, name)
            for name in ("brokers", "racks", "directories", "steps", "max_lag_ms", "records_max")
        }
        if self.transactions:
            named["transaction_version"] = self.transaction_version
            named["copies_in_group"] = self.copies_in_group
        for plan in self.topics:
            settings = " ".join(f"{key}={value}" for key, value in plan.config.items())
            named[f"topic.{plan.name}"] = f"partitions={plan.partitions} replicas={plan.replication} {settings}"
        left_out = [name for name in FAULTS if not self.weights.get(name)]
        more = [
            f"{name}*{self.weights[name] // often}"
            for name, often in FAULTS.items()
            if self.weights.get(name, 0) > often
        ]
        named["also"] = " ".join(name for name in _HARDSHIPS if self.weights.get(name)) or "-"
        named["incidents"] = " ".join(self.incidents) or "-"
        return {**named, "without": " ".join(left_out) or "-", "more": " ".join(more) or "-"}


def _faults(chance: Random) -> dict[str, int]:
    return {
        name: 0 if chance.random() < _LEFT_OUT else often * chance.choice(_FACTORS) for name, often in FAULTS.items()
    }


def _topics(chance: Random, *, groups: bool) -> list[TopicPlan]:
    """Draw topics, always one that keeps everything. Replicas can lose one broker at any time."""
    size = str(chance.choice((300, 600, 600, 2_000)))
    common = {MIN_ISR: "2", "segment.bytes": size}
    plans = [TopicPlan("orders", chance.choice((1, 1, 1, 2, 3)), 3, common)]
    if chance.random() < 0.25:
        short = {**common, "retention.bytes": str(chance.choice((1_000, 3_000)))}
        plans.append(TopicPlan("recent", 1, 3, short))
    if chance.random() < 0.25:
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0"}
        plans.append(TopicPlan("prices", 1, 3, {**common, **compacted}))
    if chance.random() < 0.2:
        loose = {**common, MIN_ISR: chance.choice(("1", "1", "2")), UNCLEAN: "true"}
        plans.append(TopicPlan(LOOSE, 1, 3, loose))
    if groups:
        kept = {**common, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        plans.append(TopicPlan(OFFSETS_TOPIC, 1, 3, kept))
    return plans
