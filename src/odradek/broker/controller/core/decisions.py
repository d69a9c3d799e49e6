"""Table of the controller's decisions, one for each event.

A decision is a generator: it yields effects, gets their results, and changes the context. It completes before the next
event is processed. Pure: `EffectRunner` performs the effects on ZooKeeper and brokers, a scenario supplies values.
"""

from collections.abc import Callable, Mapping
from typing import Any

from odradek.broker.controller.core import (
    alter_partition,
    broker_changes,
    controlled_shutdown,
    events,
    failover,
    leader_elections,
    leader_rebalance,
    notifications,
    reassignment,
    topic_changes,
    topic_deletion,
)
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Decision
from odradek.broker.controller.core.events import Event

_DECISIONS: Mapping[type, Callable[[ControllerContext, Any], Decision[None]]] = {
    events.ControllerElected: failover.take_over,
    events.BrokersChanged: broker_changes.brokers_changed,
    events.BrokerInfoChanged: broker_changes.broker_info_changed,
    events.TopicsChanged: topic_changes.topics_changed,
    events.TopicAssignmentChanged: topic_changes.topic_assignment_changed,
    events.TopicConfigsChanged: topic_changes.topic_configs_changed,
    events.UncleanElectionDefaultChanged: topic_changes.unclean_election_default_changed,
    events.TopicDeletionAsked: topic_deletion.deletion_asked,
    events.IsrChangesNotified: notifications.isr_changes_notified,
    events.LogDirsFailed: notifications.log_dirs_failed,
    events.ReassignmentNodeWritten: reassignment.node_written,
    events.PreferredElectionNodeWritten: leader_elections.node_written,
    events.RebalanceDue: leader_rebalance.rebalance_due,
    events.LeaderAndIsrAnswered: notifications.leader_and_isr_answered,
    events.StopReplicaAnswered: topic_deletion.replicas_answered,
    events.ControlledShutdownAsked: controlled_shutdown.shutdown_asked,
    events.IsrChangeAsked: alter_partition.isr_change_asked,
    events.ElectionAsked: leader_elections.asked,
    events.ReassignmentsAsked: reassignment.asked,
    events.ReassignmentsListed: reassignment.listed,
}


def decide(event: Event, context: ControllerContext) -> Decision[None]:
    return _DECISIONS[type(event)](context, event)
