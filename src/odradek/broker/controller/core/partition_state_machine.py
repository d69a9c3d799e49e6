"""The partition state machine: its legal moves, and the effects of each.

Only this module elects leaders of partitions. A write of a state node is conditional on the version that the decision
used; if a leader has changed its ISR in the meantime, the node is read again and the election repeated.
"""

from collections.abc import Iterable, Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext, PartitionState
from odradek.broker.controller.core.effects import (
    CreatePartitionStates,
    Decision,
    Moved,
    ReadPartitionStates,
    ReadTopicConfigs,
    Report,
    UpdatePartitionStates,
)
from odradek.broker.controller.core.election import Elected, ElectionStrategy, elect, first_leader, lacks_live_isr
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.model.topology import LeaderAndIsr, PartitionReplica, TopicPartition

LEGAL_FROM: Mapping[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}

ROUNDS_MAX = 100
"""Most attempts of an election whose write loses a race. A leader changes its ISR a few times a second."""

Errors = dict[TopicPartition, KafkaError]


def move_partitions(
    context: ControllerContext,
    tps: Iterable[TopicPartition],
    target: PartitionState,
    strategy: ElectionStrategy | None = None,
) -> Decision[Errors]:
    """Move the partitions; return the ones without a leader, with the reason. `strategy` is needed where partitions
    that had a leader get one."""
    legal = yield from _only_legal(context, tps, target)
    if target is PartitionState.ONLINE:
        return (yield from _bring_online(context, legal, strategy or ElectionStrategy.OFFLINE))
    for tp in legal:
        detail = f"replicas {_ids(context.assignment(tp).replicas)}" if target is PartitionState.NEW else ""
        yield _moved(context, tp, target, detail)
        if target is PartitionState.NON_EXISTENT:
            context.partition_states.pop(tp, None)
        else:
            context.partition_states[tp] = target
    return {}


def elect_missing_leaders(
    context: ControllerContext, tps: Iterable[TopicPartition] | None = None
) -> Decision[set[TopicPartition]]:
    """Elect a leader for each partition without one, among these or all. Return the partitions that got one."""
    wanting = [
        tp
        for tp in (context.partition_states if tps is None else tps)
        if context.partition_state(tp) in (PartitionState.NEW, PartitionState.OFFLINE)
        and not context.is_being_deleted(tp.topic)
    ]
    yield from move_partitions(context, wanting, PartitionState.ONLINE, ElectionStrategy.OFFLINE)
    return {tp for tp in wanting if context.partition_state(tp) is PartitionState.ONLINE}


def set_out_partitions(context: ControllerContext) -> None:
    """Initial state of each partition at failover, by its znode and the live brokers."""
    for tp in context.all_partitions():
        state = context.states.get(tp)
        if state is None:
            context.partition_states[tp] = PartitionState.NEW
        elif context.is_online(PartitionReplica(tp, state.leader)):
            context.partition_states[tp] = PartitionState.ONLINE
        else:
            context.partition_states[tp] = PartitionState.OFFLINE


def _only_legal(
    context: ControllerContext, tps: Iterable[TopicPartition], target: PartitionState
) -> Decision[list[TopicPartition]]:
    legal = []
    legal_from = LEGAL_FROM[target]
    for tp in tps:
        if context.partition_state(tp) in legal_from:
            legal.append(tp)
        else:
            yield Report(f"partition {tp} can't go from {context.partition_state(tp).name} to {target.name}", "error")
    return legal


# --- ONLINE ------------------------------------------------------------------------------------------------------


def _bring_online(
    context: ControllerContext, tps: list[TopicPartition], strategy: ElectionStrategy
) -> Decision[Errors]:
    batch = RequestBatch(context)
    new = [tp for tp in tps if context.partition_state(tp) is PartitionState.NEW]
    led_before = [tp for tp in tps if context.partition_state(tp) is not PartitionState.NEW]
    errors: Errors = {}
    if new:
        found, without = yield from _first_leaders(context, new, batch)
        led_before += found
        errors |= without
    if led_before:
        errors |= yield from _elections(context, led_before, strategy, batch)
    yield from batch.flush()
    if errors:
        yield Report(_without_leader(errors))
    return errors


def _first_leaders(
    context: ControllerContext, tps: list[TopicPartition], batch: RequestBatch
) -> Decision[tuple[list[TopicPartition], Errors]]:
    """Create first states. Return the failed partitions: those with another existing node, and those without a live
    replica."""
    wanted: dict[TopicPartition, LeaderAndIsr] = {}
    errors: Errors = {}
    for tp in tps:
        state = first_leader(context, tp)
        if state is None:
            errors[tp] = KafkaError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"No replica of {_ids(context.assignment(tp).replicas)} is alive.",
            )
        else:
            wanted[tp] = state
    written: dict[TopicPartition, LeaderAndIsr] = (yield CreatePartitionStates(wanted)) if wanted else {}
    there_before = []
    for tp, state in written.items():
        context.states[tp] = state
        if state != wanted[tp]:
            there_before.append(tp)
            continue
        batch.add_leader_and_isr(state.isr, tp, is_new=True)
        yield _moved(context, tp, PartitionState.ONLINE, f"leader {state.leader}  isr {_ids(state.isr)}")
        context.partition_states[tp] = PartitionState.ONLINE
    return there_before, errors


