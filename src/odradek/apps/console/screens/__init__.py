"""One module for each screen: what it follows, what it shows, what can be changed there."""

from odradek.apps.console.screens import (
    acls,
    cluster,
    groups,
    history,
    lab,
    messages,
    pipelines,
    reassign,
    topic,
    topics,
    transactions,
    users,
)

SCREENS = tuple(
    screen.register
    for screen in (
        *(cluster, topics, topic, messages, groups, transactions, reassign, history, pipelines, users, acls, lab),
    )
)
