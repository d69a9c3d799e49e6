"""Events of the controller by the znode that changed."""

from odradek.broker.controller.core.events import (
    BrokerInfoChanged,
    BrokersChanged,
    Event,
    IsrChangesNotified,
    LogDirsFailed,
    PreferredElectionNodeWritten,
    ReassignmentNodeWritten,
    TopicAssignmentChanged,
    TopicDeletionAsked,
    TopicsChanged,
)

_EVENTS: dict[str, Event] = {
    "/brokers/ids": BrokersChanged(),
    "/brokers/topics": TopicsChanged(),
    "/admin/delete_topics": TopicDeletionAsked(),
    "/isr_change_notification": IsrChangesNotified(),
    "/log_dir_event_notification": LogDirsFailed(),
    "/admin/reassign_partitions": ReassignmentNodeWritten(),
    "/admin/preferred_replica_election": PreferredElectionNodeWritten(),
}


def event_of_znode(path: str) -> Event | None:
    """Return the event; None for a znode that the controller does not react to."""
    if (event := _EVENTS.get(path)) is not None:
        return event
    parent, _, name = path.rpartition("/")
    if parent == "/brokers/topics":
        return TopicAssignmentChanged(name)
    if parent == "/brokers/ids" and name.isdecimal():
        return BrokerInfoChanged(int(name))
    return None
