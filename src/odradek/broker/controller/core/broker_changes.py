"""Changes of live brokers: compares /brokers/ids with the context; brokers can start, fail or restart.

A broker whose epoch is higher than before has restarted, however quickly: it counts as failed and as started.
"""

from collections.abc import Iterable, Mapping

from odradek.broker.controller.core import reassignment, topic_deletion
from odradek.broker.controller.core.context import ControllerContext, ReplicaState
from odradek.broker.controller.core.effects import CloseChannel, Decision, OpenChannel, ReadBrokers, Report, Watch
from odradek.broker.controller.core.events import BrokerInfoChanged, BrokersChanged
from odradek.broker.controller.core.partition_state_machine import elect_missing_leaders
from odradek.broker.controller.core.replica_failure import replicas_gone
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.broker.zk.znodes import BrokerIds, BrokerRegistration
from odradek.model.topology import Broker


def brokers_changed(context: ControllerContext, event: BrokersChanged) -> Decision[None]:
    yield Watch(children=(BrokerIds.path,))
    registered: dict[int, Broker] = yield ReadBrokers()
    known = context.brokers
    came = sorted(registered.keys() - known.keys())
    went = sorted(known.keys() - registered.keys())
    replaced = sorted(b for b in registered.keys() & known.keys() if registered[b].epoch > known[b].epoch)
    if not (came or went or replaced):
        return
    yield Report(f"brokers came: {came}, went: {went}, restarted: {replaced}", "info")
    for broker in (*replaced, *went):
        yield CloseChannel(broker)
    for broker in (*came, *replaced):
        yield OpenChannel(registered[broker])
    if came or replaced:
        yield watch_brokers((*came, *replaced))
    if came:
        yield from _brokers_came(context, {broker: registered[broker] for broker in came})
    if replaced:
        yield from _brokers_went(context, replaced)
        yield from _brokers_came(context, {broker: registered[broker] for broker in replaced})
    if went:
        yield from _brokers_went(context, went)


def broker_info_changed(context: ControllerContext, event: BrokerInfoChanged) -> Decision[None]:
    """Handle a changed registration; a broker that has gone or restarted is reported by its parent node too."""
    known = context.brokers.get(event.broker_id)
    if known is None:
        return
    yield watch_brokers((event.broker_id,))
    registered: dict[int, Broker] = yield ReadBrokers()
    now = registered.get(event.broker_id)
    if now is None or now == known or now.epoch != known.epoch:
        return
    context.brokers[event.broker_id] = now
    listener = context.inter_broker_listener
    if now.endpoint(listener) != known.endpoint(listener):
        yield from _reconnect(context, now)
    else:
        batch = RequestBatch(context)
        batch.add_update_metadata(context.brokers)
        yield from batch.flush()


def watch_brokers(brokers: Iterable[int]) -> Watch:
    return Watch(nodes=tuple(BrokerRegistration.path(broker) for broker in brokers))


def _brokers_came(context: ControllerContext, came: Mapping[int, Broker]) -> Decision[None]:
    for broker in came:
        context.offline_replicas.pop(broker, None)
    context.brokers.update(came)
    others = context.brokers.keys() - came.keys()
    yield from _tell_of(context, others, came)
    replicas = context.replicas_on(came)
    to_serve = [replica for replica in replicas if replica.partition.topic not in context.deletion_begun]
    yield from move_replicas(context, to_serve, ReplicaState.ONLINE)
    yield from elect_missing_leaders(context)
    yield from reassignment.restart_for(context, came)
    yield from topic_deletion.resume_for(context, {replica.partition.topic for replica in replicas})


def _reconnect(context: ControllerContext, broker: Broker) -> Decision[None]:
    """Replace the channel; requests in the old one are lost, so that the broker gets its full state again."""
    yield CloseChannel(broker.id)
    yield OpenChannel(broker)
    yield from _tell_of(context, context.brokers.keys() - {broker.id}, (broker.id,))
    replicas = context.replicas_on((broker.id,))
    to_delete = [replica for replica in replicas if replica.partition.topic in context.deletion_begun]
    to_serve = [r for r in replicas if r.partition.topic not in context.deletion_begun and context.is_online(r)]
    yield from move_replicas(context, to_serve, ReplicaState.ONLINE)
    yield from topic_deletion.fail_deletions(context, to_delete)
    yield from topic_deletion.resume_for(context, {replica.partition.topic for replica in to_delete})


def _tell_of(context: ControllerContext, others: Iterable[int], came: Iterable[int]) -> Decision[None]:
    """Send the new brokers to the others, and all metadata to the new brokers before any LeaderAndIsr."""
    batch = RequestBatch(context)
    batch.add_update_metadata(others)
    yield from batch.flush()
    batch.add_full_metadata(came, [tp for tp in context.states if not context.is_being_deleted(tp.topic)])
    yield from batch.flush()


def _brokers_went(context: ControllerContext, went: Iterable[int]) -> Decision[None]:
    for broker in went:
        context.brokers.pop(broker, None)
        context.shutting_down.discard(broker)
        context.offline_replicas.pop(broker, None)
    yield from replicas_gone(context, context.replicas_on(went))
