"""The route of a migration: a successor for each old broker, and the steps in their order. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from odradek.apps.reassign.core.plan import Plan, PlanError
from odradek.apps.reassign.core.view import ClusterView
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition

COORDINATOR_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Their leaders are the group and transaction coordinators: they move after everything else."""


@dataclass(frozen=True, slots=True)
class Step:
    """One reassignment: the replicas of one kind of topic leave one broker for its successor."""

    source: int
    target: int
    is_coordinators: bool
    plan: Plan

    def __str__(self) -> str:
        topics = len({tp.topic for tp in self.plan.targets})
        what = "coordinator topics" if self.is_coordinators else f"{topics} topic{'s' if topics != 1 else ''}"
        return f"broker {self.source} to {self.target}: {len(self.plan.targets)} partitions of {what}"


def pair_brokers(sources: Iterable[int], targets: Iterable[int], racks: Mapping[int, str]) -> dict[int, int]:
    """Return each old broker's successor: one in the same rack if possible, otherwise in the order of ids."""
    olds, news = sorted(set(sources)), sorted(set(targets))
    if not olds or not news:
        raise PlanError("name the brokers to leave with --from and those to come with --to")
    if both := sorted(set(olds) & set(news)):
        raise PlanError(f"broker {_ids(both)} is both in --from and in --to")
    if len(olds) != len(news):
        raise PlanError(
            f"{len(olds)} brokers leave and {len(news)} come: each one needs one successor; "
            "change the number of brokers before or after with: odradek reassign plan --brokers"
        )
    pairs: dict[int, int] = {}
    for old in olds:
        same_rack = (new for new in news if old in racks and racks.get(new) == racks[old])
        successor = next(same_rack, None)
        if successor is not None:
            pairs[old] = successor
            news.remove(successor)
    return dict(sorted((pairs | dict(zip((old for old in olds if old not in pairs), news, strict=True))).items()))


def steps_of(view: ClusterView, pairs: Mapping[int, int]) -> Iterator[Step]:
    """Return the remaining steps for the present assignment: a stopped migration continues from there.

    Every step is planned on the assignment after the steps before it.
    """
    assignment = {tp: partition.replicas for tp, partition in view.partitions.items()}
    for is_coordinators in (False, True):
        for source, target in pairs.items():
            moves = {
                tp: _replaced(tp, replicas, source, target)
                for tp, replicas in sorted(assignment.items())
                if source in replicas and (tp.topic in COORDINATOR_TOPICS) == is_coordinators
            }
            if moves:
                assignment |= moves
                yield Step(source, target, is_coordinators, Plan(moves))


def _replaced(tp: TopicPartition, replicas: tuple[int, ...], source: int, target: int) -> tuple[int, ...]:
    if target in replicas:
        raise PlanError(
            f"{tp} has replicas on broker {source} and on its successor {target}: the migration would leave it with "
            "one replica less; move one of them first with: odradek reassign plan"
        )
    return tuple(target if broker == source else broker for broker in replicas)


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
