"""Remains of runs that were killed: found in their journals, and cleared when it is time."""

from collections.abc import Iterable
from dataclasses import dataclass

from odradek.apps.reassign.admin import Admin
from odradek.apps.reassign.core.throttles import BROKER, TOPIC, Entity
from odradek.apps.reassign.journal import RunIsGoingOn, RunJournals, RunRecord
from odradek.apps.reassign.run import clear
from odradek.model.topology import TopicPartition

_PATIENCE_MS = 5_000


@dataclass(frozen=True, slots=True)
class Leftover:
    """Journal of a run that has ended."""

    record: RunRecord
    cleared: frozenset[Entity]
    """Throttles that were cleared by this call."""
    uncleared: frozenset[Entity]
    """Throttles that stay: of dead brokers, or of moves in progress."""
    under_way: frozenset[TopicPartition]
    """Moves in progress that no command follows."""

    @property
    def is_interrupted(self) -> bool:
        return self.record.ended is None


def clear_leftovers(journals: RunJournals, admin: Admin, how: str = "killed") -> list[Leftover]:
    """Clear throttles of ended runs; `how`: text of the end for their journals. Throttles stay as long as moves of
    their run are in progress, so that these stay throttled.
    """
    ongoing = admin.ongoing().keys()
    found: list[Leftover] = []
    for record in journals.all():
        if record.ended is not None and not record.uncleared:
            continue
        try:
            journal = journals.go_on(record)
        except RunIsGoingOn:
            continue
        try:
            before = frozenset(record.uncleared)
            under_way = frozenset(ongoing & record.plan.targets.keys()) if record.ended is None else frozenset()
            if not under_way:
                clear(journal, admin, patience_ms=_PATIENCE_MS)
                if record.ended is None:
                    journal.add("ended", how=how)
            found.append(Leftover(record, before - record.uncleared, frozenset(record.uncleared), under_way))
        finally:
            journal.close()
    return found


def foreign_throttles(admin: Admin, topics: Iterable[str]) -> dict[Entity, dict[str, str | None]]:
    """Return every throttle of the cluster, of any origin."""
    brokers = (Entity(BROKER, str(broker)) for broker in sorted(admin.live_brokers()))
    entities = [*brokers, *(Entity(TOPIC, topic) for topic in sorted(topics))]
    return {entity: values for entity, values in admin.settings(entities).items() if any(values.values())}