def _elections(
    context: ControllerContext, tps: list[TopicPartition], strategy: ElectionStrategy, batch: RequestBatch
) -> Decision[Errors]:
    """Elect with the states in the context first: the version tells whether they were current."""
    errors: Errors = {}
    known = {tp: context.states[tp] for tp in tps if tp in context.states}
    unknown = [tp for tp in tps if tp not in known]
    for _ in range(ROUNDS_MAX):
        if unknown:
            known |= yield from _read_again(context, unknown, errors)
        if not known:
            return errors
        unknown = yield from _one_round(context, known, strategy, batch, errors)
        known = {}
        if not unknown:
            return errors
    for tp in unknown:
        errors[tp] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Its state is changed by others without end.")
    return errors


def _read_again(
    context: ControllerContext, tps: list[TopicPartition], errors: Errors
) -> Decision[dict[TopicPartition, LeaderAndIsr]]:
    read: dict[TopicPartition, LeaderAndIsr] = yield ReadPartitionStates(tuple(tps))
    for tp in tps:
        if tp not in read:
            state = context.partition_state(tp).name
            errors[tp] = KafkaError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"LeaderAndIsr information doesn't exist for partition {tp} in {state} state",
            )
    return read


def _one_round(
    context: ControllerContext,
    known: dict[TopicPartition, LeaderAndIsr],
    strategy: ElectionStrategy,
    batch: RequestBatch,
    errors: Errors,
) -> Decision[list[TopicPartition]]:
    """Make one round of elections; return the partitions whose write lost a race."""
    if strategy is ElectionStrategy.OFFLINE:
        yield from _refresh_configs(context, known)
    elected: dict[TopicPartition, Elected] = {}
    for tp, state in known.items():
        winner = elect(context, tp, state, strategy)
        if winner is None:
            errors[tp] = _no_leader(tp, strategy)
        else:
            elected[tp] = winner
    if not elected:
        return []
    written: dict[TopicPartition, LeaderAndIsr] = yield UpdatePartitionStates(
        {tp: winner.state for tp, winner in elected.items()}
    )
    for tp, state in written.items():
        context.states[tp] = state
        batch.add_leader_and_isr(elected[tp].recipients, tp)
        yield _moved(context, tp, PartitionState.ONLINE, change_of(known[tp], state))
        context.partition_states[tp] = PartitionState.ONLINE
    return [tp for tp in elected if tp not in written]


def _refresh_configs(context: ControllerContext, known: Mapping[TopicPartition, LeaderAndIsr]) -> Decision[None]:
    """Read the configs at the moment of the election: they say whether it may be unclean."""
    topics = frozenset(tp.topic for tp, state in known.items() if lacks_live_isr(context, tp, state))
    if topics:
        configs: dict[str, dict[str, str]] = yield ReadTopicConfigs(topics)
        context.topic_configs.update(configs)


def _no_leader(tp: TopicPartition, strategy: ElectionStrategy) -> KafkaError:
    code = (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if strategy is ElectionStrategy.PREFERRED
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )
    return KafkaError(code, f"Failed to elect leader for partition {tp} under strategy {strategy.value}")


# --- texts for the log and the trace -----------------------------------------------------------------------------


def change_of(before: LeaderAndIsr, after: LeaderAndIsr) -> str:
    """Describe the changes of an election."""
    leader = str(after.leader) if before.leader == after.leader else f"{before.leader} → {after.leader}"
    isr = _ids(after.isr) if before.isr == after.isr else f"{_ids(before.isr)} → {_ids(after.isr)}"
    return f"leader {leader}  leader_epoch {before.leader_epoch} → {after.leader_epoch}  isr {isr}"


def _moved(context: ControllerContext, tp: TopicPartition, target: PartitionState, detail: str) -> Moved:
    return Moved(tp, (context.partition_state(tp).name, target.name), detail)


def _ids(brokers: Iterable[int]) -> str:
    return f"[{','.join(map(str, brokers))}]"


def _without_leader(errors: Errors) -> str:
    shown = "; ".join(f"{tp}: {error.message}" for tp, error in list(errors.items())[:5])
    return f"{len(errors)} partitions got no leader: {shown}{' …' if len(errors) > 5 else ''}"
